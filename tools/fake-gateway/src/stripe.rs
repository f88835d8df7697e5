//! Stripe's API, as far as its public reference describes what a shop needs: PaymentIntents, Checkout Sessions,
//! charges, refunds, disputes. Bodies are forms with bracketed keys, answers JSON.
//!
//! Parameters that the reference does not list are refused, and so is expanding what cannot be expanded.

mod charges;
mod errors;
mod form;
mod intents;
mod lists;
mod objects;
mod sessions;

pub(super) use errors::trouble;
pub(super) use objects::events;

use super::books::Books;
use super::calls::{Answer, Request};
use super::faults::Call;
use form::Form;

/// Longest idempotency key.
pub(super) const KEY_MAX: usize = 255;

/// The kind of a call; none for what this gateway does not serve.
pub(super) fn call(request: &Request) -> Option<Call> {
    Some(match (request.method.as_str(), request.segments().as_slice()) {
        ("POST", ["v1", "payment_intents"] | ["v1", "checkout", "sessions"]) => Call::Create,
        ("GET", ["v1", "payment_intents" | "charges"] | ["v1", "checkout", "sessions"]) => Call::Find,
        ("GET", ["v1", "payment_intents", "search"]) => Call::Find,
        ("GET", ["v1", "payment_intents" | "charges", _] | ["v1", "checkout", "sessions", _]) => Call::Fetch,
        ("POST", ["v1", "payment_intents", _, "capture"]) => Call::Capture,
        ("POST", ["v1", "payment_intents", _, "cancel"] | ["v1", "checkout", "sessions", _, "expire"]) => Call::Void,
        ("POST", ["v1", "refunds"]) => Call::Refund,
        ("GET", ["v1", "refunds" | "disputes"] | ["v1", "refunds" | "disputes", _]) => Call::FetchRefunds,
        _ => return None,
    })
}

/// Names in a call by which its payment may be known.
pub(super) fn names(request: &Request) -> Vec<String> {
    let form = Form::of(request);
    let given = [
        "metadata[attempt_id]",
        "metadata[order_id]",
        "payment_intent_data[metadata][attempt_id]",
        "payment_intent",
        "charge",
    ];
    let mut names: Vec<String> = given.into_iter().filter_map(|name| form.get(name).map(str::to_owned)).collect();
    names.extend(form.get("query").and_then(|query| lists::wanted(query).ok()).map(|(_, value)| value));
    names.extend(request.segments().iter().skip(2).map(|segment| (*segment).to_owned()));
    names
}

/// Executes a call.
pub(super) fn act(books: &mut Books, account: usize, request: &Request) -> Answer {
    let form = Form::of(request);
    let done = match (request.method.as_str(), request.segments().as_slice()) {
        ("POST", ["v1", "payment_intents"]) => intents::create(books, account, request.key(), &form),
        ("GET", ["v1", "payment_intents"]) => lists::intents(books, account, &form),
        ("GET", ["v1", "payment_intents", "search"]) => lists::search(books, account, &form),
        ("GET", ["v1", "payment_intents", id]) => intents::fetch(books, account, id, &form),
        ("POST", ["v1", "payment_intents", id, "capture"]) => intents::capture(books, account, id, &form),
        ("POST", ["v1", "payment_intents", id, "cancel"]) => intents::cancel(books, account, id, &form),
        ("POST", ["v1", "checkout", "sessions"]) => sessions::create(books, account, request.key(), &form),
        ("GET", ["v1", "checkout", "sessions"]) => lists::sessions(books, account, &form),
        ("GET", ["v1", "checkout", "sessions", id]) => sessions::fetch(books, account, id, &form),
        ("POST", ["v1", "checkout", "sessions", id, "expire"]) => sessions::expire(books, account, id, &form),
        ("GET", ["v1", "charges"]) => lists::charges(books, account, &form),
        ("GET", ["v1", "charges", id]) => charges::fetch(books, account, id, &form),
        ("POST", ["v1", "refunds"]) => charges::refund(books, account, request.key(), &form),
        ("GET", ["v1", "refunds"]) => lists::refunds(books, account, &form),
        ("GET", ["v1", "refunds", id]) => charges::fetch_refund(books, account, id, &form),
        ("GET", ["v1", "disputes"]) => lists::disputes(books, account, &form),
        ("GET", ["v1", "disputes", id]) => charges::fetch_dispute(books, account, id, &form),
        _ => Err(errors::unknown_url(request)),
    };
    done.map_or_else(|answer| answer, Answer::ok)
}
