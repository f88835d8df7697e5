//! What the gateway knows about everybody's money, for an auditor.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use super::books::Books;
use super::payments::{Payment, PaymentState};
use super::refunds::{DisputeState, RefundState};

/// Everything at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// Every payment, oldest first.
    pub payments: Vec<PaymentEntry>,
    /// What a sound merchant never does, in the order in which it was done.
    pub violations: Vec<Violation>,
}

/// A payment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaymentEntry {
    /// The wire format: `stripe` or `mercado-pago`.
    pub gateway: String,
    /// The account's name, `acct_1` for the first.
    pub account: String,
    /// The id that its maker got.
    pub payment_id: String,
    /// Its PaymentIntent, if it has one.
    pub intent_id: Option<String>,
    /// The idempotency key that it was made with.
    pub key: Option<String>,
    /// From its metadata, or its external reference.
    pub attempt_id: Option<String>,
    /// From its metadata.
    pub order_id: Option<String>,
    /// From its metadata.
    pub tenant_id: Option<String>,
    /// What it is about, minor units.
    pub amount_minor: i64,
    /// ISO 4217 code, upper case.
    pub currency: String,
    /// Where it is.
    pub state: PaymentState,
    /// Money taken, minor units.
    pub captured_minor: i64,
    /// How often money was taken.
    pub captures: u32,
    /// Its refunds, oldest first.
    pub refunds: Vec<RefundEntry>,
    /// Its disputes, oldest first.
    pub disputes: Vec<DisputeEntry>,
    /// When it was made.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// When it changed last.
    #[serde(with = "time::serde::rfc3339")]
    pub updated_at: OffsetDateTime,
}

/// A refund.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefundEntry {
    /// The gateway's id.
    pub gateway_refund_id: String,
    /// Our refund, from its metadata; none for one that was made in the dashboard.
    pub refund_id: Option<String>,
    /// The idempotency key that it was made with.
    pub key: Option<String>,
    /// Minor units.
    pub amount_minor: i64,
    /// Where it is.
    pub state: RefundState,
}

/// A dispute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisputeEntry {
    /// The gateway's id.
    pub gateway_dispute_id: String,
    /// Minor units.
    pub amount_minor: i64,
    /// Where it is.
    pub state: DisputeState,
}

/// Something that a sound merchant never does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// What it is.
    pub kind: ViolationKind,
    /// Which payment or key.
    pub detail: String,
}

/// What a sound merchant never does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ViolationKind {
    /// An idempotency key was sent with other parameters.
    KeyWithOtherParameters,
    /// An attempt has more than one payment that was or can be paid.
    TwoLivePayments,
    /// More was to go back than had been taken.
    RefundOverCaptured,
    /// Money was to be taken again from the same payment.
    CapturedTwice,
}

impl PaymentEntry {
    /// Money given back or on its way, minor units.
    #[must_use]
    pub fn refunded_minor(&self) -> i64 {
        self.refunds.iter().filter(|refund| refund.state != RefundState::Failed).map(|refund| refund.amount_minor).sum()
    }

    /// Money in disputes that are not won, minor units.
    #[must_use]
    pub fn disputed_minor(&self) -> i64 {
        self.disputes.iter().filter(|one| one.state != DisputeState::Won).map(|one| one.amount_minor).sum()
    }

    /// What the merchant has of it, minor units.
    #[must_use]
    pub fn kept_minor(&self) -> i64 {
        self.captured_minor - self.refunded_minor() - self.disputed_minor()
    }
}

impl Ledger {
    /// An attempt's payments, oldest first.
    pub fn of_attempt(&self, attempt_id: impl ToString) -> impl Iterator<Item = &PaymentEntry> {
        let attempt_id = attempt_id.to_string();
        self.payments.iter().filter(move |one| one.attempt_id.as_ref() == Some(&attempt_id))
    }

    pub(super) fn of(books: &Books) -> Self {
        let payments = books.payments.iter().map(|payment| entry(books, payment)).collect();
        Self { payments, violations: books.violations.clone() }
    }
}

/// An account's name.
pub(super) fn account_name(account: usize) -> String {
    format!("acct_{}", account + 1)
}

fn entry(books: &Books, payment: &Payment) -> PaymentEntry {
    let refunds = payment.refunds.iter().map(|refund| RefundEntry {
        gateway_refund_id: refund.id(payment.kind),
        refund_id: refund.metadata.get("refund_id").cloned(),
        key: refund.key.clone(),
        amount_minor: refund.amount_minor,
        state: refund.state,
    });
    let disputes = payment.disputes.iter().map(|dispute| DisputeEntry {
        gateway_dispute_id: dispute.id(payment.kind),
        amount_minor: dispute.amount_minor,
        state: dispute.state,
    });
    PaymentEntry {
        gateway: books.accounts[payment.account].dialect.name().into(),
        account: account_name(payment.account),
        payment_id: payment.id(),
        intent_id: payment.intent_id(),
        key: payment.key.clone(),
        attempt_id: payment.attempt_id().cloned(),
        order_id: payment.named("order_id").cloned(),
        tenant_id: payment.named("tenant_id").cloned(),
        amount_minor: payment.amount_minor,
        currency: payment.currency.clone(),
        state: payment.state,
        captured_minor: payment.captured_minor,
        captures: payment.captures,
        refunds: refunds.collect(),
        disputes: disputes.collect(),
        created_at: payment.created,
        updated_at: payment.updated,
    }
}
