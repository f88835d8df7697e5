//! A payment and what may become of it, whatever the wire format. No clock: times are arguments.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use time::{Duration, OffsetDateTime};

use super::refunds::{Dispute, DisputeState, Refund, RefundState};

/// How long authorised money waits for its capture. Stripe, "Place a hold on a payment method".
pub(super) const CAPTURE_WINDOW: Duration = Duration::days(7);

/// How a payment came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A PaymentIntent.
    Intent,
    /// A Checkout Session; its PaymentIntent exists from the buyer's first try.
    Session,
    /// A payment with Pix.
    Pix,
}

/// Where a payment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PaymentState {
    /// It waits for its buyer.
    Open,
    /// Its money is set aside until the merchant takes it.
    Authorised,
    /// Its money was taken.
    Captured,
    /// The merchant cancelled it, or did not take the money in time.
    Cancelled,
    /// Its time ran out.
    Expired,
    /// It was refused for good.
    Declined,
}

impl PaymentState {
    /// Whether the buyer has paid or can pay in the usual way.
    #[must_use]
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Open | Self::Authorised | Self::Captured)
    }
}

/// Why the gateway does not do what it was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Not in this state.
    State,
    /// More than there is.
    TooMuch,
    /// All of it went back already.
    AlreadyRefunded,
    /// The money is disputed or lost.
    Disputed,
}

/// A payment.
#[derive(Debug, Clone)]
pub(super) struct Payment {
    pub(super) number: u64,
    pub(super) account: usize,
    pub(super) kind: Kind,
    pub(super) key: Option<String>,
    pub(super) amount_minor: i64,
    /// Upper case.
    pub(super) currency: String,
    pub(super) is_manual: bool,
    /// Of the PaymentIntent or the payment.
    pub(super) metadata: BTreeMap<String, String>,
    /// Of the Checkout Session.
    pub(super) session_metadata: BTreeMap<String, String>,
    /// `client_reference_id` or `external_reference`.
    pub(super) reference: Option<String>,
    pub(super) description: Option<String>,
    pub(super) email: Option<String>,
    pub(super) success_url: Option<String>,
    pub(super) cancel_url: Option<String>,
    pub(super) expires_at: Option<OffsetDateTime>,
    pub(super) state: PaymentState,
    pub(super) captured_minor: i64,
    pub(super) captures: u32,
    pub(super) is_authorised_once: bool,
    pub(super) decline_code: Option<String>,
    pub(super) cancellation_reason: Option<String>,
    pub(super) refunds: Vec<Refund>,
    pub(super) disputes: Vec<Dispute>,
    pub(super) created: OffsetDateTime,
    pub(super) updated: OffsetDateTime,
}

impl Payment {
    /// As it starts: open, and nothing but what is given.
    pub(super) fn new(
        number: u64,
        account: usize,
        kind: Kind,
        key: Option<&str>,
        amount_minor: i64,
        now: OffsetDateTime,
    ) -> Self {
        Self {
            number,
            account,
            kind,
            key: key.map(str::to_owned),
            amount_minor,
            currency: String::new(),
            is_manual: false,
            metadata: BTreeMap::new(),
            session_metadata: BTreeMap::new(),
            reference: None,
            description: None,
            email: None,
            success_url: None,
            cancel_url: None,
            expires_at: None,
            state: PaymentState::Open,
            captured_minor: 0,
            captures: 0,
            is_authorised_once: false,
            decline_code: None,
            cancellation_reason: None,
            refunds: Vec::new(),
            disputes: Vec::new(),
            created: now,
            updated: now,
        }
    }

    /// The id that the merchant got when it was made.
    pub(super) fn id(&self) -> String {
        match self.kind {
            Kind::Intent => format!("pi_{}", self.number),
            Kind::Session => format!("cs_test_{}", self.number),
            Kind::Pix => self.number.to_string(),
        }
    }

    /// The PaymentIntent's id, if there is one.
    pub(super) fn intent_id(&self) -> Option<String> {
        let is_there = match self.kind {
            Kind::Intent => true,
            Kind::Session => self.was_tried(),
            Kind::Pix => false,
        };
        is_there.then(|| format!("pi_{}", self.number))
    }

