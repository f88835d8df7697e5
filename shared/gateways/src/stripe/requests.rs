//! The bodies of Stripe's two ways to pay. The same attempt gives the same bytes.

use domain::payments::CaptureMode;
use time::OffsetDateTime;

use crate::http_client::encoded;
use crate::limits::AFTER_HOLD;
use crate::{Failure, NewPayment};

/// What a session's answer shows in full.
pub(super) const SESSION_EXPANDS: &str = "payment_intent.latest_charge.refunds";

/// What is bought, where the store has not said: a line of a session needs a name.
const UNNAMED: &str = "Order";

struct Texts {
    attempt_id: String,
    order_id: String,
    tenant_id: String,
    amount: String,
    currency: String,
}

impl Texts {
    fn of(new: &NewPayment<'_>) -> Self {
        Self {
            attempt_id: new.attempt_id.to_string(),
            order_id: new.order_id.to_string(),
            tenant_id: new.tenant_id.to_string(),
            amount: new.amount_minor.to_string(),
            currency: new.currency.to_ascii_lowercase(),
        }
    }
}

fn capture_method(capture: CaptureMode) -> &'static str {
    match capture {
        CaptureMode::Automatic => "automatic",
        CaptureMode::Manual => "manual",
    }
}

/// `POST /v1/payment_intents`. Payment methods are chosen by the account's settings, which is the default since version
/// 2023-08-16. Amounts of currencies without decimals are whole units there as here.
pub(super) fn intent(new: &NewPayment<'_>) -> String {
    let texts = Texts::of(new);
    let mut pairs = vec![
        ("amount", texts.amount.as_str()),
        ("currency", &texts.currency),
        ("capture_method", capture_method(new.capture)),
        ("metadata[attempt_id]", &texts.attempt_id),
        ("metadata[order_id]", &texts.order_id),
        ("metadata[tenant_id]", &texts.tenant_id),
        ("metadata[method]", new.method.word()),
    ];
    if !new.description.is_empty() {
        pairs.push(("description", new.description));
    }
    encoded(&pairs)
}

/// `POST /v1/checkout/sessions`.
///
/// The intent is made when the buyer submits the page, so it gets its reference through the session.
///
/// # Errors
/// [`Failure::Refused`] without an address to return to, which a hosted page must have.
pub(super) fn session(new: &NewPayment<'_>) -> Result<String, Failure> {
    let return_url = new.return_url.ok_or_else(|| Failure::refused("return_url"))?;
    let texts = Texts::of(new);
    let expires_at = expires_at(new.expires_at).to_string();
    let mut pairs = vec![
        ("mode", "payment"),
        ("client_reference_id", texts.attempt_id.as_str()),
        ("expires_at", &expires_at),
        ("success_url", return_url),
        ("cancel_url", return_url),
        ("line_items[0][quantity]", "1"),
        ("line_items[0][price_data][currency]", &texts.currency),
        ("line_items[0][price_data][unit_amount]", &texts.amount),
        (
            "line_items[0][price_data][product_data][name]",
            if new.description.is_empty() { UNNAMED } else { new.description },
        ),
        ("payment_intent_data[capture_method]", capture_method(new.capture)),
    ];
    let references = [
        ("metadata[attempt_id]", "payment_intent_data[metadata][attempt_id]", texts.attempt_id.as_str()),
        ("metadata[order_id]", "payment_intent_data[metadata][order_id]", &texts.order_id),
        ("metadata[tenant_id]", "payment_intent_data[metadata][tenant_id]", &texts.tenant_id),
        ("metadata[method]", "payment_intent_data[metadata][method]", new.method.word()),
    ];
    for (on_session, on_intent, value) in references {
        pairs.extend([(on_session, value), (on_intent, value)]);
    }
    if !new.description.is_empty() {
        pairs.push(("payment_intent_data[description]", new.description));
    }
    if let Some(email) = new.payer_email {
        pairs.push(("customer_email", email));
    }
    Ok(encoded(&pairs))
}

/// Unix seconds. Never less than half an hour away while the hold lasts, which is when requests are repeated.
fn expires_at(hold_ends: OffsetDateTime) -> i64 {
    (hold_ends + AFTER_HOLD).unix_timestamp()
}
