//! Sending messages and delaying received ones, in the sizes that callers have and not in those that SQS allows.

mod client;

use std::time::Duration;

use domain::Result;
use domain::messages::{
    EventMessage, ExportMessage, LoginCodeMessage, NoticeMessage, OrderMessage, Queue, UploadMessage,
};
use futures::future::BoxFuture;

pub use client::SqsQueue;

/// A message to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// The body, as [`OrderMessage::body`] writes it.
    pub body: String,
    /// The group for fair queueing: the tenant.
    pub group: String,
}

impl From<&OrderMessage> for Outgoing {
    fn from(message: &OrderMessage) -> Self {
        Self { body: message.body(), group: message.tenant_id.to_string() }
    }
}

impl From<&EventMessage> for Outgoing {
    fn from(message: &EventMessage) -> Self {
        // A struct of plain fields has a JSON form.
        let body = serde_json::to_string(message).unwrap_or_default();
        Self { body, group: message.tenant_id.to_string() }
    }
}

impl From<&LoginCodeMessage> for Outgoing {
    fn from(message: &LoginCodeMessage) -> Self {
        // A struct of plain fields has a JSON form.
        let body = serde_json::to_string(message).unwrap_or_default();
        Self { body, group: message.tenant_id.to_string() }
    }
}

impl From<&NoticeMessage> for Outgoing {
    fn from(message: &NoticeMessage) -> Self {
        // A struct of plain fields has a JSON form.
        let body = serde_json::to_string(message).unwrap_or_default();
        Self { body, group: message.tenant_id.to_string() }
    }
}

impl From<&ExportMessage> for Outgoing {
    fn from(message: &ExportMessage) -> Self {
        // A struct of plain fields has a JSON form.
        let body = serde_json::to_string(message).unwrap_or_default();
        Self { body, group: message.tenant_id.to_string() }
    }
}

impl From<&UploadMessage> for Outgoing {
    fn from(message: &UploadMessage) -> Self {
        // A struct of plain fields has a JSON form.
        let body = serde_json::to_string(message).unwrap_or_default();
        Self { body, group: message.tenant_id.to_string() }
    }
}

/// A received message that should be seen again, but not before some time has passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delay {
    /// Receipt handle of the message.
    pub receipt_handle: String,
    /// Time until it is seen again, in whole seconds.
    pub time: Duration,
}

/// Queues: SQS, or whatever stands in for it where handlers are driven in process.
///
/// Both methods take any number of entries and answer one result for each, in the same order: `Busy` when another try
/// may succeed, `Fault` when this entry never will. An entry without a positive answer counts as not sent, although it
/// may have been: receivers tolerate duplicates.
pub trait MessageQueue: Send + Sync {
    /// Sends messages.
    fn send<'a>(&'a self, queue: Queue, messages: &'a [Outgoing]) -> BoxFuture<'a, Vec<Result<()>>>;

    /// Changes how long received messages stay invisible.
    fn delay<'a>(&'a self, queue: Queue, delays: &'a [Delay]) -> BoxFuture<'a, Vec<Result<()>>>;
}
