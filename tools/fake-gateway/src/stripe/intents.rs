//! PaymentIntents: made, fetched, captured, cancelled.

use serde_json::Value;

use super::errors::{card_declined, invalid, no_such, not_expandable, unexpected_state};
use super::form::Form;
use super::objects::{self, intent};
use crate::books::Books;
use crate::calls::Answer;
use crate::payments::{Kind, Payment, PaymentState, Refusal};

const CREATE: &[&str] = &[
    "amount",
    "application_fee_amount",
    "automatic_payment_methods",
    "capture_method",
    "confirm",
    "confirmation_method",
    "currency",
    "customer",
    "description",
    "metadata",
    "off_session",
    "on_behalf_of",
    "payment_method",
    "payment_method_options",
    "payment_method_types",
    "receipt_email",
    "return_url",
    "setup_future_usage",
    "shipping",
    "statement_descriptor",
    "statement_descriptor_suffix",
    "transfer_data",
    "transfer_group",
];
const CAPTURE: &[&str] = &["amount_to_capture", "final_capture", "metadata", "statement_descriptor"];

/// A payment as it starts.
pub(super) fn new(books: &mut Books, account: usize, kind: Kind, key: Option<&str>, amount_minor: i64) -> Payment {
    let (number, now) = (books.number(), books.now());
    Payment::new(number, account, kind, key, amount_minor, now)
}

/// An ISO 4217 code, three letters.
pub(super) fn currency(text: &str) -> Result<String, Answer> {
    let is_one = text.len() == 3 && text.bytes().all(|letter| letter.is_ascii_alphabetic());
    if is_one { Ok(text.to_uppercase()) } else { Err(invalid("currency", "invalid_currency", "Invalid currency")) }
}

/// Whether the money is only set aside at first.
pub(super) fn is_manual(form: &Form, name: &str) -> Result<bool, Answer> {
    match form.get(name) {
        None | Some("automatic" | "automatic_async") => Ok(false),
        Some("manual") => Ok(true),
        Some(_) => Err(invalid(name, "parameter_invalid_string", "Invalid capture_method")),
    }
}

pub(super) fn create(books: &mut Books, account: usize, key: Option<&str>, form: &Form) -> Result<Value, Answer> {
    form.allow(CREATE)?;
    check_expand(form, "")?;
    form.required("amount")?;
    let amount_minor = form.amount("amount")?.unwrap_or_default();
    let currency = currency(form.required("currency")?)?;
    let is_manual = is_manual(form, "capture_method")?;
    let payment = Payment {
        currency,
        is_manual,
        metadata: form.pairs("metadata"),
        description: form.get("description").map(str::to_owned),
        email: form.get("receipt_email").map(str::to_owned),
        ..new(books, account, Kind::Intent, key, amount_minor)
    };
    let card = match form.get("confirm") {
        Some("true") => Some(test_card(form.required("payment_method")?)?),
        _ => None,
    };
    let index = books.add(payment);
    match card {
        Some(None) => books.pay(index, false).expect("it is open"),
        Some(Some(decline_code)) => {
            books.decline(index, decline_code).expect("it is open");
            return Err(card_declined(decline_code, intent(&books.payments[index], &[])));
        }
        None => {}
    }
    Ok(intent(&books.payments[index], &form.expand()))
}

/// Why one of the documented test cards is declined; none: it is not.
fn test_card(payment_method: &str) -> Result<Option<&'static str>, Answer> {
    match payment_method {
        "pm_card_chargeDeclined" | "pm_card_visa_chargeDeclined" => Ok(Some("generic_decline")),
        "pm_card_chargeDeclinedInsufficientFunds" | "pm_card_visa_chargeDeclinedInsufficientFunds" => {
            Ok(Some("insufficient_funds"))
        }
        method if method.starts_with("pm_card_") => Ok(None),
        other => Err(no_such("PaymentMethod", other)),
    }
}

fn find(books: &Books, account: usize, id: &str) -> Result<usize, Answer> {
    let found = id.starts_with("pi_").then(|| books.find(account, id)).flatten();
    found.ok_or_else(|| no_such("payment_intent", id))
}

pub(super) fn fetch(books: &Books, account: usize, id: &str, form: &Form) -> Result<Value, Answer> {
    form.allow(&["client_secret"])?;
    check_expand(form, "")?;
    Ok(intent(&books.payments[find(books, account, id)?], &form.expand()))
}

pub(super) fn capture(books: &mut Books, account: usize, id: &str, form: &Form) -> Result<Value, Answer> {
    form.allow(CAPTURE)?;
    check_expand(form, "")?;
    let (index, amount_minor) = (find(books, account, id)?, form.amount("amount_to_capture")?);
    match books.capture(index, amount_minor) {
        Ok(()) => Ok(intent(&books.payments[index], &form.expand())),
        Err(Refusal::TooMuch) => {
            Err(invalid("amount_to_capture", "amount_too_large", "More than the amount that can be captured"))
        }
        Err(_) => Err(refuse(books, index, "captured", "requires_capture")),
    }
}

pub(super) fn cancel(books: &mut Books, account: usize, id: &str, form: &Form) -> Result<Value, Answer> {
    form.allow(&["cancellation_reason"])?;
    check_expand(form, "")?;
    let index = find(books, account, id)?;
    let payment = &mut books.payments[index];
    if payment.kind == Kind::Session && payment.state == PaymentState::Open {
        let message = "You cannot cancel this PaymentIntent because it was created by a Checkout Session. Expire the \
                       Checkout Session instead.";
        return Err(unexpected_state(message, intent(payment, &[])));
    }
    let reason = form.get("cancellation_reason").map(str::to_owned);
    match books.cancel(index) {
        Ok(()) => {
            books.payments[index].cancellation_reason = reason;
            Ok(intent(&books.payments[index], &form.expand()))
        }
        Err(_) => Err(refuse(
            books,
            index,
            "canceled",
            "requires_payment_method, requires_capture, requires_confirmation, requires_action, processing",
        )),
    }
}

fn refuse(books: &Books, index: usize, what: &str, allowed: &str) -> Answer {
    let payment = &books.payments[index];
    let status = objects::intent_status(payment);
    let message = format!(
        "This PaymentIntent could not be {what} because it has a status of {status}. Only a PaymentIntent with one of \
         the following statuses may be {what}: {allowed}."
    );
    unexpected_state(&message, intent(payment, &[]))
}

/// Paths that can be expanded in a PaymentIntent which is itself at `prefix`.
pub(super) fn check_expand(form: &Form, prefix: &str) -> Result<(), Answer> {
    let known = ["latest_charge", "latest_charge.refunds"];
    let strange = form.expand().into_iter().find(|path| {
        let path = path.strip_prefix(prefix);
        path.is_none_or(|path| !known.contains(&path))
    });
    strange.map_or(Ok(()), |path| Err(not_expandable(path)))
}
