//! What travels through the queues. Two versions of the system share a queue during every deploy, so unknown fields
//! are tolerated and an unknown version is refused.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Queues, named after their consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Queue {
    /// Orders to reserve numbers for.
    ReserveNumbers,
    /// Orders whose numbers go back to stock.
    ReleaseNumbers,
}

impl Queue {
    /// Every queue.
    pub const ALL: [Self; 2] = [Self::ReserveNumbers, Self::ReleaseNumbers];

    /// The name of the queue, which is the name of its worker.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReserveNumbers => "reserve-numbers",
            Self::ReleaseNumbers => "release-numbers",
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

/// A message about one order; the same shape for every queue so far.
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
    #[error("the body is not an order message: {0}")]
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

    /// Reads a message body.
    ///
    /// # Errors
    /// [`MessageError`] when it is not JSON of this shape or of another version.
    pub fn parse(body: &str) -> Result<Self, MessageError> {
        #[derive(Deserialize)]
        struct Version {
            v: u32,
        }
        let Version { v } = serde_json::from_str(body)?;
        if v != VERSION {
            return Err(MessageError::UnknownVersion(v));
        }
        Ok(serde_json::from_str(body)?)
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
