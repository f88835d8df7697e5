//! Cash and bank transfers: staff say that it was paid, so it is. Nothing leaves the process.

use domain::payments::{Observed, ObservedRefund, RefundState};

use crate::{NewPayment, NewRefund};

/// The payment that staff booked.
pub(crate) fn booked(new: &NewPayment<'_>) -> Observed {
    Observed::booked_by_staff(new.attempt_id, new.amount_minor, new.currency)
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
