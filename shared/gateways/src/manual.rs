//! Cash and bank transfers: staff say that it was paid, so it is. Nothing leaves the process.

use domain::payments::{AttemptState, Observed, ObservedRefund, RefundState};

use crate::{NewPayment, NewRefund};

/// The payment that staff booked.
pub(crate) fn booked(new: &NewPayment<'_>) -> Observed {
    Observed {
        payment_id: format!("manual-{}", new.attempt_id),
        attempt_id: Some(new.attempt_id),
        state: AttemptState::Captured,
        amount_minor: new.amount_minor,
        currency: new.currency.to_ascii_uppercase(),
        captured_minor: new.amount_minor,
        refunded_minor: 0,
        decline_code: None,
        instructions: None,
        refunds: Vec::new(),
        disputes: Vec::new(),
    }
}

/// The refund that staff handed out.
pub(crate) fn refunded(refund: &NewRefund<'_>) -> ObservedRefund {
    ObservedRefund {
        gateway_refund_id: format!("manual-{}", refund.refund_id),
        refund_id: Some(refund.refund_id),
        amount_minor: refund.amount_minor,
        state: RefundState::Succeeded,
    }
}
