//! Tells buyers what became of their orders: by a message to the phone, and by mail where there is an address.
//!
//! A message names an order and what about it. The notice is claimed, put together from what is true now, sent by each
//! channel and marked. What a provider does not take is noted in its row, and the reconciler owes it again: its message
//! is done with, so that an outage fills no queue.

use std::sync::Arc;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use domain::Result;
use domain::limits::{MAIL_TIMEOUT, SEND_TIMEOUT, SENT_AT_ONCE};
use domain::messages::{NoticeMessage, Queue};
use domain::notices::{Outcome as End, notice_mail, notice_text};
use edge::config::ConfigError;
use edge::metrics::{self, Dimension, Metric, Unit};
use edge::queue::MessageQueue;
use edge::sqs::{Outcome, Record, run_batch};
use edge::{Config, Deadline, Environment};
use futures::StreamExt;
use futures::stream;
use senders::{Unsent, mail, phone};
use store::Database;
use store::notices::{Channel, Claim, Claimed, claim, end, mark_sent, may_have, note_failure};

/// Who sends.
#[derive(Debug)]
pub struct Senders {
    /// To phones.
    pub phone: phone::Sender,
    /// Mail.
    pub mail: mail::Sender,
}

impl Senders {
    /// The senders of a stage.
    ///
    /// # Errors
    /// [`ConfigError`]: something is missing, or set where it must not be.
    pub fn from_config(config: &Config, environment: &Environment) -> Result<Self, ConfigError> {
        let phone = phone::Sender::from_config(config, environment)?;
        Ok(Self { phone, mail: mail::Sender::from_config(config, environment)? })
    }
}

/// What one execution environment keeps between batches.
pub struct State {
    database: Database,
    senders: Senders,
    queue: Arc<dyn MessageQueue>,
}

impl State {
    /// The state of a fresh environment.
    #[must_use]
    pub fn new(database: Database, senders: Senders, queue: Arc<dyn MessageQueue>) -> Self {
        Self { database, senders, queue }
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
    run_batch(&*state.queue, Queue::SendNotice, event, deadline, |records, deadline| serve(state, records, deadline))
        .await
}

/// Some at once: most of the time is spent waiting for providers, and the connection is borrowed only between.
async fn serve(state: &State, records: Vec<Record<NoticeMessage>>, deadline: Deadline) -> Vec<Outcome> {
    let work = records.into_iter().map(|record| async move {
        if deadline.left() < SEND_TIMEOUT + MAIL_TIMEOUT {
            return Outcome::RETRY;
        }
        send(state, &record.message).await.unwrap_or_else(|error| {
            tracing::warn!(order.id = %record.message.order_id, error.message = error.chain(), "not decided");
            Outcome::RETRY
        })
    });
    stream::iter(work).buffered(SENT_AT_ONCE).collect().await
}

async fn send(state: &State, message: &NoticeMessage) -> Result<Outcome> {
    let found = claim(&*state.database.client().await?, message).await?;
    match found {
        Claim::Nothing => Ok(Outcome::Done),
        Claim::Needless => {
            count(End::Needless.word());
            Ok(Outcome::Done)
        }
        Claim::Busy => Ok(Outcome::RETRY),
        Claim::Yours(claimed) => deliver(state, &claimed).await,
    }
}

async fn deliver(state: &State, claimed: &Claimed) -> Result<Outcome> {
    let message = &claimed.message;
    // Once, however often it is tried.
    if claimed.attempts == 1 {
        let client = state.database.client().await?;
        if !may_have(&client, claimed.buyer_id).await? {
            end(&client, message, End::Limited).await?;
            count(End::Limited.word());
            return Ok(Outcome::Done);
        }
    }
    // One provider that is away does not keep the other from sending.
    let (phone, mail) = (by_phone(state, claimed).await?, by_mail(state, claimed).await?);
    if let Some(unsent) = phone.or(mail) {
        return give_up(state, message, &unsent).await;
    }
    end(&*state.database.client().await?, message, End::Sent).await?;
    count(if claimed.is_repeat { "repeated" } else { End::Sent.word() });
    Ok(Outcome::Done)
}

/// Why the phone's provider did not take it; none when it did, now or before.
async fn by_phone(state: &State, claimed: &Claimed) -> Result<Option<Unsent>> {
    if claimed.phone_done {
        return Ok(None);
    }
    let text = notice_text(claimed.language, &claimed.facts);
    fail::fail_point!("notice.before_send");
    if let Err(unsent) = state.senders.phone.send(&claimed.phone, &text).await {
        return Ok(Some(unsent));
    }
    fail::fail_point!("notice.before_mark");
    mark_sent(&*state.database.client().await?, &claimed.message, Channel::Phone).await?;
    Ok(None)
}

/// Why the mail's provider did not take it; none when it did, now or before, or when there is no address.
async fn by_mail(state: &State, claimed: &Claimed) -> Result<Option<Unsent>> {
    let Some(email) = claimed.email.as_ref().filter(|_| !claimed.email_done) else { return Ok(None) };
    let mail = notice_mail(claimed.language, &claimed.facts);
    if let Err(unsent) = state.senders.mail.send(email, &mail).await {
        return Ok(Some(unsent));
    }
    mark_sent(&*state.database.client().await?, &claimed.message, Channel::Email).await?;
    Ok(None)
}

/// Leaves a notice to a later try, or for good after the last.
async fn give_up(state: &State, message: &NoticeMessage, unsent: &Unsent) -> Result<Outcome> {
    let failure = unsent.error.chain();
    let client = state.database.client().await?;
    let is_over = note_failure(&client, message, &failure, unsent.may_have_left).await?;
    count(if is_over { "lost" } else { End::Failed.word() });
    if is_over {
        metrics::emit(&[metric("notices_lost", 1.0)], &[]);
    }
    tracing::warn!(order.id = %message.order_id, notice.lost = is_over, error.message = failure, "not told");
    Ok(Outcome::Done)
}

fn count(outcome: &str) {
    metrics::count("notices_sent", &[(Dimension::Outcome, outcome)]);
}

const fn metric(name: &'static str, value: f64) -> Metric {
    Metric { name, value, unit: Unit::Count }
}
