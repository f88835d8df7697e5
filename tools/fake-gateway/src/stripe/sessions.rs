//! Checkout Sessions in payment mode: made, fetched, made to expire.

use serde_json::Value;
use time::{Duration, OffsetDateTime};

use super::errors::{invalid, no_such, not_expandable, not_open};
use super::form::Form;
use super::intents::{currency, is_manual, new};
use super::objects::{session, session_status};
use crate::books::Books;
use crate::calls::Answer;
use crate::payments::{Kind, Payment};

const CREATE: &[&str] = &[
    "allow_promotion_codes",
    "automatic_tax",
    "billing_address_collection",
    "cancel_url",
    "client_reference_id",
    "consent_collection",
    "currency",
    "custom_text",
    "customer",
    "customer_creation",
    "customer_email",
    "expires_at",
    "invoice_creation",
    "line_items",
    "locale",
    "metadata",
    "mode",
    "payment_intent_data",
    "payment_method_options",
    "payment_method_types",
    "phone_number_collection",
    "submit_type",
    "success_url",
    "ui_mode",
];
/// "expires_at can be anywhere from 30 minutes to 24 hours after Checkout Session creation"; a day by default. Whole
/// seconds lose up to one.
const OPEN_MIN: Duration = Duration::seconds(30 * 60 - 1);
const OPEN_MAX: Duration = Duration::hours(24);
/// Line items of a session.
const ITEMS_MAX: usize = 100;
/// Longest `client_reference_id`.
const REFERENCE_MAX: usize = 200;

pub(super) fn create(books: &mut Books, account: usize, key: Option<&str>, form: &Form) -> Result<Value, Answer> {
    form.allow(CREATE)?;
    check_expand(form)?;
    if form.required("mode")? != "payment" {
        return Err(invalid("mode", "parameter_invalid_string", "Only payment is served here"));
    }
    let success_url = Some(form.required("success_url")?.to_owned());
    let (amount_minor, currency) = items(form)?;
    let expires_at = expires_at(form, books.now())?;
    let reference = form.get("client_reference_id").map(str::to_owned);
    if reference.as_ref().is_some_and(|reference| reference.len() > REFERENCE_MAX) {
        return Err(invalid("client_reference_id", "parameter_invalid_string", "Longer than 200 characters"));
    }
    let payment = Payment {
        currency,
        is_manual: is_manual(form, "payment_intent_data[capture_method]")?,
        metadata: form.pairs("payment_intent_data[metadata]"),
        session_metadata: form.pairs("metadata"),
        reference,
        description: form.get("line_items[0][price_data][product_data][name]").map(str::to_owned),
        email: form.get("customer_email").map(str::to_owned),
        success_url,
        cancel_url: form.get("cancel_url").map(str::to_owned),
        expires_at: Some(expires_at),
        ..new(books, account, Kind::Session, key, amount_minor)
    };
    let index = books.add(payment);
    Ok(session(&books.payments[index], &form.expand(), &books.base))
}

/// The total and the currency of the line items.
fn items(form: &Form) -> Result<(i64, String), Answer> {
    let (mut total, mut code) = (0_i64, None);
    for item in 0..ITEMS_MAX {
        let price = format!("line_items[{item}][price_data]");
        let quantity = format!("line_items[{item}][quantity]");
        if item > 0 && form.get(&quantity).is_none() && form.pairs(&price).is_empty() {
            break;
        }
        let unit_amount = format!("{price}[unit_amount]");
        form.required(&unit_amount)?;
        form.required(&quantity)?;
        form.required(&format!("{price}[product_data][name]"))?;
        let own = currency(form.required(&format!("{price}[currency]"))?)?;
        if code.get_or_insert_with(|| own.clone()) != &own {
            return Err(invalid(&price, "parameter_invalid_string", "Line items share one currency"));
        }
        let sum =
            form.amount(&unit_amount)?.zip(form.amount(&quantity)?).and_then(|(one, count)| one.checked_mul(count));
        total = sum
            .and_then(|sum| total.checked_add(sum))
            .ok_or_else(|| invalid(&unit_amount, "amount_too_large", "More than can be paid"))?;
    }
    Ok((total, code.unwrap_or_default()))
}

fn expires_at(form: &Form, now: OffsetDateTime) -> Result<OffsetDateTime, Answer> {
    let Some(at) = form.time("expires_at")? else { return Ok(now + OPEN_MAX) };
    if (OPEN_MIN..=OPEN_MAX).contains(&(at - now)) {
        return Ok(at);
    }
    let message = "The `expires_at` timestamp must be 30 minutes to 24 hours from Checkout Session creation";
    Err(invalid("expires_at", "parameter_invalid_integer", message))
}

fn find(books: &Books, account: usize, id: &str) -> Result<usize, Answer> {
    let found = id.starts_with("cs_").then(|| books.find(account, id)).flatten();
    found.ok_or_else(|| no_such("checkout.session", id))
}

pub(super) fn fetch(books: &Books, account: usize, id: &str, form: &Form) -> Result<Value, Answer> {
    form.allow(&[])?;
    check_expand(form)?;
    Ok(session(&books.payments[find(books, account, id)?], &form.expand(), &books.base))
}

pub(super) fn expire(books: &mut Books, account: usize, id: &str, form: &Form) -> Result<Value, Answer> {
    form.allow(&[])?;
    check_expand(form)?;
    let index = find(books, account, id)?;
    books.expire(index).map_err(|_| not_open(session_status(&books.payments[index])))?;
    Ok(session(&books.payments[index], &form.expand(), &books.base))
}

/// Paths that can be expanded in a session.
fn check_expand(form: &Form) -> Result<(), Answer> {
    let known = ["payment_intent", "payment_intent.latest_charge", "payment_intent.latest_charge.refunds"];
    let strange = form.expand().into_iter().find(|path| !known.contains(path));
    strange.map_or(Ok(()), |path| Err(not_expandable(path)))
}
