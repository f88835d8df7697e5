//! One standard queue of SQS, by AWS's documentation. Time is an argument, so that any clock may drive it.
//!
//! Modelled: at-least-once delivery, no order, delays, visibility, receipt handles, receive counts, the dead-letter
//! queue, fair queueing by message group. Not modelled: retention, the limit of messages in flight.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use aws_lambda_events::sqs::SqsMessage;
use rand::RngExt;
use rand::rngs::StdRng;

/// Longest delay of a message, and longest visibility timeout.
const DELAY_MAX: Duration = Duration::from_secs(900);
const VISIBILITY_MAX: Duration = Duration::from_secs(12 * 3_600);
/// Messages that may overtake each other.
const DISORDER: usize = 64;

/// What a queue promises, as its template would say, and how hard its weak promises are taken.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// How long a received message stays invisible.
    pub visibility: Duration,
    /// Receives after which a message goes to the dead-letter queue.
    pub receives_max: u32,
    /// Part of the receives that leave the message visible, so that another worker gets it at the same time, and of
    /// the deletions that a copy of the message survives.
    pub duplicates: f64,
    /// Part of the receives that do not take the oldest message.
    pub out_of_order: f64,
    /// Whether the group goes first of which the fewest messages are being worked on.
    pub fair: bool,
}

impl Default for Settings {
    fn default() -> Self {
        let visibility = Duration::from_secs(180);
        Self { visibility, receives_max: 10, duplicates: 0.01, out_of_order: 0.2, fair: false }
    }
}

/// Why a queue refuses, in the words of its API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// A value outside its range.
    InvalidParameterValue,
    /// The receipt handle is no message's, or not its latest.
    ReceiptHandleIsInvalid,
    /// The message has become visible again.
    MessageNotInflight,
}

impl Refusal {
    /// The error code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::InvalidParameterValue => "InvalidParameterValue",
            Self::ReceiptHandleIsInvalid => "ReceiptHandleIsInvalid",
            Self::MessageNotInflight => "MessageNotInflight",
        }
    }
}

struct Message {
    body: String,
    group: String,
    sent_at: Duration,
    visible_at: Duration,
    receives: u32,
}

/// Messages by when they are visible.
type ByTime = BTreeSet<(Duration, u64)>;

/// A queue with its dead-letter queue.
pub struct StandardQueue {
    name: &'static str,
    settings: Settings,
    rng: StdRng,
    last_id: u64,
    messages: HashMap<u64, Message>,
    by_time: ByTime,
    groups: BTreeMap<String, ByTime>,
    dead: Vec<(String, String)>,
}

impl StandardQueue {
    /// An empty queue.
    #[must_use]
    pub fn new(name: &'static str, settings: Settings, rng: StdRng) -> Self {
        let (messages, by_time, groups) = (HashMap::new(), ByTime::new(), BTreeMap::new());
        Self { name, settings, rng, last_id: 0, messages, by_time, groups, dead: Vec::new() }
    }

    /// Takes a message in, visible after a delay; its id.
    ///
    /// # Errors
    /// The delay is longer than a queue allows.
    pub fn send(&mut self, now: Duration, body: String, group: String, delay: Duration) -> Result<String, Refusal> {
        if delay > DELAY_MAX {
            return Err(Refusal::InvalidParameterValue);
        }
        self.last_id += 1;
        let message = Message { body, group, sent_at: now, visible_at: now + delay, receives: 0 };
        self.messages.insert(self.last_id, message);
        self.list(self.last_id, None, Some(now + delay));
        Ok(message_id(self.last_id))
    }

    /// Hands out a visible message and hides it. One that was received too often goes to the dead-letter queue.
    pub fn receive(&mut self, now: Duration) -> Option<SqsMessage> {
        let skip =
            if self.rng.random_bool(self.settings.out_of_order) { self.rng.random_range(0..DISORDER) } else { 0 };
        let duplicate = self.rng.random_bool(self.settings.duplicates);
        loop {
            let (visible_at, id) = self.next(now, skip)?;
            if self.messages[&id].receives >= self.settings.receives_max {
                let message = self.remove(id)?;
                self.dead.push((message.body, message.group));
                continue;
            }
            let hidden = if duplicate { Duration::ZERO } else { self.settings.visibility };
            self.list(id, Some(visible_at), Some(now + hidden));
            let message = self.messages.get_mut(&id)?;
            message.receives += 1;
            message.visible_at = now + hidden;
            return Some(record(self.name, id, message));
        }
    }

    /// Deletes a message by its latest receipt handle. With an older one nothing happens and nobody is told.
    pub fn delete(&mut self, receipt: &str) {
        let survives = self.rng.random_bool(self.settings.duplicates);
        if let Ok(id) = self.latest(receipt)
            && !survives
        {
            self.remove(id);
        }
    }

