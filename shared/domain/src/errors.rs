//! The three ways things do not work out, independent of any transport.
//!
//! HTTP and SQS translate them once each, in `edge`: a rejection is final and explained, a busy answer invites
//! another try, a fault is ours and stays opaque outside.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Result of a rule or a store function.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The rules say no. Trying again unchanged gives the same answer.
    #[error("rejected: {0}")]
    Rejected(Reason),
    /// Not now: a lock, a full pool, a database that is away. Trying again later is right.
    #[error("busy: {0}")]
    Busy(#[source] Cause),
    /// A bug or a broken promise of a part below us.
    #[error("fault: {0}")]
    Fault(#[source] Cause),
}

/// An error from below, kept whole for the one place that logs it.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

impl Error {
    /// A fault described by words, for broken invariants that have no underlying error.
    pub fn fault(what: impl fmt::Display) -> Self {
        Self::Fault(what.to_string().into())
    }

    /// A busy answer described by words.
    pub fn busy(what: impl fmt::Display) -> Self {
        Self::Busy(what.to_string().into())
    }

    /// The error and all its causes on one line, for the log.
    #[must_use]
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(error) = source {
            let part = error.to_string();
            if !text.ends_with(&part) {
                text.push_str(": ");
                text.push_str(&part);
            }
            source = error.source();
        }
        text
    }
}

impl From<Reason> for Error {
    fn from(reason: Reason) -> Self {
        Self::Rejected(reason)
    }
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $title:literal;)+) => {
        /// Why the rules say no. The code is part of the public contract and never changes its meaning.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Reason { $($(#[$doc])* #[serde(rename = $code)] $name,)+ }

        impl Reason {
            /// Every reason, for documentation and tests.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// Stable kebab-case code.
            #[must_use]
            pub const fn code(self) -> &'static str { match self { $(Self::$name => $code,)+ } }

            /// Short English sentence for people.
            #[must_use]
            pub const fn title(self) -> &'static str { match self { $(Self::$name => $title,)+ } }

            /// The reason with this code.
            #[must_use]
            pub fn from_code(code: &str) -> Option<Self> {
                match code { $($code => Some(Self::$name),)+ _ => None }
            }
        }
    };
}

reasons! {
    /// No such thing, or not yours.
    NotFound = "not-found", "There is no such resource";
    /// No handler for this method here.
    MethodNotAllowed = "method-not-allowed", "The method is not allowed here";
    /// The request cannot be understood.
    Invalid = "invalid", "The request is not valid";
    /// The body is larger than allowed.
    TooLarge = "too-large", "The request is too large";
    /// The body is not JSON.
    UnsupportedMediaType = "unsupported-media-type", "The body must be JSON";
    /// No valid token.
    Unauthorized = "unauthorized", "A valid token is required";
    /// The role may not do this.
    Forbidden = "forbidden", "Your role does not allow this";
    /// The session has not proved for a while who it belongs to.
    NotFresh = "not-fresh", "Prove again who you are, then repeat this";
    /// A link that is used, old or not ours.
    LinkWrong = "link-wrong", "The link is used up or no longer good";
    /// The only owner of a store.
    LastOwner = "last-owner", "A store needs an owner";
    /// Somebody who is staff already.
    StaffExists = "staff-exists", "That address belongs to the store's staff already";
    /// A change that does not say what it was made from.
    PreconditionRequired = "precondition-required", "An If-Match header is required";
    /// Somebody else changed it first.
    PreconditionFailed = "precondition-failed", "It has changed since you read it";
    /// The header is required on this route.
    KeyMissing = "key-missing", "An Idempotency-Key header is required";
    /// Same key, other request.
    KeyReused = "key-reused", "The Idempotency-Key was used with another request";
    /// Same key, still being worked on.
    KeyInFlight = "key-in-flight", "A request with this Idempotency-Key is in progress";
    /// A number outside the product's range.
    OutOfRange = "out-of-range", "A number is outside the product's range";
    /// Before the opening.
    NotOpen = "not-open", "The sale has not opened yet";
    /// After the closing.
    SaleClosed = "sale-closed", "The sale has closed";
    /// The seller, the store or the platform has paused intake.
    SalesPaused = "sales-paused", "Sales are paused";
    /// The queue is older than allowed.
    QueueFull = "queue-full", "Too many orders are waiting";
    /// Every number is paid or blocked, or none was free when the order was served.
    SoldOut = "sold-out", "No numbers are left";
    /// More than the product allows an order or a buyer.
    LimitExceeded = "limit-exceeded", "That is more than the limit allows";
    /// The buyer has too many orders that have not ended.
    TooManyOpenOrders = "too-many-open-orders", "Too many of your orders are still open";
    /// The state does not allow it.
    WrongState = "wrong-state", "The order's state does not allow this";
    /// Somebody else is working on it.
    Busy = "busy", "The order is being worked on";
    /// Polled before `poll_after`.
    TooEarly = "too-early", "Please wait before asking again";
    /// An operator has halted everything that changes the product's numbers.
    ReservingHalted = "reserving-halted", "The product's numbers must not change at the moment";
    /// Numbers that are not to be had: others took them first, or they are not what an act of staff wants them to be.
    NumbersTaken = "numbers-taken", "Some of the numbers are in other hands";
    /// Waited past its deadline.
    QueuedTooLong = "queued-too-long", "The order waited too long in the queue";
    /// The sale ended while the order waited.
    SaleEnded = "sale-ended", "The sale ended before the order was served";
    /// Too little of the hold is left to start a payment.
    HoldExpired = "hold-expired", "The time to pay is over";
    /// The product cannot be paid that way.
    MethodUnavailable = "method-unavailable", "The order cannot be paid that way";
    /// The gateway has not said what became of another payment of the order.
    PaymentInFlight = "payment-in-flight", "Another payment of the order is in progress";
    /// The gateway refused the payment.
    PaymentDeclined = "payment-declined", "The payment was declined";
    /// The order has been tried to be paid, or the code to be guessed, too often.
    TooManyAttempts = "too-many-attempts", "There were too many attempts";
    /// Not the code, or one that is used or old.
    CodeWrong = "code-wrong", "The code is wrong or no longer good";
    /// A limit is used up for the moment.
    TooManyRequests = "too-many-requests", "Too many requests";
    /// The store sends no codes to phones of that country.
    CountryNotServed = "country-not-served", "The store does not serve phones of that country";
    /// The payment under this key has ended unpaid. Another needs another key.
    PaymentEnded = "payment-ended", "That payment has ended; pay again with another Idempotency-Key";
    /// The gateway takes no payment from us.
    GatewayUnavailable = "gateway-unavailable", "The payment gateway does not work at the moment";
    /// A webhook whose signature is missing, wrong or old.
    BadSignature = "bad-signature", "The signature is not valid";
    /// A local time that the clocks skip.
    TimeSkipped = "time-skipped", "The local time does not exist on that day";
    /// A product field that is frozen after the first accepted order, or an opening that has passed.
    Frozen = "frozen", "The field can no longer change";
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_kebab() {
        let mut seen = std::collections::HashSet::new();
        for reason in Reason::ALL {
            assert!(seen.insert(reason.code()), "{} twice", reason.code());
            assert!(reason.code().bytes().all(|b| b.is_ascii_lowercase() || b == b'-'));
            assert_eq!(Reason::from_code(reason.code()), Some(*reason));
        }
    }

    #[test]
    fn chain_names_every_cause_once() {
        let error = Error::Busy(Box::new(std::io::Error::other("pool is full")));
        assert_eq!(error.chain(), "busy: pool is full");
    }
}