    /// The latest charge's id, if a card was tried.
    pub(super) fn charge_id(&self) -> Option<String> {
        (self.kind != Kind::Pix && self.was_tried()).then(|| format!("ch_{}", self.number))
    }

    /// Whether the buyer has tried to pay.
    pub(super) fn was_tried(&self) -> bool {
        self.is_authorised_once || self.decline_code.is_some()
    }

    /// The merchant's own value for this name, wherever it was put.
    pub(super) fn named(&self, name: &str) -> Option<&String> {
        self.metadata.get(name).or_else(|| self.session_metadata.get(name))
    }

    /// The attempt that it is made for.
    pub(super) fn attempt_id(&self) -> Option<&String> {
        self.named("attempt_id").or(self.reference.as_ref())
    }

    /// Whether the gateway calls it so.
    pub(super) fn is_called(&self, name: &str) -> bool {
        self.id() == name
            || self.intent_id().is_some_and(|id| id == name)
            || self.charge_id().is_some_and(|id| id == name)
    }

    /// Money given back or on its way, minor units.
    pub(super) fn refunded_minor(&self) -> i64 {
        let kept = self.refunds.iter().filter(|refund| refund.state != RefundState::Failed);
        kept.map(|refund| refund.amount_minor).sum()
    }

    /// The buyer pays. A Pix can be paid after it was cancelled or ran out, if `late`.
    pub(super) fn pay(&mut self, late: bool, now: OffsetDateTime) -> Result<(), Refusal> {
        let is_late = matches!(self.state, PaymentState::Cancelled | PaymentState::Expired);
        if self.state != PaymentState::Open && !(late && is_late && self.kind == Kind::Pix) {
            return Err(Refusal::State);
        }
        (self.decline_code, self.is_authorised_once, self.updated) = (None, true, now);
        if self.is_manual {
            self.state = PaymentState::Authorised;
        } else {
            self.take(self.amount_minor);
        }
        Ok(())
    }

    /// A try to pay is refused. A card's buyer may try again, a Pix has ended.
    pub(super) fn decline(&mut self, code: &str, now: OffsetDateTime) -> Result<(), Refusal> {
        if self.state != PaymentState::Open {
            return Err(Refusal::State);
        }
        (self.decline_code, self.updated) = (Some(code.to_owned()), now);
        if self.kind == Kind::Pix {
            self.state = PaymentState::Declined;
        }
        Ok(())
    }

    /// The merchant takes authorised money, all or a part; the rest is released.
    pub(super) fn capture(&mut self, amount_minor: Option<i64>, now: OffsetDateTime) -> Result<(), Refusal> {
        if self.state != PaymentState::Authorised {
            return Err(Refusal::State);
        }
        let amount_minor = amount_minor.unwrap_or(self.amount_minor);
        if amount_minor > self.amount_minor {
            return Err(Refusal::TooMuch);
        }
        self.updated = now;
        self.take(amount_minor);
        Ok(())
    }

    fn take(&mut self, amount_minor: i64) {
        self.state = PaymentState::Captured;
        self.captured_minor += amount_minor;
        self.captures += 1;
    }

    /// The merchant cancels it, or its time runs out: unless the money was taken.
    pub(super) fn end(&mut self, state: PaymentState, now: OffsetDateTime) -> Result<(), Refusal> {
        if !matches!(self.state, PaymentState::Open | PaymentState::Authorised) {
            return Err(Refusal::State);
        }
        (self.state, self.updated) = (state, now);
        Ok(())
    }

    /// What a refund would come to: the amount asked for, or all that is left.
    pub(super) fn refundable(&self, amount_minor: Option<i64>) -> Result<i64, Refusal> {
        let left = self.captured_minor - self.refunded_minor();
        match amount_minor.unwrap_or(left) {
            _ if self.captured_minor == 0 => Err(Refusal::State),
            _ if self.disputes.iter().any(|dispute| dispute.state != DisputeState::Won) => Err(Refusal::Disputed),
            _ if left == 0 => Err(Refusal::AlreadyRefunded),
            amount if amount > left => Err(Refusal::TooMuch),
            amount => Ok(amount),
        }
    }
}
