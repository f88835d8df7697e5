//! What travels through the queues. Two versions of the system share a queue during every deploy, so unknown fields
//! are tolerated and an unknown version is refused.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::notices::Kind;
use crate::payments::Gateway;

/// Queues, named after their consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Queue {
    /// Orders to reserve numbers for.
    ReserveNumbers,
    /// Orders whose numbers go back to stock.
    ReleaseNumbers,
    /// Orders whose money has something to settle, and events of gateways.
    SettlePayment,
    /// Login codes to send.
    SendLoginCode,
    /// Notices about orders to send.
    SendNotice,
    /// Exports to write.
    WriteExports,
    /// Uploads to look at.
    CheckUploads,
}

impl Queue {
    /// Every queue.
    pub const ALL: [Self; 7] = [
        Self::ReserveNumbers,
        Self::ReleaseNumbers,
        Self::SettlePayment,
        Self::SendLoginCode,
        Self::SendNotice,
        Self::WriteExports,
        Self::CheckUploads,
    ];

    /// Those whose messages can be about an order: what the outbox owes goes to these.
    pub const OF_ORDERS: [Self; 3] = [Self::ReserveNumbers, Self::ReleaseNumbers, Self::SettlePayment];

    /// The name of the queue, which is the name of its worker.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReserveNumbers => "reserve-numbers",
            Self::ReleaseNumbers => "release-numbers",
            Self::SettlePayment => "settle-payment",
            Self::SendLoginCode => "send-login-code",
            Self::SendNotice => "send-notice",
            Self::WriteExports => "write-exports",
            Self::CheckUploads => "check-uploads",
        }
    }

    /// The queue with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|queue| queue.name() == name)
    }
}

/// The version that this code writes.
pub const VERSION: u32 = 1;

/// A message of a queue.
pub trait Message: Sized + Clone {
    /// Reads a message body.
    ///
    /// # Errors
    /// [`MessageError`] when it is not JSON of this shape or of another version.
    fn parse(body: &str) -> Result<Self, MessageError>;
}

/// A message about one order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderMessage {
    /// Version of the shape.
    pub v: u32,
    /// The order.
    pub order_id: Uuid,
    /// Its product.
    pub product_id: Uuid,
    /// Its tenant, also the message group for fair queueing.
    pub tenant_id: Uuid,
}

/// Why a message cannot be understood. Such a message goes to the DLQ, alone.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// Not JSON, or not the fields we need.
    #[error("the body is not a message of this queue: {0}")]
    Malformed(#[from] serde_json::Error),
    /// A version that this code does not know.
    #[error("version {0} is unknown")]
    UnknownVersion(u32),
}

impl OrderMessage {
    /// A message of the current version.
    #[must_use]
    pub const fn new(order_id: Uuid, product_id: Uuid, tenant_id: Uuid) -> Self {
        Self { v: VERSION, order_id, product_id, tenant_id }
    }

    /// The message body.
    #[must_use]
    pub fn body(&self) -> String {
        format!(
            r#"{{"v":{},"order_id":"{}","product_id":"{}","tenant_id":"{}"}}"#,
            self.v, self.order_id, self.product_id, self.tenant_id
        )
    }
}

impl Message for OrderMessage {
    fn parse(body: &str) -> Result<Self, MessageError> {
        check_version(body)?;
        Ok(serde_json::from_str(body)?)
    }
}

/// A message about something that a gateway told us.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventMessage {
    /// Version of the shape.
    pub v: u32,
    /// The store, also the message group for fair queueing.
    pub tenant_id: Uuid,
    /// Its gateway.
    pub gateway: Gateway,
    /// The gateway's id of the event.
    pub event_id: String,
}

impl EventMessage {
    /// A message of the current version.
    #[must_use]
    pub fn new(tenant_id: Uuid, gateway: Gateway, event_id: &str) -> Self {
        Self { v: VERSION, tenant_id, gateway, event_id: event_id.to_owned() }
    }
}

/// A message about a login code to send. It carries no phone and no code: both are looked up, or derived, when it is
/// sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginCodeMessage {
    /// Version of the shape.
    pub v: u32,
    /// The store, also the message group for fair queueing.
    pub tenant_id: Uuid,
    /// The asking session.
    pub asking_id: Uuid,
}

