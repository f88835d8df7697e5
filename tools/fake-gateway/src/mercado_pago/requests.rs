//! Payments with Pix: made, fetched, searched, cancelled, refunded.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

use super::errors::{invalid, no_payment, no_refund, wrong_state};
use super::objects::{payment as payment_object, refund as refund_object};
use super::query;
use crate::books::Books;
use crate::calls::{Answer, Request};
use crate::payments::{Kind, Payment};
use crate::refunds::Wanted;

/// Longest `external_reference`.
const REFERENCE_MAX: usize = 256;
/// "You can set the expiration from 30 minutes to 30 days"; a day by default. Milliseconds may be lost on the way.
const OPEN_MIN: Duration = Duration::seconds(30 * 60 - 1);
const OPEN_MAX: Duration = Duration::days(30);
const OPEN: Duration = Duration::hours(24);
/// Results of a search: by default, and at most.
const PAGE: usize = 30;
const PAGE_MAX: usize = 1_000;

type Done = Result<Answer, Answer>;

/// A decimal with at most two places as minor units, read from its text: no floating point.
pub(super) fn minor(number: &Value) -> Option<i64> {
    let text = number.as_number()?.to_string();
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    let is_plain = text.bytes().all(|one| one.is_ascii_digit() || one == b'.') && part.len() <= 2;
    let cents: i64 = format!("{part:0<2}").parse().ok()?;
    let amount = whole.parse::<i64>().ok()?.checked_mul(100)?.checked_add(cents)?;
    (is_plain && amount > 0).then_some(amount)
}

fn text(body: &Value, name: &str) -> Option<String> {
    body[name].as_str().map(str::to_owned)
}

fn metadata(body: &Value) -> BTreeMap<String, String> {
    let pairs = body["metadata"].as_object().into_iter().flatten();
    pairs.map(|(name, value)| (name.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned))).collect()
}

pub(super) fn create(books: &mut Books, account: usize, key: Option<&str>, body: &Value) -> Done {
    let amount_minor = minor(&body["transaction_amount"])
        .ok_or_else(|| invalid("The transaction_amount must be positive and have two decimals at most", 4_020))?;
    if body["payment_method_id"] != "pix" {
        return Err(invalid("Invalid payment_method_id", 3_028));
    }
    let email = body["payer"]["email"].as_str().filter(|email| email.contains('@'));
    let email = Some(email.ok_or_else(|| invalid("The payer.email must be a valid email", 4_050))?.to_owned());
    let reference = text(body, "external_reference");
    if reference.as_ref().is_some_and(|reference| reference.len() > REFERENCE_MAX) {
        return Err(invalid("The external_reference is too long", 4_003));
    }
    let now = books.now();
    let expires_at = match text(body, "date_of_expiration") {
        None => now + OPEN,
        Some(date) => OffsetDateTime::parse(&date, &Rfc3339)
            .ok()
            .filter(|at| (OPEN_MIN..=OPEN_MAX).contains(&(*at - now)))
            .ok_or_else(|| invalid("The following parameters must be valid date and format date_of_expiration", 23))?,
    };
    let payment = Payment {
        currency: "BRL".into(),
        metadata: metadata(body),
        reference,
        description: text(body, "description"),
        email,
        success_url: text(body, "callback_url"),
        expires_at: Some(expires_at),
        ..Payment::new(books.number(), account, Kind::Pix, key, amount_minor, now)
    };
    let index = books.add(payment);
    Ok(Answer::new(201, payment_object(&books.payments[index], &books.base)))
}

fn find(books: &Books, account: usize, id: &str) -> Result<usize, Answer> {
    books.find(account, id).ok_or_else(no_payment)
}

pub(super) fn fetch(books: &Books, account: usize, id: &str) -> Done {
    Ok(Answer::ok(payment_object(&books.payments[find(books, account, id)?], &books.base)))
}

pub(super) fn search(books: &Books, account: usize, request: &Request) -> Done {
    let number = |name: &str, otherwise: usize| match query(request, name) {
        None => Ok(otherwise),
        Some(text) => text.parse().map_err(|_| invalid("Params Error", 1)),
    };
    let (limit, offset) = (number("limit", PAGE)?, number("offset", 0)?);
    if limit > PAGE_MAX {
        return Err(invalid("Number of rows exceeded the limits", 1_000));
    }
    let (reference, status) = (query(request, "external_reference"), query(request, "status"));
    let is_ascending = query(request, "criteria").as_deref() == Some("asc");
    let own = books.payments.iter().filter(|payment| payment.account == account);
    let named = own.filter(|payment| reference.is_none() || payment.reference == reference);
    let mut found: Vec<Value> = named.map(|payment| payment_object(payment, &books.base)).collect();
    found.retain(|payment| status.as_ref().is_none_or(|status| payment["status"] == *status));
    if !is_ascending {
        found.reverse();
    }
    let total = found.len();
    let results: Vec<Value> = found.into_iter().skip(offset).take(limit).collect();
    Ok(Answer::ok(json!({ "paging": { "total": total, "limit": limit, "offset": offset }, "results": results })))
}

pub(super) fn cancel(books: &mut Books, account: usize, id: &str, body: &Value) -> Done {
    let index = find(books, account, id)?;
    if body["status"] != "cancelled" {
        return Err(invalid("Only the status cancelled can be set", 1));
    }
    books.cancel(index).map_err(|_| wrong_state())?;
    fetch(books, account, id)
}

pub(super) fn refund(books: &mut Books, account: usize, id: &str, key: Option<&str>, body: &Value) -> Done {
    let index = find(books, account, id)?;
    let amount_minor = match &body["amount"] {
        Value::Null => None,
        amount => Some(minor(amount).ok_or_else(|| invalid("amount attribute must be positive", 4_040))?),
    };
    let key = key.map(str::to_owned);
    let wanted = Wanted { key, amount_minor, metadata: metadata(body), reason: None };
    let position = books.refund(index, wanted).map_err(|_| wrong_state())?;
    Ok(Answer::new(201, refund_object(&books.payments[index], position)))
}

pub(super) fn refunds(books: &Books, account: usize, id: &str) -> Done {
    let payment = &books.payments[find(books, account, id)?];
    Ok(Answer::ok((0..payment.refunds.len()).map(|position| refund_object(payment, position)).collect()))
}

pub(super) fn fetch_refund(books: &Books, account: usize, id: &str, refund: &str) -> Done {
    let payment = &books.payments[find(books, account, id)?];
    let position = payment.refunds.iter().position(|one| one.id(payment.kind) == refund).ok_or_else(no_refund)?;
    Ok(Answer::ok(refund_object(payment, position)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_become_minor_units() {
        for (given, expected) in [
            (json!(10), Some(1_000)),
            (json!(10.5), Some(1_050)),
            (json!(0.01), Some(1)),
            (json!(1_234_567.89), Some(123_456_789)),
            (json!(0), None),
            (json!(-1), None),
            (json!(10.555), None),
            (json!("10.50"), None),
            (json!(1e30), None),
        ] {
            assert_eq!(minor(&given), expected, "{given}");
        }
    }
}
