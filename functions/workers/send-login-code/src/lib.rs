//! Sends login codes. Apart from other messages, because nobody can log in while a code waits behind them.
//!
//! A message names an asking session. It is claimed, sent and marked; a code whose time is over is not sent any more,
//! because it would only make people try what cannot work.

use std::sync::Arc;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use domain::limits::{SEND_TIMEOUT, SENT_AT_ONCE};
use domain::login::code_text;
use domain::messages::{LoginCodeMessage, Queue};
use domain::{Error, Result};
use edge::Deadline;
use edge::login_keys::LoginKeys;
use edge::metrics::{self, Dimension, Metric, Unit};
use edge::queue::MessageQueue;
use edge::sqs::{Outcome, Record, run_batch};
use futures::StreamExt;
use futures::stream;
use senders::Unsent;
use store::Database;
use store::login::{Claim, Claimed, claim, mark_sent, release};

pub use senders::phone::Sender;

/// What one execution environment keeps between batches.
pub struct State {
    database: Database,
    keys: LoginKeys,
    sender: Sender,
    queue: Arc<dyn MessageQueue>,
}

impl State {
    /// The state of a fresh environment.
    #[must_use]
    pub fn new(database: Database, keys: LoginKeys, sender: Sender, queue: Arc<dyn MessageQueue>) -> Self {
        Self { database, keys, sender, queue }
    }
}

/// Handles one batch.
///
/// # Errors
/// Only when the batch cannot be reported record by record.
pub async fn handle(
    state: &State,
    event: SqsEvent,
    deadline: Deadline,
) -> Result<SqsBatchResponse, lambda_runtime::Error> {
    run_batch(&*state.queue, Queue::SendLoginCode, event, deadline, |records, deadline| serve(state, records, deadline))
        .await
}

/// Some at once: most of the time is spent waiting for the provider, and the connection is borrowed only between.
async fn serve(state: &State, records: Vec<Record<LoginCodeMessage>>, deadline: Deadline) -> Vec<Outcome> {
    let work = records.into_iter().map(|record| async move {
        if deadline.left() < SEND_TIMEOUT {
            return Outcome::RETRY;
        }
        send(state, &record.message).await.unwrap_or_else(|error| {
            metrics::count("login_codes_sent", &[(Dimension::Outcome, "failed")]);
            tracing::warn!(store.id = %record.message.tenant_id, error.message = error.chain(), "a login code was not sent");
            Outcome::RETRY
        })
    });
    stream::iter(work).buffered(SENT_AT_ONCE).collect().await
}

async fn send(state: &State, message: &LoginCodeMessage) -> Result<Outcome> {
    let found = claim(&*state.database.client().await?, message).await?;
    match found {
        Claim::Nothing => Ok(Outcome::Done),
        Claim::Busy => Ok(Outcome::RETRY),
        Claim::TooLate => {
            metrics::emit(&[metric("login_codes_lost", 1.0)], &[]);
            tracing::warn!(store.id = %message.tenant_id, "a login code was not sent while it was good");
            Ok(Outcome::Done)
        }
        Claim::Yours(claimed) => deliver(state, &claimed).await,
    }
}

async fn deliver(state: &State, claimed: &Claimed) -> Result<Outcome> {
    let Some(code) = state.keys.code(&claimed.key_id, claimed.asking_id) else {
        // In a rotation the login may have a new key a moment before this environment is replaced.
        release(&*state.database.client().await?, claimed).await?;
        return Err(Error::busy("a login code was derived with a key that is not known here"));
    };
    let text = code_text(claimed.language, &code, &claimed.store);
    fail::fail_point!("login_code.before_send");
    if let Err(Unsent { error, may_have_left }) = state.sender.send(&claimed.phone, &text).await {
        // A claim that nobody gives back ends by itself; who sends then counts it as repeated.
        if !may_have_left {
            release(&*state.database.client().await?, claimed).await?;
        }
        return Err(error);
    }
    fail::fail_point!("login_code.before_mark");
    mark_sent(&*state.database.client().await?, claimed).await?;
    let outcome = if claimed.is_repeat { "repeated" } else { "sent" };
    metrics::count("login_codes_sent", &[(Dimension::Outcome, outcome)]);
    Ok(Outcome::Done)
}

const fn metric(name: &'static str, value: f64) -> Metric {
    Metric { name, value, unit: Unit::Count }
}
