//! Payments: what a buyer may pay with, what a gateway may say about a payment, and what that makes of the order.
//!
//! [`observed`] is a gateway's answer in our words. [`step`] says what to ask a gateway next, [`outcome`] what the
//! recorded states make of an order. Nothing here knows an adapter, a table or a clock.
//!
//! Attempts, refunds and disputes have state machines of their own. Each state has a rank, and a state that a gateway
//! reports applies only if the rank grows: answers come late, twice and out of order.

mod observed;
mod outcome;
mod step;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

pub use observed::{Instructions, Observed, ObservedDispute, ObservedRefund};
pub use outcome::{Capture, OrderMoney, Outcome, Use, outcome};
pub use step::{AttemptView, OrderView, Step, next_step};

/// The key of what staff book, once per order. A buyer's key has no blanks, so that no buyer can have used it.
pub const BOOKED_BY_STAFF: &str = "booked by staff";

/// The idempotency key under which a gateway is asked to do one thing: the same for every try, another for everything
/// else. Hexadecimal, 64 characters.
#[must_use]
pub fn key(tenant_id: Uuid, order_id: Uuid, operation: &str, number: &str) -> String {
    let digest = Sha256::digest(format!("{tenant_id}/{order_id}/{operation}/{number}"));
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What makes two requests to pay under one key the same.
#[must_use]
pub fn fingerprint(method: Method, return_url: Option<&str>) -> [u8; 32] {
    Sha256::digest(format!("{}\0{}", method.word(), return_url.unwrap_or_default())).into()
}

macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $name { $($(#[$doc])* #[serde(rename = $word)] $variant,)+ }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The word used in the database, in JSON and in the documentation.
            #[must_use]
            pub const fn word(self) -> &'static str { match self { $(Self::$variant => $word,)+ } }

            /// The value with this word.
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

words! {
    /// Who moves the money.
    Gateway {
        /// Stripe: cards, by PaymentIntent or by Checkout Session.
        Stripe = "stripe",
        /// Mercado Pago: Pix.
        MercadoPago = "mercado-pago",
        /// The pretended gateway: a page on which anybody pays with nothing. Never in production.
        Sandbox = "sandbox",
        /// Cash and bank transfers, booked by staff.
        Manual = "manual",
    }
}

words! {
    /// How a buyer pays.
    Method {
        /// A form in the storefront: the answer is a client secret.
        Card = "card",
        /// A page of the gateway: the answer is an address to go to.
        Checkout = "checkout",
        /// A QR code and a text to copy.
        Pix = "pix",
        /// Booked by staff.
        Manual = "manual",
    }
}

impl Method {
    /// Whether one can pay in this currency that way. Pix is Brazil's. Stripe counts some currencies in other units
    /// than ISO 4217, so that a hundredth or the hundredfold of the price would be charged
    /// (<https://docs.stripe.com/currencies#special-cases>).
    #[must_use]
    pub fn takes(self, currency: &str) -> bool {
        match self {
            Self::Pix => currency == "BRL",
            Self::Card | Self::Checkout => !["ISK", "MGA", "UGX"].contains(&currency),
            Self::Manual => true,
        }
    }
}

impl Gateway {
    /// Whether a buyer can pay by this method there.
    #[must_use]
    pub const fn serves(self, method: Method) -> bool {
        matches!(
            (self, method),
            (Self::Stripe | Self::Sandbox, Method::Card | Method::Checkout)
                | (Self::MercadoPago, Method::Pix)
                | (Self::Manual, Method::Manual)
        )
    }
}

words! {
    /// When money is taken.
    CaptureMode {
        /// At once.
        Automatic = "automatic",
        /// Authorised first, captured when the order still holds its numbers.
        Manual = "manual",
    }
}

words! {
    /// What to do with money that arrives when the numbers have gone back to stock.
    LateMoney {
        /// The same numbers if all are still free, else the money back.
        Retake = "retake",
        /// The same numbers, or others if the buyer's order allowed replacing, else the money back.
        Substitute = "substitute",
        /// Always the money back.
        Refund = "refund",
    }
}

words! {
    /// Where an attempt to pay is.
    AttemptState {
        /// Recorded; the gateway has not answered for it, so it may or may not exist there.
        Created = "created",
        /// The gateway waits for the buyer.
        Open = "open",
        /// The gateway waits for a bank.
        Processing = "processing",
        /// The money is held for us and not taken.
        Authorised = "authorised",
        /// Definitely refused.
        Declined = "declined",
        /// The gateway has confirmed that it will not be paid.
        Cancelled = "cancelled",
        /// The gateway does not know it and its key is never sent again.
        Abandoned = "abandoned",
        /// The money was taken. Refunds do not change that; they are counted beside it.
        Captured = "captured",
    }
}

impl AttemptState {
    /// Grows along every path that a payment can take. Money outranks everything: an attempt that was given up may
    /// still be found captured.
    #[must_use]
    pub const fn rank(self) -> u8 {
        match self {
            Self::Created => 0,
            Self::Open => 1,
            Self::Processing => 2,
            Self::Authorised => 3,
            Self::Declined | Self::Cancelled | Self::Abandoned => 4,
            Self::Captured => 5,
        }
    }

    /// Whether the buyer may still pay by it, for all we know.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Created | Self::Open | Self::Processing | Self::Authorised)
    }
}

words! {
    /// Where a refund is.
    RefundState {
        /// Recorded; the gateway has not accepted it.
        Created = "created",
        /// The gateway has accepted it.
        Pending = "pending",
        /// The money is back.
        Succeeded = "succeeded",
        /// The money did not reach the buyer, who is still owed.
        Failed = "failed",
    }
}

impl RefundState {
    /// Grows along every path. A refund that had succeeded can still fail when the buyer's bank returns it.
    #[must_use]
    pub const fn rank(self) -> u8 {
        match self {
            Self::Created => 0,
            Self::Pending => 1,
            Self::Succeeded => 2,
            Self::Failed => 3,
        }
    }

    /// Whether the gateway has accepted it: from then on the numbers that it gives up are back in stock.
    #[must_use]
    pub const fn is_accepted(self) -> bool {
        matches!(self, Self::Pending | Self::Succeeded)
    }
}

words! {
    /// Where a dispute is.
    DisputeState {
        /// The buyer's bank wants the money back.
        Open = "open",
        /// We keep the money.
        Won = "won",
        /// The money is gone.
        Lost = "lost",
    }
}

impl DisputeState {
    /// Grows along every path.
    #[must_use]
    pub const fn rank(self) -> u8 {
        match self {
            Self::Open => 0,
            Self::Won => 1,
            Self::Lost => 2,
        }
    }
}

words! {
    /// Why money goes back.
    RefundCause {
        /// Staff decided so.
        Staff = "staff",
        /// The buyer had cancelled before the money arrived.
        Cancelled = "cancelled",
        /// The numbers were gone when the money arrived.
        Late = "late",
        /// The order had been paid by another attempt.
        Duplicate = "duplicate",
        /// The amount or the currency was not what the order costs.
        WrongAmount = "wrong-amount",
        /// Made in the gateway's own dashboard.
        Elsewhere = "elsewhere",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip() {
        for state in AttemptState::ALL {
            assert_eq!(AttemptState::from_word(state.word()), Some(*state));
            assert_eq!(serde_json::to_value(state).unwrap(), state.word());
        }
        assert_eq!(Gateway::from_word("mercado-pago"), Some(Gateway::MercadoPago));
        assert_eq!(Gateway::from_word("Stripe"), None);
    }

    #[test]
    fn an_attempt_that_has_ended_can_only_be_found_captured() {
        for ended in AttemptState::ALL.iter().filter(|state| !state.is_open() && **state != AttemptState::Captured) {
            for next in AttemptState::ALL.iter().filter(|next| next.rank() > ended.rank()) {
                assert_eq!(*next, AttemptState::Captured);
            }
        }
    }

    #[test]
    fn keys_differ_by_what_is_done() {
        let of = |order, operation, number| key(Uuid::nil(), Uuid::from_u128(order), operation, number);
        let keys = [of(1, "create", "1"), of(1, "create", "2"), of(1, "void", "1"), of(2, "create", "1")];
        assert!(keys.iter().all(|key| key.len() == 64));
        assert_eq!(keys.iter().collect::<std::collections::HashSet<_>>().len(), keys.len());
        assert_eq!(of(1, "create", "1"), keys[0]);
    }

    #[test]
    fn a_method_takes_currencies_whose_amounts_mean_the_same_to_both() {
        for (method, currency, takes) in [
            (Method::Pix, "BRL", true),
            (Method::Pix, "EUR", false),
            (Method::Card, "BRL", true),
            (Method::Card, "JPY", true),
            (Method::Card, "ISK", false),
            (Method::Checkout, "UGX", false),
            (Method::Checkout, "MGA", false),
            (Method::Manual, "ISK", true),
        ] {
            assert_eq!(method.takes(currency), takes, "{method:?} {currency}");
        }
    }

    #[test]
    fn each_method_of_a_buyer_is_served_by_some_gateway() {
        for method in Method::ALL {
            assert!(Gateway::ALL.iter().any(|gateway| gateway.serves(*method)), "{method:?}");
        }
        assert!(!Gateway::Manual.serves(Method::Card));
    }
}