impl LoginCodeMessage {
    /// A message of the current version.
    #[must_use]
    pub const fn new(tenant_id: Uuid, asking_id: Uuid) -> Self {
        Self { v: VERSION, tenant_id, asking_id }
    }
}

impl Message for LoginCodeMessage {
    fn parse(body: &str) -> Result<Self, MessageError> {
        check_version(body)?;
        Ok(serde_json::from_str(body)?)
    }
}

/// A message about a notice to send. It carries nothing of what the notice says: that is looked up when it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoticeMessage {
    /// Version of the shape.
    pub v: u32,
    /// The store, also the message group for fair queueing.
    pub tenant_id: Uuid,
    /// The order.
    pub order_id: Uuid,
    /// What about it.
    pub kind: Kind,
}

impl NoticeMessage {
    /// A message of the current version.
    #[must_use]
    pub const fn new(tenant_id: Uuid, order_id: Uuid, kind: Kind) -> Self {
        Self { v: VERSION, tenant_id, order_id, kind }
    }
}

impl Message for NoticeMessage {
    fn parse(body: &str) -> Result<Self, MessageError> {
        check_version(body)?;
        Ok(serde_json::from_str(body)?)
    }
}

/// A message about an export to write. It carries nothing of it: its row says what there is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportMessage {
    /// Version of the shape.
    pub v: u32,
    /// The store, also the message group for fair queueing.
    pub tenant_id: Uuid,
    /// The export.
    pub export_id: Uuid,
}

impl ExportMessage {
    /// A message of the current version.
    #[must_use]
    pub const fn new(tenant_id: Uuid, export_id: Uuid) -> Self {
        Self { v: VERSION, tenant_id, export_id }
    }
}

impl Message for ExportMessage {
    fn parse(body: &str) -> Result<Self, MessageError> {
        check_version(body)?;
        Ok(serde_json::from_str(body)?)
    }
}

/// A message about an upload whose bytes nobody has told us about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadMessage {
    /// Version of the shape.
    pub v: u32,
    /// The store, also the message group for fair queueing.
    pub tenant_id: Uuid,
    /// The upload.
    pub upload_id: Uuid,
}

impl UploadMessage {
    /// A message of the current version.
    #[must_use]
    pub const fn new(tenant_id: Uuid, upload_id: Uuid) -> Self {
        Self { v: VERSION, tenant_id, upload_id }
    }
}

/// What the queue of `check-uploads` carries: what the bucket tells us, and what we owe ourselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckMessage {
    /// Objects that were made, by their keys as they are in the bucket.
    Made(Vec<String>),
    /// An upload to look at.
    Upload(UploadMessage),
}

impl Message for CheckMessage {
    fn parse(body: &str) -> Result<Self, MessageError> {
        // The bucket's form is Amazon's: it has no version of ours.
        #[derive(Deserialize)]
        struct Notice {
            #[serde(rename = "Event")]
            event: Option<serde::de::IgnoredAny>,
            #[serde(rename = "Records")]
            records: Option<Vec<Entry>>,
        }
        #[derive(Deserialize)]
        struct Entry {
            s3: About,
        }
        #[derive(Deserialize)]
        struct About {
            object: Object,
        }
        #[derive(Deserialize)]
        struct Object {
            key: String,
        }
        let told: Notice = serde_json::from_str(body)?;
        if let Some(records) = told.records {
            return Ok(Self::Made(records.into_iter().map(|record| plain(&record.s3.object.key)).collect()));
        }
        if told.event.is_some() {
            // What a bucket sends when it is told to send.
            return Ok(Self::Made(Vec::new()));
        }
        check_version(body)?;
        Ok(Self::Upload(serde_json::from_str(body)?))
    }
}

/// A key as events have it, without what forms do to it. Ours have no other characters than these.
fn plain(key: &str) -> String {
    key.replace("%2F", "/").replace("%2f", "/")
}

/// What the queue of `settle-payment` carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettleMessage {
    /// An order whose money has something to settle.
    Order(OrderMessage),
    /// Something that a gateway told us.
    Event(EventMessage),
}

impl Message for SettleMessage {
    fn parse(body: &str) -> Result<Self, MessageError> {
        #[derive(Deserialize)]
        struct Kind {
            event_id: Option<serde::de::IgnoredAny>,
        }
        check_version(body)?;
        let Kind { event_id } = serde_json::from_str(body)?;
        Ok(match event_id {
            Some(_) => Self::Event(serde_json::from_str(body)?),
            None => Self::Order(serde_json::from_str(body)?),
        })
    }
}

