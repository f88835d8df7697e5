//! One message in a queue.

use std::time::Duration;

use aws_lambda_events::sqs::SqsMessage;
use domain::messages::Queue;

pub(super) struct Message {
    id: u64,
    pub(super) body: String,
    group: String,
    pub(super) visible_at: Duration,
    pub(super) receives: u32,
}

impl Message {
    pub(super) const fn new(id: u64, body: String, group: String, visible_at: Duration) -> Self {
        Self { id, body, group, visible_at, receives: 0 }
    }

    pub(super) fn id(&self) -> String {
        format!("message-{}", self.id)
    }

    /// Any receipt of the message, old ones too, as with SQS.
    pub(super) fn has_receipt(&self, receipt: &str) -> bool {
        receipt.rsplit_once('/').is_some_and(|(id, _)| id == self.id())
    }

    /// Hands the message out and hides it for a while.
    pub(super) fn receive(&mut self, queue: Queue, now: Duration, hidden: Duration) -> SqsMessage {
        self.receives += 1;
        self.visible_at = now + hidden;
        let mut record = SqsMessage::default();
        record.message_id = Some(self.id());
        record.receipt_handle = Some(format!("{}/{}", self.id(), self.receives));
        record.body = Some(self.body.clone());
        record.attributes.insert("ApproximateReceiveCount".into(), self.receives.to_string());
        record.attributes.insert("MessageGroupId".into(), self.group.clone());
        record.event_source = Some("aws:sqs".into());
        record.event_source_arn = Some(format!("arn:aws:sqs:us-east-1:123456789012:{}", queue.name()));
        record.aws_region = Some("us-east-1".into());
        record
    }
}
