//! What buyers are told: the worker that sends notices, with a phone and a mailbox that show what came.

use std::sync::Arc;
use std::time::Duration;

use domain::messages::Queue;
use edge::Deadline;
use edge::queue::MessageQueue;
use send_notice::{Senders, State};
use senders::{mail, phone};
use uuid::Uuid;

use crate::TestDatabase;
use crate::login::Phones;
use crate::queue::{Queues, drain};
use crate::staff::Mailbox;

/// Phones and a mailbox.
#[derive(Default)]
pub struct Told {
    /// The buyers' phones.
    pub phones: Phones,
    /// Their mailbox.
    pub mailbox: Mailbox,
}

impl Told {
    /// Who sends to them.
    #[must_use]
    pub fn senders(&self) -> Senders {
        Senders { phone: self.phones.sender(), mail: self.mailbox.sender() }
    }

    /// Senders whose providers are away, the phones' or both: a file that cannot be.
    #[must_use]
    pub fn away(&self, mail_too: bool) -> Senders {
        let mail = if mail_too { mail::Sender::local("/dev/null/mails.jsonl") } else { self.mailbox.sender() };
        Senders { phone: phone::Sender::local("/dev/null/phones.jsonl"), mail }
    }

    /// Runs the worker until its queue is empty.
    pub async fn send(&self, database: &TestDatabase, queues: &Arc<Queues>) {
        send_by(self.senders(), database, queues).await;
    }

    /// The texts that a phone got, oldest first.
    #[must_use]
    pub fn texts(&self, phone: &str) -> Vec<String> {
        self.phones.messages().into_iter().filter(|(to, _)| to == phone).map(|(_, text)| text).collect()
    }
}

/// Runs the worker with these senders until its queue is empty.
pub async fn send_by(senders: Senders, database: &TestDatabase, queues: &Arc<Queues>) {
    let queue = Arc::clone(queues) as Arc<dyn MessageQueue>;
    let state = Arc::new(State::new(database.app(2), senders, queue));
    let handle = move |event| {
        let state = Arc::clone(&state);
        async move { send_notice::handle(&state, event, Deadline::after(Duration::from_secs(50))).await }
    };
    drain(queues, Queue::SendNotice, 2, 10, handle).await;
}

/// Makes somebody a buyer who has logged in with a phone.
pub async fn log_in(database: &TestDatabase, tenant_id: Uuid, buyer_id: Uuid, phone: &str) {
    let sql = "insert into buyers (id, tenant_id, phone) values ($1, $2, $3)";
    database.owner().execute(sql, &[&buyer_id, &tenant_id, &phone]).await.unwrap();
}