fn check_version(body: &str) -> Result<(), MessageError> {
    #[derive(Deserialize)]
    struct Version {
        v: u32,
    }
    let Version { v } = serde_json::from_str(body)?;
    if v == VERSION { Ok(()) } else { Err(MessageError::UnknownVersion(v)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_round_trip_and_tolerate_newer_fields() {
        let message = OrderMessage::new(Uuid::from_u128(1), Uuid::from_u128(2), Uuid::from_u128(3));
        assert_eq!(OrderMessage::parse(&message.body()).unwrap(), message);
        let newer = message.body().replace('{', r#"{"priority":{"a":[1]},"#);
        assert_eq!(OrderMessage::parse(&newer).unwrap(), message);
    }

    #[test]
    fn a_settling_message_is_about_an_order_or_an_event() {
        let order = OrderMessage::new(Uuid::from_u128(1), Uuid::from_u128(2), Uuid::from_u128(3));
        assert_eq!(SettleMessage::parse(&order.body()).unwrap(), SettleMessage::Order(order));
        let event = EventMessage::new(Uuid::from_u128(3), Gateway::Stripe, "evt_1");
        let body = serde_json::to_string(&event).unwrap();
        assert_eq!(SettleMessage::parse(&body).unwrap(), SettleMessage::Event(event));
        assert!(SettleMessage::parse(&body.replace("stripe", "unheard-of")).is_err());
    }

    #[test]
    fn a_checking_message_is_the_buckets_or_ours() {
        let ours = UploadMessage::new(Uuid::from_u128(3), Uuid::from_u128(4));
        let body = serde_json::to_string(&ours).unwrap();
        assert_eq!(CheckMessage::parse(&body).unwrap(), CheckMessage::Upload(ours));
        let told =
            r#"{"Records":[{"eventVersion":"2.1","s3":{"bucket":{"name":"b"},"object":{"key":"a%2Fb/c","size":7}}}]}"#;
        assert_eq!(CheckMessage::parse(told).unwrap(), CheckMessage::Made(vec!["a/b/c".into()]));
        let test = r#"{"Service":"Amazon S3","Event":"s3:TestEvent","Bucket":"b"}"#;
        assert_eq!(CheckMessage::parse(test).unwrap(), CheckMessage::Made(Vec::new()));
        for bad in ["", "{}", "[]", r#"{"Records":[{}]}"#, &body.replace("\"v\":1", "\"v\":9")] {
            assert!(CheckMessage::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_message_about_a_code_names_neither_phone_nor_code() {
        let message = LoginCodeMessage::new(Uuid::from_u128(3), Uuid::from_u128(4));
        let body = serde_json::to_string(&message).unwrap();
        assert_eq!(LoginCodeMessage::parse(&body).unwrap(), message);
        let fields: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&body).unwrap();
        assert_eq!(fields.keys().collect::<Vec<_>>(), ["asking_id", "tenant_id", "v"]);
        assert!(LoginCodeMessage::parse(&body.replace("\"v\":1", "\"v\":9")).is_err());
    }

    #[test]
    fn a_message_about_a_notice_names_nobody() {
        let message = NoticeMessage::new(Uuid::from_u128(3), Uuid::from_u128(4), Kind::Paid);
        let body = serde_json::to_string(&message).unwrap();
        assert_eq!(NoticeMessage::parse(&body).unwrap(), message);
        let fields: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&body).unwrap();
        assert_eq!(fields.keys().collect::<Vec<_>>(), ["kind", "order_id", "tenant_id", "v"]);
        assert!(NoticeMessage::parse(&body.replace("paid", "unheard-of")).is_err());
    }

    #[test]
    fn other_versions_and_other_shapes_are_refused() {
        let body = OrderMessage::new(Uuid::nil(), Uuid::nil(), Uuid::nil()).body();
        assert!(matches!(
            OrderMessage::parse(&body.replace("\"v\":1", "\"v\":9")),
            Err(MessageError::UnknownVersion(9))
        ));
        for bad in ["", "{", "null", "[]", "{}", r#"{"v":1}"#, r#"{"v":"1"}"#] {
            assert!(matches!(OrderMessage::parse(bad), Err(MessageError::Malformed(_))), "{bad}");
        }
    }
}
