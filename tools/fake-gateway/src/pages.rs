//! The page on which a person pays or is declined. No script, nothing from elsewhere; Spanish, Portuguese, English.

use std::sync::Arc;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT_LANGUAGE, CONTENT_TYPE, LOCATION};
use axum::response::Response;

use super::Shared;
use super::buyers::{self, Act};
use super::http::plain;
use super::payments::{Payment, PaymentState};

struct Words {
    language: &'static str,
    title: &'static str,
    pretended: &'static str,
    pay: &'static str,
    decline: &'static str,
    declined: &'static str,
    paid: &'static str,
    over: &'static str,
}

const SPANISH: Words = Words {
    language: "es",
    title: "Pago de prueba",
    pretended: "Nadie paga de verdad en esta página.",
    pay: "Pagar",
    decline: "Rechazar",
    declined: "El pago fue rechazado. Puedes intentarlo de nuevo.",
    paid: "Pagado. Ya puedes volver a la tienda.",
    over: "Este pago ya no está disponible.",
};
const PORTUGUESE: Words = Words {
    language: "pt-BR",
    title: "Pagamento de teste",
    pretended: "Ninguém paga de verdade nesta página.",
    pay: "Pagar",
    decline: "Recusar",
    declined: "O pagamento foi recusado. Você pode tentar de novo.",
    paid: "Pago. Você já pode voltar à loja.",
    over: "Este pagamento não está mais disponível.",
};
const ENGLISH: Words = Words {
    language: "en",
    title: "Test payment",
    pretended: "Nobody really pays on this page.",
    pay: "Pay",
    decline: "Decline",
    declined: "The payment was declined. You can try again.",
    paid: "Paid. You can go back to the shop.",
    over: "This payment is no longer available.",
};

const STYLE: &str = "body{font:18px/1.5 system-ui,sans-serif;margin:0;color:#1b1b1f;background:#f4f4f6}\
main{max-width:26rem;margin:8vh auto;padding:1.5rem;background:#fff;border-radius:1rem}\
h1{font-size:1.1rem;margin:0}.amount{font-size:2.4rem;font-weight:700;margin:.5rem 0}\
button{font:inherit;width:100%;min-height:3.2rem;margin-top:.75rem;border-radius:.75rem;border:1px solid #767680;\
background:#fff;color:inherit}button[value=pay]{background:#0b6b3a;border-color:#0b6b3a;color:#fff}\
small{color:#55555e}.note{padding:.75rem;border-radius:.5rem;background:#fdecea}";

/// The first language of `Accept-Language` that there is; English otherwise.
fn words(headers: &HeaderMap) -> &'static Words {
    let wanted = headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut ranked: Vec<(&str, f32)> = wanted
        .split(',')
        .map(|part| {
            let (tag, weight) = part.split_once(";q=").unwrap_or((part, "1"));
            (tag.trim(), weight.trim().parse().unwrap_or(0.0))
        })
        .collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    let known = |tag: &str| match tag.get(..2)?.to_lowercase().as_str() {
        "es" => Some(&SPANISH),
        "pt" => Some(&PORTUGUESE),
        "en" => Some(&ENGLISH),
        _ => None,
    };
    ranked.into_iter().find_map(|(tag, _)| known(tag)).unwrap_or(&ENGLISH)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The amount as this language writes it. Every currency of the tests has two decimals.
fn amount(payment: &Payment, words: &Words) -> String {
    let point = if words.language == "en" { '.' } else { ',' };
    format!("{} {}{point}{:02}", payment.currency, payment.amount_minor / 100, payment.amount_minor % 100)
}

/// `GET /pay/{id}`.
pub(super) fn show(shared: &Arc<Shared>, id: &str, headers: &HeaderMap, was_declined: bool) -> Response {
    let books = shared.books();
    let Some(index) = books.find_any(id) else { return plain(404, "There is no such payment") };
    let (payment, words) = (&books.payments[index], words(headers));
    let body = match payment.state {
        PaymentState::Open => {
            let note = if was_declined { format!("<p class=note>{}</p>", words.declined) } else { String::new() };
            format!(
                "{note}<form method=post><button name=choice value=pay>{}</button>\
                 <button name=choice value=decline>{}</button></form>",
                words.pay, words.decline
            )
        }
        PaymentState::Captured | PaymentState::Authorised => format!("<p>{}</p>", words.paid),
        _ => format!("<p>{}</p>", words.over),
    };
    let html = format!(
        "<!doctype html><html lang={}><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\
         <title>{title}</title><style>{STYLE}</style><main><h1>{title}</h1><p>{}</p><p class=amount>{}</p>{body}\
         <p><small>{}</small></p></main></html>",
        words.language,
        escape(payment.description.as_deref().unwrap_or_default()),
        amount(payment, words),
        words.pretended,
        title = words.title,
    );
    let builder = Response::builder().header(CONTENT_TYPE, "text/html; charset=utf-8");
    builder.body(Body::from(html)).expect("its parts are valid")
}

/// `POST /pay/{id}` with `choice=pay` or `choice=decline`.
pub(super) fn press(shared: &Arc<Shared>, id: &str, headers: &HeaderMap, body: &[u8]) -> Response {
    let payment = id.to_owned();
    let is_payment = body == b"choice=pay";
    let act = if is_payment { Act::Pay { payment } } else { Act::Decline { payment, code: "generic_decline".into() } };
    let done = buyers::act(shared, &act);
    let next = {
        let books = shared.books();
        let index = books.find_any(id);
        index
            .and_then(|index| books.payments[index].success_url.clone())
            .map(|url| url.replace("{CHECKOUT_SESSION_ID}", id))
    };
    match next {
        Some(next) if is_payment && done.is_ok() => {
            let builder = Response::builder().status(303).header(LOCATION, next);
            builder.body(Body::empty()).unwrap_or_else(|_| plain(500, "The address to return to is not valid"))
        }
        _ => show(shared, id, headers, !is_payment && done.is_ok()),
    }
}
