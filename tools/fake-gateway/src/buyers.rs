//! What buyers, their banks and the merchant's staff do: everything that changes a payment without a call of ours.

use std::sync::Arc;

use serde::Deserialize;

use super::books::Books;
use super::payments::Refusal;
use super::refunds::Wanted;
use super::{FakeGateway, Shared, webhooks};

/// Why something could not be done to a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotDone {
    /// There is no such payment.
    NoSuchPayment,
    /// Not in the state that it is in, or not so much.
    NotNow,
}

impl From<Refusal> for NotDone {
    fn from(_: Refusal) -> Self {
        Self::NotNow
    }
}

/// An act; `payment` is an attempt's id or one of the gateway's ids. Of several the latest is meant.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "act", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Act {
    /// The buyer pays.
    Pay {
        /// Which payment.
        payment: String,
    },
    /// The buyer pays with Pix, even after it was cancelled or ran out.
    PayLate {
        /// Which payment.
        payment: String,
    },
    /// The buyer's bank refuses.
    Decline {
        /// Which payment.
        payment: String,
        /// The gateway's word for the reason.
        code: String,
    },
    /// Staff gives money back in the gateway's dashboard.
    Refund {
        /// Which payment.
        payment: String,
        /// Minor units; none: all that is left.
        amount_minor: Option<i64>,
    },
    /// The buyer disputes what was taken.
    Dispute {
        /// Which payment.
        payment: String,
        /// Minor units; none: all that is left.
        amount_minor: Option<i64>,
    },
    /// The open dispute is decided.
    CloseDispute {
        /// Which payment.
        payment: String,
        /// For the merchant.
        is_won: bool,
    },
}

impl Act {
    fn apply(&self, books: &mut Books) -> Result<String, NotDone> {
        books.tick();
        let find = |books: &Books, payment: &str| books.find_any(payment).ok_or(NotDone::NoSuchPayment);
        let index = match self {
            Self::Pay { payment }
            | Self::PayLate { payment }
            | Self::Decline { payment, .. }
            | Self::Refund { payment, .. }
            | Self::Dispute { payment, .. }
            | Self::CloseDispute { payment, .. } => find(books, payment)?,
        };
        match self {
            Self::Pay { .. } => books.pay(index, false)?,
            Self::PayLate { .. } => books.pay(index, true)?,
            Self::Decline { code, .. } => books.decline(index, code)?,
            Self::Refund { amount_minor, .. } => {
                // The dashboard offers what is left: asking for more is nobody's fault there.
                let amount_minor = Some(books.payments[index].refundable(*amount_minor)?);
                books.refund(index, Wanted { amount_minor, ..Wanted::default() })?;
            }
            Self::Dispute { amount_minor, .. } => books.dispute(index, *amount_minor)?,
            Self::CloseDispute { is_won, .. } => books.close_dispute(index, *is_won)?,
        }
        Ok(books.payments[index].id())
    }
}

/// Does it, and sends the events; the payment's id.
pub(super) fn act(shared: &Arc<Shared>, act: &Act) -> Result<String, NotDone> {
    let mut books = shared.books();
    let done = act.apply(&mut books);
    webhooks::send(shared, books.take_events(), false);
    done
}

impl FakeGateway {
    /// Does something that no call of the merchant does; the payment's id.
    ///
    /// # Errors
    /// There is no such payment, or it is not in a state for this.
    pub fn act(&self, what: &Act) -> Result<String, NotDone> {
        act(&self.shared, what)
    }

    /// The buyer pays: by an attempt's id or one of the gateway's ids.
    ///
    /// # Errors
    /// As [`Self::act`].
    pub fn pay(&self, payment: impl ToString) -> Result<String, NotDone> {
        self.act(&Act::Pay { payment: payment.to_string() })
    }

    /// The buyer pays with Pix, even after the payment was cancelled or ran out.
    ///
    /// # Errors
    /// As [`Self::act`].
    pub fn pay_late(&self, payment: impl ToString) -> Result<String, NotDone> {
        self.act(&Act::PayLate { payment: payment.to_string() })
    }

    /// The buyer's bank refuses with a code, such as `insufficient_funds`.
    ///
    /// # Errors
    /// As [`Self::act`].
    pub fn decline(&self, payment: impl ToString, code: &str) -> Result<String, NotDone> {
        self.act(&Act::Decline { payment: payment.to_string(), code: code.into() })
    }

    /// Staff gives money back in the gateway's dashboard: an amount in minor units, or all that is left.
    ///
    /// # Errors
    /// As [`Self::act`].
    pub fn refund_in_dashboard(
        &self,
        payment: impl ToString,
        amount_minor: impl Into<Option<i64>>,
    ) -> Result<String, NotDone> {
        self.act(&Act::Refund { payment: payment.to_string(), amount_minor: amount_minor.into() })
    }

    /// The buyer disputes an amount in minor units, or all that is left.
    ///
    /// # Errors
    /// As [`Self::act`].
    pub fn dispute(&self, payment: impl ToString, amount_minor: impl Into<Option<i64>>) -> Result<String, NotDone> {
        self.act(&Act::Dispute { payment: payment.to_string(), amount_minor: amount_minor.into() })
    }

    /// The open dispute is decided.
    ///
    /// # Errors
    /// As [`Self::act`].
    pub fn close_dispute(&self, payment: impl ToString, is_won: bool) -> Result<String, NotDone> {
        self.act(&Act::CloseDispute { payment: payment.to_string(), is_won })
    }
}
