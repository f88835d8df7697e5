//! Money that goes back: refunds, and disputes that buyers open at their bank.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use super::payments::Kind;

/// Where a refund is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefundState {
    /// On its way.
    Pending,
    /// The buyer has the money.
    Succeeded,
    /// The merchant has the money back.
    Failed,
}

/// A refund.
#[derive(Debug, Clone)]
pub(super) struct Refund {
    pub(super) number: u64,
    pub(super) key: Option<String>,
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) amount_minor: i64,
    pub(super) state: RefundState,
    pub(super) reason: Option<String>,
    pub(super) created: OffsetDateTime,
}

impl Refund {
    /// The gateway's id.
    pub(super) fn id(&self, kind: Kind) -> String {
        if kind == Kind::Pix { self.number.to_string() } else { format!("re_{}", self.number) }
    }
}

/// Where a dispute is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DisputeState {
    /// Undecided; the bank holds the money.
    Open,
    /// The merchant keeps the money.
    Won,
    /// The buyer keeps the money.
    Lost,
}

/// A dispute.
#[derive(Debug, Clone)]
pub(super) struct Dispute {
    pub(super) number: u64,
    pub(super) amount_minor: i64,
    pub(super) state: DisputeState,
    pub(super) created: OffsetDateTime,
}

impl Dispute {
    /// The gateway's id.
    pub(super) fn id(&self, kind: Kind) -> String {
        if kind == Kind::Pix { self.number.to_string() } else { format!("du_{}", self.number) }
    }
}

/// What becomes of a refund after it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Course {
    pub(super) first: RefundState,
    /// Milliseconds until it changes, and into what.
    pub(super) then: Option<(u64, RefundState)>,
}

impl Course {
    /// It succeeds at once.
    pub(super) const STRAIGHT: Self = Self { first: RefundState::Succeeded, then: None };
}

/// What somebody asks to be given back.
#[derive(Debug, Clone, Default)]
pub(super) struct Wanted {
    pub(super) key: Option<String>,
    /// None: all that is left.
    pub(super) amount_minor: Option<i64>,
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) reason: Option<String>,
}
