//! SQS behind [`MessageQueue`].
//!
//! The client is put together by hand, and only when the first message is sent: the usual chain of credential sources
//! would ask services that a function has no use for, and start-up is billed.

use std::ops::Range;
use std::sync::OnceLock;
use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::retry::RetryConfig;
use aws_sdk_sqs::config::timeout::TimeoutConfig;
use aws_sdk_sqs::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_sqs::types::{
    BatchResultErrorEntry, ChangeMessageVisibilityBatchRequestEntry as DelayEntry,
    SendMessageBatchRequestEntry as SendEntry,
};
use domain::messages::Queue;
use domain::{Error, Result};
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};

use super::{Delay, MessageQueue, Outgoing};
use crate::config::{Config, Queues};
use crate::environment::{ConfigError, Environment};

/// Entries in one call, which SQS sets.
const ENTRIES_MAX: usize = 10;
/// Bytes in one call and in one message, which SQS sets, less room for ids and groups.
const BYTES_MAX: usize = 1_024 * 1_024 - ENTRIES_MAX * 512;
/// Calls under way at once: a relay of thousands is quick, and a function keeps few sockets.
const CALLS_AT_ONCE: usize = 8;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// One attempt. SQS answers in tens of milliseconds.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(1);
/// All attempts: short, because an order whose message was not sent is answered all the same and relayed later.
const OPERATION_TIMEOUT: Duration = Duration::from_millis(2_500);
const ATTEMPTS_MAX: u32 = 3;

/// Messages in SQS.
#[derive(Debug)]
pub struct SqsQueue {
    client: OnceLock<Client>,
    region: String,
    endpoint_url: Option<String>,
    credentials: Credentials,
    urls: Queues,
}

impl SqsQueue {
    /// Queues as configured. Nothing is connected yet.
    ///
    /// # Errors
    /// [`ConfigError::Missing`]: the URL of a queue in `needed`, the region, or credentials.
    pub fn new(config: &Config, environment: &Environment, needed: &[Queue]) -> Result<Self, ConfigError> {
        for queue in needed {
            config.queues.url(*queue)?;
        }
        Ok(Self {
            client: OnceLock::new(),
            region: config.region.clone().ok_or_else(|| ConfigError::Missing("AWS_REGION".into()))?,
            endpoint_url: config.endpoint_url.clone(),
            credentials: crate::iam::credentials(environment)?,
            urls: config.queues.clone(),
        })
    }

    fn client(&self) -> &Client {
        self.client.get_or_init(|| {
            let timeouts = TimeoutConfig::builder()
                .connect_timeout(CONNECT_TIMEOUT)
                .operation_attempt_timeout(ATTEMPT_TIMEOUT)
                .operation_timeout(OPERATION_TIMEOUT)
                .build();
            let mut settings = aws_sdk_sqs::Config::builder()
                .behavior_version(BehaviorVersion::latest())
                .region(Region::new(self.region.clone()))
                .credentials_provider(self.credentials.clone())
                .timeout_config(timeouts)
                .retry_config(RetryConfig::standard().with_max_attempts(ATTEMPTS_MAX));
            settings.set_endpoint_url(self.endpoint_url.clone());
            Client::from_conf(settings.build())
        })
    }

    async fn send_chunk(&self, url: &str, messages: &[Outgoing]) -> Vec<Result<()>> {
        let entries = messages.iter().enumerate().map(|(index, message)| {
            SendEntry::builder()
                .id(index.to_string())
                .message_body(&message.body)
                .message_group_id(&message.group)
                .build()
        });
        let entries = match entries.collect::<Result<Vec<_>, _>>() {
            Ok(entries) => entries,
            Err(error) => return same(messages.len(), &Error::Fault(Box::new(error))),
        };
        match self.client().send_message_batch().queue_url(url).set_entries(Some(entries)).send().await {
            Ok(answer) => results(messages.len(), answer.successful().iter().map(|entry| entry.id()), answer.failed()),
            Err(error) => same(messages.len(), &Error::Busy(Box::new(error))),
        }
    }