    /// Makes a message in flight visible after this time.
    ///
    /// # Errors
    /// The time is longer than a queue allows, the receipt handle is not the latest of a message, or the message is
    /// not in flight.
    pub fn change_visibility(&mut self, now: Duration, receipt: &str, time: Duration) -> Result<(), Refusal> {
        if time > VISIBILITY_MAX {
            return Err(Refusal::InvalidParameterValue);
        }
        let id = self.latest(receipt)?;
        let message = self.messages.get_mut(&id).ok_or(Refusal::ReceiptHandleIsInvalid)?;
        if message.visible_at <= now {
            return Err(Refusal::MessageNotInflight);
        }
        let before = std::mem::replace(&mut message.visible_at, now + time);
        self.list(id, Some(before), Some(now + time));
        Ok(())
    }

    /// When the next message becomes visible, if there is one.
    #[must_use]
    pub fn next_visible(&self) -> Option<Duration> {
        self.by_time.first().map(|(visible_at, _)| *visible_at)
    }

    /// When the last message becomes visible, if there is one.
    #[must_use]
    pub fn last_visible(&self) -> Option<Duration> {
        self.by_time.last().map(|(visible_at, _)| *visible_at)
    }

    /// Messages that are visible, delayed or in flight.
    #[must_use]
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Bodies that are visible or in flight.
    #[must_use]
    pub fn bodies(&self) -> Vec<String> {
        self.messages.values().map(|message| message.body.clone()).collect()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Bodies in the dead-letter queue.
    #[must_use]
    pub fn dead(&self) -> Vec<String> {
        self.dead.iter().map(|(body, _)| body.clone()).collect()
    }

    /// Moves the dead-letter queue's messages back, as new ones; how many there were.
    pub fn redrive(&mut self, now: Duration) -> usize {
        let dead = std::mem::take(&mut self.dead);
        let count = dead.len();
        for (body, group) in dead {
            self.send(now, body, group, Duration::ZERO).expect("no delay is too long");
        }
        count
    }

    fn latest(&self, receipt: &str) -> Result<u64, Refusal> {
        let parts = receipt.split_once('/').and_then(|(id, receives)| Some((number_of(id)?, receives.parse().ok()?)));
        let (id, receives): (u64, u32) = parts.ok_or(Refusal::ReceiptHandleIsInvalid)?;
        let latest = self.messages.get(&id).is_some_and(|message| message.receives == receives);
        if latest { Ok(id) } else { Err(Refusal::ReceiptHandleIsInvalid) }
    }

    fn remove(&mut self, id: u64) -> Option<Message> {
        self.list(id, Some(self.messages.get(&id)?.visible_at), None);
        self.messages.remove(&id)
    }

    /// When the next message was visible, and which it is: the oldest of all, or of the group that is treated best.
    fn next(&self, now: Duration, skip: usize) -> Option<(Duration, u64)> {
        let visible = |messages: &ByTime| messages.range(..=(now, u64::MAX)).take(skip + 1).last().copied();
        if !self.settings.fair {
            return visible(&self.by_time);
        }
        let waiting = self.groups.values().filter(|messages| messages.first().is_some_and(|(at, _)| *at <= now));
        let under_way = |messages: &ByTime| messages.range((now, u64::MAX)..).count();
        visible(waiting.min_by_key(|messages| (under_way(messages), messages.first().copied()))?)
    }

    /// Moves a message in the lists from one time to another; none: it was not or will not be there.
    fn list(&mut self, id: u64, from: Option<Duration>, to: Option<Duration>) {
        let group = self.groups.entry(self.messages[&id].group.clone()).or_default();
        if let Some(from) = from {
            self.by_time.remove(&(from, id));
            group.remove(&(from, id));
        }
        if let Some(to) = to {
            self.by_time.insert((to, id));
            group.insert((to, id));
        }
    }
}

fn message_id(id: u64) -> String {
    format!("message-{id}")
}

fn number_of(message_id: &str) -> Option<u64> {
    message_id.strip_prefix("message-")?.parse().ok()
}

/// The message as Lambda's event source mapping passes it on.
fn record(queue: &str, id: u64, message: &Message) -> SqsMessage {
    let mut record = SqsMessage::default();
    record.message_id = Some(message_id(id));
    record.receipt_handle = Some(format!("{}/{}", message_id(id), message.receives));
    record.body = Some(message.body.clone());
    record.attributes.insert("ApproximateReceiveCount".into(), message.receives.to_string());
    record.attributes.insert("SentTimestamp".into(), message.sent_at.as_millis().to_string());
    record.attributes.insert("MessageGroupId".into(), message.group.clone());
    record.event_source = Some("aws:sqs".into());
    record.event_source_arn = Some(format!("arn:aws:sqs:us-east-1:123456789012:{queue}"));
    record.aws_region = Some("us-east-1".into());
    record
}

#[cfg(test)]
mod tests;
