//! Charges, refunds and disputes: what there is to say about money that was taken.

use serde_json::Value;

use super::errors::{missing, no_such, not_expandable, not_refundable};
use super::form::Form;
use super::objects::{charge, dispute, refund as refund_object};
use crate::books::Books;
use crate::calls::Answer;
use crate::refunds::Wanted;

const REFUND: &[&str] = &[
    "amount",
    "charge",
    "instructions_email",
    "metadata",
    "origin",
    "payment_intent",
    "reason",
    "refund_application_fee",
    "reverse_transfer",
];

pub(super) fn fetch(books: &Books, account: usize, id: &str, form: &Form) -> Result<Value, Answer> {
    form.allow(&[])?;
    if let Some(path) = form.expand().into_iter().find(|path| *path != "refunds") {
        return Err(not_expandable(path));
    }
    let found = id.starts_with("ch_").then(|| books.find(account, id)).flatten();
    let index = found.ok_or_else(|| no_such("charge", id))?;
    Ok(charge(&books.payments[index], &form.expand()))
}

/// The payment that a refund, or a list, is about.
pub(super) fn payment_of(books: &Books, account: usize, form: &Form) -> Result<Option<usize>, Answer> {
    for name in ["payment_intent", "charge"] {
        if let Some(id) = form.get(name) {
            let prefix = if name == "charge" { "ch_" } else { "pi_" };
            let found = id.starts_with(prefix).then(|| books.find(account, id)).flatten();
            return found.map(Some).ok_or_else(|| no_such(name, id));
        }
    }
    Ok(None)
}

pub(super) fn refund(books: &mut Books, account: usize, key: Option<&str>, form: &Form) -> Result<Value, Answer> {
    form.allow(REFUND)?;
    plain(form)?;
    let index = payment_of(books, account, form)?.ok_or_else(|| missing("payment_intent"))?;
    let wanted = Wanted {
        key: key.map(str::to_owned),
        amount_minor: form.amount("amount")?,
        metadata: form.pairs("metadata"),
        reason: form.get("reason").map(str::to_owned),
    };
    match books.refund(index, wanted) {
        Ok(position) => Ok(refund_object(&books.payments[index], position)),
        Err(refusal) => Err(not_refundable(&books.payments[index], refusal)),
    }
}

pub(super) fn fetch_refund(books: &Books, account: usize, id: &str, form: &Form) -> Result<Value, Answer> {
    form.allow(&[])?;
    plain(form)?;
    let own = books.payments.iter().filter(|payment| payment.account == account);
    let mut found = own.filter_map(|payment| {
        let position = payment.refunds.iter().position(|refund| refund.id(payment.kind) == id)?;
        Some(refund_object(payment, position))
    });
    found.next_back().ok_or_else(|| no_such("refund", id))
}

pub(super) fn fetch_dispute(books: &Books, account: usize, id: &str, form: &Form) -> Result<Value, Answer> {
    form.allow(&[])?;
    plain(form)?;
    let own = books.payments.iter().filter(|payment| payment.account == account);
    let mut found = own.filter_map(|payment| {
        let position = payment.disputes.iter().position(|dispute| dispute.id(payment.kind) == id)?;
        Some(dispute(payment, position))
    });
    found.next_back().ok_or_else(|| no_such("dispute", id))
}

/// Nothing is expanded here.
pub(super) fn plain(form: &Form) -> Result<(), Answer> {
    form.expand().first().map_or(Ok(()), |path| Err(not_expandable(path)))
}