    async fn delay_chunk(&self, url: &str, delays: &[Delay]) -> Vec<Result<()>> {
        let entries = delays.iter().enumerate().map(|(index, delay)| {
            DelayEntry::builder()
                .id(index.to_string())
                .receipt_handle(&delay.receipt_handle)
                .visibility_timeout(i32::try_from(delay.time.as_secs()).unwrap_or(i32::MAX))
                .build()
        });
        let entries = match entries.collect::<Result<Vec<_>, _>>() {
            Ok(entries) => entries,
            Err(error) => return same(delays.len(), &Error::Fault(Box::new(error))),
        };
        match self.client().change_message_visibility_batch().queue_url(url).set_entries(Some(entries)).send().await {
            Ok(answer) => results(delays.len(), answer.successful().iter().map(|entry| entry.id()), answer.failed()),
            Err(error) => same(delays.len(), &Error::Busy(Box::new(error))),
        }
    }

    fn url(&self, queue: Queue) -> Result<&str> {
        self.urls.url(queue).map_err(|error| Error::Fault(Box::new(error)))
    }
}

impl MessageQueue for SqsQueue {
    fn send<'a>(&'a self, queue: Queue, messages: &'a [Outgoing]) -> BoxFuture<'a, Vec<Result<()>>> {
        Box::pin(async move {
            let url = match self.url(queue) {
                Ok(url) => url,
                Err(error) => return same(messages.len(), &error),
            };
            let chunks = chunks(messages.iter().map(|message| message.body.len()));
            let calls = chunks.into_iter().map(|chunk| self.send_chunk(url, &messages[chunk]));
            stream::iter(calls).buffered(CALLS_AT_ONCE).concat().await
        })
    }

    fn delay<'a>(&'a self, queue: Queue, delays: &'a [Delay]) -> BoxFuture<'a, Vec<Result<()>>> {
        Box::pin(async move {
            let url = match self.url(queue) {
                Ok(url) => url,
                Err(error) => return same(delays.len(), &error),
            };
            let calls = chunks(delays.iter().map(|_| 0)).into_iter().map(|chunk| self.delay_chunk(url, &delays[chunk]));
            stream::iter(calls).buffered(CALLS_AT_ONCE).concat().await
        })
    }
}

/// Cuts messages of these sizes into calls that SQS accepts. A message too large for any call gets one of its own, so
/// that it fails alone.
fn chunks(sizes: impl Iterator<Item = usize>) -> Vec<Range<usize>> {
    let mut chunks: Vec<Range<usize>> = Vec::new();
    let mut bytes = 0;
    for (index, size) in sizes.enumerate() {
        match chunks.last_mut() {
            Some(last) if last.len() < ENTRIES_MAX && bytes + size <= BYTES_MAX => {
                last.end = index + 1;
                bytes += size;
            }
            _ => {
                chunks.push(index..index + 1);
                bytes = size;
            }
        }
    }
    chunks
}

/// The same failure for every entry of a call. Its text only: an error cannot be copied.
fn same(count: usize, error: &Error) -> Vec<Result<()>> {
    let chain = error.chain();
    let again = || if matches!(error, Error::Busy(_)) { Error::busy(&chain) } else { Error::fault(&chain) };
    (0..count).map(|_| Err(again())).collect()
}

/// One result per entry from an answer that lists some as successful and some as failed.
fn results<'a>(
    count: usize,
    successful: impl Iterator<Item = &'a str>,
    failed: &[BatchResultErrorEntry],
) -> Vec<Result<()>> {
    let mut results: Vec<Result<()>> = (0..count).map(|_| Err(Error::busy("SQS did not mention the entry"))).collect();
    let mut set = |id: &str, result| {
        if let Some(slot) = id.parse::<usize>().ok().and_then(|index| results.get_mut(index)) {
            *slot = result;
        }
    };
    for id in successful {
        set(id, Ok(()));
    }
    for entry in failed {
        let text = format!("SQS: {} {}", entry.code(), entry.message().unwrap_or_default());
        set(entry.id(), Err(if entry.sender_fault() { Error::fault(text) } else { Error::busy(text) }));
    }
    results
}

#[cfg(test)]
mod tests;
