//! How long a gateway lets a payment wait, and how long money stays authorised.

use std::time::Duration;

use domain::limits::{HOLD_SECONDS_MAX, HOLD_SECONDS_MIN, STRIPE_WAITS_MAX};
use domain::payments::{CaptureMode, Gateway};

const HOUR: Duration = Duration::from_secs(3_600);

/// Below a minute nobody opens a page, types a card and answers a bank's question, or opens a bank's application and
/// scans a code.
const HOLD_MIN: Duration = Duration::from_secs(60);

/// An uncaptured PaymentIntent of a card is cancelled after 7 days.
/// <https://docs.stripe.com/payments/place-a-hold-on-a-payment-method>.
const STRIPE_CAPTURE_WINDOW: Duration = Duration::from_secs(7 * 24 * 3_600);

/// How long after its hold a payment's own expiry is. It is a net only: the expiry sweep closes open payments at the
/// gateway before numbers go back to stock. Half an hour is the shortest that Stripe and Mercado Pago take; the rest
/// is for clocks. Relative to the hold, so that a request is the same whenever it is repeated, and still valid late in
/// the hold. A Checkout Session lives for 24 h at most and 30 min at least, counted from when it is made
/// (<https://docs.stripe.com/api/checkout/sessions/create>, `expires_at`).
pub(crate) const AFTER_HOLD: Duration = Duration::from_secs(31 * 60);

/// What a gateway can serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Shortest hold in which a buyer can pay.
    pub hold_min: Duration,
    /// Longest hold that one payment can wait.
    pub hold_max: Duration,
    /// How long after the authorisation the money can be taken; none where it is taken at once.
    pub capture_window: Option<Duration>,
}

/// A gateway's limits.
///
/// - Stripe: 1 min to 23 h (a Checkout Session lives for 24 h at most; shorter ones are expired by us); a manual
///   capture within 7 days.
/// - Mercado Pago: 1 min to a week, our own longest hold (a Pix may wait for 30 days; shorter ones are cancelled by
///   us).
/// - Sandbox: our own shortest hold, so that a demonstration does not take minutes, to Stripe's longest.
/// - Manual: whatever we allow; staff book what has been paid.
#[must_use]
pub fn limits(gateway: Gateway, capture: CaptureMode) -> Limits {
    let capture_window = match (gateway, capture) {
        (Gateway::Stripe | Gateway::Sandbox, CaptureMode::Manual) => Some(STRIPE_CAPTURE_WINDOW),
        _ => None,
    };
    let ours_min = Duration::from_secs(HOLD_SECONDS_MIN.unsigned_abs().into());
    let ours_max = Duration::from_secs(HOLD_SECONDS_MAX.unsigned_abs().into());
    let (hold_min, hold_max) = match gateway {
        Gateway::Stripe => (HOLD_MIN, STRIPE_WAITS_MAX),
        Gateway::Sandbox => (ours_min, STRIPE_WAITS_MAX),
        Gateway::MercadoPago => (HOLD_MIN, ours_max),
        Gateway::Manual => (ours_min, ours_max),
    };
    Limits { hold_min, hold_max, capture_window }
}

/// Whether a gateway can serve a product's hold.
///
/// # Errors
/// Why not, in one sentence.
pub fn check_hold(gateway: Gateway, capture: CaptureMode, hold: Duration) -> Result<(), String> {
    let limits = limits(gateway, capture);
    let name = gateway.word();
    if capture == CaptureMode::Manual && limits.capture_window.is_none() {
        return Err(format!("{name} takes money at once and cannot hold it for a later capture"));
    }
    if hold < limits.hold_min {
        return Err(format!("a buyer cannot pay with {name} in less than {}", in_words(limits.hold_min)));
    }
    if hold > limits.hold_max {
        return Err(format!("a payment with {name} cannot wait for more than {}", in_words(limits.hold_max)));
    }
    Ok(())
}

fn in_words(duration: Duration) -> String {
    match duration.as_secs() {
        seconds if duration >= HOUR => format!("{} hours", seconds / 3_600),
        seconds => format!("{seconds} seconds"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_outside_are_refused_with_the_reason() {
        let check = |gateway, seconds| check_hold(gateway, CaptureMode::Automatic, Duration::from_secs(seconds));
        assert_eq!(check(Gateway::Stripe, 900), Ok(()));
        assert_eq!(check(Gateway::Sandbox, 5), Ok(()));
        assert_eq!(check(Gateway::Manual, 7 * 86_400), Ok(()));
        assert_eq!(check(Gateway::Stripe, 59).unwrap_err(), "a buyer cannot pay with stripe in less than 60 seconds");
        assert_eq!(
            check(Gateway::Stripe, 86_400).unwrap_err(),
            "a payment with stripe cannot wait for more than 23 hours"
        );
        let pix = check_hold(Gateway::MercadoPago, CaptureMode::Manual, Duration::from_secs(900));
        assert!(pix.unwrap_err().contains("takes money at once"));
    }

    #[test]
    fn a_session_never_outlives_what_stripe_allows_and_a_capture_outlives_the_hold() {
        for capture in CaptureMode::ALL {
            let limits = limits(Gateway::Stripe, *capture);
            assert!(limits.hold_max + AFTER_HOLD < 24 * HOUR);
            assert!(limits.capture_window.is_none_or(|window| window > limits.hold_max));
        }
    }
}
