//! Messages from a DLQ back to their queue, by receiving, sending and deleting: SQS can move messages itself, but not
//! everywhere.
//!
//! Sent before deleted, so that nothing is lost; what is interrupted in between is sent twice, which workers tolerate.

use std::collections::HashSet;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::BuildError;
use aws_sdk_sqs::types::{
    DeleteMessageBatchRequestEntry, Message, MessageSystemAttributeName, SendMessageBatchRequestEntry,
};
use edge::Environment;
use serde_json::json;

use crate::cli::RedriveArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::sqs;

/// Messages that SQS gives or takes at once.
const BATCH_MAX: u32 = 10;

/// How long a received message stays hidden, in seconds: ample for one batch, and soon back after an interruption.
const HIDDEN_SECONDS: i32 = 60;

/// How long SQS may look for messages before it says there are none, in seconds.
const WAIT_SECONDS: i32 = 2;

#[derive(Debug, Default)]
struct Moved {
    sent: u32,
    /// Sent, but still in the DLQ: they will be sent again.
    not_deleted: u32,
    /// Not sent: they stay in the DLQ.
    not_sent: u32,
}

/// `tirada redrive`
pub(crate) async fn redrive(args: RedriveArgs, environment: &Environment) -> Result<Output, Failure> {
    let [from_queue, from_dlq] = sqs::urls(args.queue, environment);
    let [queue_variable, dlq_variable] = sqs::variables(args.queue);
    let missing = |flag: &str, variable: &str| Failure::usage(format!("name the queue with {flag} or {variable}"));
    let queue_url = args.queue_url.or(from_queue).ok_or_else(|| missing("--queue-url", &queue_variable))?;
    let dlq_url = args.dlq_url.or(from_dlq).ok_or_else(|| missing("--dlq-url", &dlq_variable))?;
    if queue_url == dlq_url {
        return Err(Failure::usage("the queue and its DLQ are the same"));
    }
    let moved = drain(&sqs::client().await, &dlq_url, &queue_url, args.max).await?;
    let Moved { sent, not_deleted, not_sent } = moved;
    let name = args.queue.name();
    let mut text = format!("{sent} messages moved from {name}-dlq to {name}");
    if not_sent > 0 || not_deleted > 0 {
        text.push_str(&format!("\n{not_sent} could not be sent and stay; {not_deleted} were sent and stay too"));
    }
    if sent + not_sent >= args.max {
        text.push_str("\nstopped at --max; there may be more");
    }
    let json = json!({"queue": name, "sent": sent, "not_sent": not_sent, "not_deleted": not_deleted});
    Ok(Output::new(text, json).wrong_if(not_sent > 0 || not_deleted > 0))
}

async fn drain(client: &Client, from: &str, to: &str, max: u32) -> Result<Moved, Failure> {
    let mut moved = Moved::default();
    loop {
        let wanted = max.saturating_sub(moved.sent + moved.not_sent).min(BATCH_MAX);
        let messages = if wanted == 0 { vec![] } else { receive(client, from, wanted).await? };
        if messages.is_empty() {
            return Ok(moved);
        }
        let asked = u32::try_from(messages.len()).unwrap_or(BATCH_MAX);
        let sent = send(client, to, &messages).await?;
        let count = u32::try_from(sent.len()).unwrap_or(BATCH_MAX);
        moved.sent += count;
        moved.not_sent += asked - count;
        moved.not_deleted += delete(client, from, &sent).await?;
    }
}

async fn receive(client: &Client, url: &str, wanted: u32) -> Result<Vec<Message>, Failure> {
    let asked = client
        .receive_message()
        .queue_url(url)
        .max_number_of_messages(wanted.cast_signed())
        .wait_time_seconds(WAIT_SECONDS)
        .visibility_timeout(HIDDEN_SECONDS)
        .message_attribute_names("All")
        .message_system_attribute_names(MessageSystemAttributeName::All)
        .send()
        .await;
    asked
        .map(|answer| answer.messages.unwrap_or_default())
        .map_err(|error| sqs::failed("receiving from the DLQ", error))
}

/// Sends messages; gives those that the queue has taken.
async fn send<'a>(client: &Client, url: &str, messages: &'a [Message]) -> Result<Vec<&'a Message>, Failure> {
    let entries: Result<Vec<_>, _> =
        messages.iter().enumerate().map(|(index, message)| entry(index, message)).collect();
    let entries = entries.map_err(|error| sqs::failed("a message of the DLQ", error))?;
    let asked = client.send_message_batch().queue_url(url).set_entries(Some(entries)).send().await;
    let answer = asked.map_err(|error| sqs::failed("sending to the queue", error))?;
    let taken: HashSet<&str> = answer.successful().iter().map(|entry| entry.id()).collect();
    let sent = messages.iter().enumerate().filter(|(index, _)| taken.contains(index.to_string().as_str()));
    Ok(sent.map(|(_, message)| message).collect())
}

/// The message as it was: body, attributes, and the group by which tenants take turns.
fn entry(index: usize, message: &Message) -> Result<SendMessageBatchRequestEntry, BuildError> {
    let group = message.attributes().and_then(|all| all.get(&MessageSystemAttributeName::MessageGroupId));
    SendMessageBatchRequestEntry::builder()
        .id(index.to_string())
        .message_body(message.body().unwrap_or_default())
        .set_message_attributes(message.message_attributes().cloned())
        .set_message_group_id(group.cloned())
        .build()
}

/// Deletes messages; gives how many could not be.
async fn delete(client: &Client, url: &str, messages: &[&Message]) -> Result<u32, Failure> {
    if messages.is_empty() {
        return Ok(0);
    }
    let entry = |(index, message): (usize, &&Message)| {
        DeleteMessageBatchRequestEntry::builder()
            .id(index.to_string())
            .receipt_handle(message.receipt_handle().unwrap_or_default())
            .build()
    };
    let entries: Result<Vec<_>, _> = messages.iter().enumerate().map(entry).collect();
    let entries = entries.map_err(|error| sqs::failed("a message of the DLQ", error))?;
    let asked = client.delete_message_batch().queue_url(url).set_entries(Some(entries)).send().await;
    let answer = asked.map_err(|error| sqs::failed("deleting from the DLQ", error))?;
    Ok(u32::try_from(answer.failed().len()).unwrap_or(BATCH_MAX))
}

#[cfg(test)]
mod tests {
    use aws_sdk_sqs::types::MessageAttributeValue;

    use super::*;

    #[test]
    fn a_message_goes_back_as_it_was() {
        let attribute = MessageAttributeValue::builder().data_type("String").string_value("x").build().unwrap();
        let message = Message::builder()
            .body("{\"v\":1}")
            .attributes(MessageSystemAttributeName::MessageGroupId, "tenant")
            .attributes(MessageSystemAttributeName::ApproximateReceiveCount, "11")
            .message_attributes("trace", attribute.clone())
            .build();
        let entry = entry(3, &message).unwrap();
        assert_eq!((entry.id(), entry.message_body()), ("3", "{\"v\":1}"));
        assert_eq!(entry.message_group_id(), Some("tenant"));
        assert_eq!(entry.message_attributes().unwrap()["trace"], attribute);
    }
}
