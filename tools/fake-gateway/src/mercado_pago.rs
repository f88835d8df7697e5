//! Mercado Pago's payments API, as far as its public reference describes what a shop with Pix needs. Bodies and
//! answers are JSON; amounts are decimals, ids numbers.

mod errors;
mod objects;
mod pix;
mod requests;

use serde_json::{Value, json};

pub(super) use errors::trouble;
pub(super) use objects::event;

use super::books::Books;
use super::calls::{Answer, Request};
use super::faults::Call;
use super::keys::Kept;

/// The kind of a call; none for what this gateway does not serve.
pub(super) fn call(request: &Request) -> Option<Call> {
    Some(match (request.method.as_str(), request.segments().as_slice()) {
        ("POST", ["v1", "payments"]) => Call::Create,
        ("GET", ["v1", "payments", "search"]) => Call::Find,
        ("GET", ["v1", "payments", _]) => Call::Fetch,
        ("PUT", ["v1", "payments", _]) => Call::Void,
        ("POST", ["v1", "payments", _, "refunds"]) => Call::Refund,
        ("GET", ["v1", "payments", _, "refunds"] | ["v1", "payments", _, "refunds", _]) => Call::FetchRefunds,
        _ => return None,
    })
}

fn body(request: &Request) -> Value {
    if request.body.is_empty() { json!({}) } else { serde_json::from_slice(&request.body).unwrap_or_default() }
}

fn query(request: &Request, name: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(request.query.as_bytes());
    pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

/// Names in a call by which its payment may be known.
pub(super) fn names(request: &Request) -> Vec<String> {
    let reference = body(request)["external_reference"].as_str().map(str::to_owned);
    let segment = request.segments().get(2).map(|segment| (*segment).to_owned());
    [reference, query(request, "external_reference"), segment].into_iter().flatten().collect()
}

/// Executes a call.
pub(super) fn act(books: &mut Books, account: usize, request: &Request) -> Answer {
    let body = body(request);
    let done = match (request.method.as_str(), request.segments().as_slice()) {
        ("POST", ["v1", "payments"]) => requests::create(books, account, request.key(), &body),
        ("GET", ["v1", "payments", "search"]) => requests::search(books, account, request),
        ("GET", ["v1", "payments", id]) => requests::fetch(books, account, id),
        ("PUT", ["v1", "payments", id]) => requests::cancel(books, account, id, &body),
        ("POST", ["v1", "payments", id, "refunds"]) => requests::refund(books, account, id, request.key(), &body),
        ("GET", ["v1", "payments", id, "refunds"]) => requests::refunds(books, account, id),
        ("GET", ["v1", "payments", id, "refunds", refund]) => requests::fetch_refund(books, account, id, refund),
        _ => Err(errors::no_such_route()),
    };
    done.unwrap_or_else(|answer| answer)
}

/// "Refund of transactions with Pix": a refund that is in process is answered with 400, unless a header asks for it.
pub(super) fn shown(request: &Request, answer: Answer) -> Answer {
    let is_in_process = request.method == "POST" && answer.status < 300 && answer.body["status"] == "in_process";
    let is_asked_for = request.header("x-render-in-process-refunds") == Some("true");
    if is_in_process && !is_asked_for { errors::wrong_state() } else { answer }
}

/// The answer to a key that was used before: "If the payment has already been created, its information is returned".
pub(super) fn again(books: &Books, account: usize, kept: Kept) -> Answer {
    let id = kept.body["id"].to_string();
    let now = match kept.body["payment_id"].as_u64() {
        Some(payment) => requests::fetch_refund(books, account, &payment.to_string(), &id),
        None => requests::fetch(books, account, &id),
    };
    now.unwrap_or_else(|answer| answer)
}
