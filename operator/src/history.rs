//! One order, from its first day.

use domain::Reason;
use domain::catalog::Range;
use serde_json::{Value, json};
use store::Client;
use store::orders::{Event, Order};
use uuid::Uuid;

use crate::failure::Failure;
use crate::output::{Output, instant, minor, or_dash, table};

/// `tirada order`
pub(crate) async fn show(client: &Client, id: Uuid) -> Result<Output, Failure> {
    let (order, events) = find(client, id).await?;
    let facts = table(["ORDER", &order.id.to_string()], facts(&order));
    let rows = events.iter().map(event_row).collect();
    let text = format!("{facts}\n\n{}", table(["VERSION", "AT", "FROM", "TO", "CAUSE"], rows));
    Ok(Output::new(text, in_json(&order, &events)))
}

async fn find(client: &Client, id: Uuid) -> Result<(Order, Vec<Event>), Failure> {
    let found = store::orders::history(client, id).await;
    found.map_err(|error| Failure::explained(error, Reason::NotFound, format!("there is no order {id}")))
}

/// The order, or a refusal that names it.
pub(crate) async fn require(client: &Client, id: Uuid) -> Result<Order, Failure> {
    Ok(find(client, id).await?.0)
}

fn facts(order: &Order) -> Vec<[String; 2]> {
    let minor = |amount: i64| minor(amount, &order.currency);
    let requested = format!(
        "{} and {} random, else {}",
        list(&order.requested_numbers, order.padding),
        order.requested_quantity,
        order.fallback.word()
    );
    let mut facts = vec![
        ("state", order.state.word().to_owned()),
        ("product", order.product_id.to_string()),
        ("store", order.tenant_id.to_string()),
        ("buyer", order.buyer_id.to_string()),
        ("requested", requested),
        ("numbers", list(&order.numbers, order.padding)),
        ("unit price", minor(order.unit_price_minor)),
        ("total", or_dash(order.total_minor.map(minor))),
        ("accepted", instant(order.created_at)),
        ("queue deadline", instant(order.queue_deadline)),
        ("hold ends", or_dash(order.expires_at.map(instant))),
    ];
    let optional = [
        ("lost numbers", (!order.lost_numbers.is_empty()).then(|| list(&order.lost_numbers, order.padding))),
        ("given up", (!order.given_up.is_empty()).then(|| list(&order.given_up, order.padding))),
        ("reason", order.reason.map(|reason| reason.code().to_owned())),
        ("cancel asked", order.cancel_requested_at.map(instant)),
    ];
    facts.extend(optional.into_iter().filter_map(|(name, value)| Some((name, value?))));
    facts.into_iter().map(|(name, value)| [name.to_owned(), value]).collect()
}

pub(crate) fn list(numbers: &[i32], padding: i16) -> String {
    if numbers.is_empty() {
        return "none".into();
    }
    numbers.iter().map(|number| Range::label(*number, padding)).collect::<Vec<_>>().join(" ")
}

fn event_row(event: &Event) -> [String; 5] {
    [
        event.version.to_string(),
        instant(event.at),
        or_dash(event.from_state.map(domain::orders::State::word)),
        event.to_state.word().to_owned(),
        event.cause.clone(),
    ]
}

fn in_json(order: &Order, events: &[Event]) -> Value {
    let events: Vec<Value> = events
        .iter()
        .map(|event| {
            json!({
                "version": event.version, "at": instant(event.at), "cause": event.cause,
                "from": event.from_state.map(domain::orders::State::word), "to": event.to_state.word(),
            })
        })
        .collect();
    json!({
        "order": {
            "id": order.id, "product_id": order.product_id, "tenant_id": order.tenant_id, "buyer_id": order.buyer_id,
            "state": order.state.word(), "version": order.version,
            "requested": {
                "numbers": order.requested_numbers, "quantity": order.requested_quantity,
                "fallback": order.fallback.word(),
            },
            "numbers": order.numbers, "lost_numbers": order.lost_numbers, "substitutes": order.substitutes,
            "given_up": order.given_up,
            "suggestions": order.suggestions, "reason": order.reason.map(domain::Reason::code),
            "unit_price_minor": order.unit_price_minor, "total_minor": order.total_minor, "currency": order.currency,
            "created_at": instant(order.created_at), "queue_deadline": instant(order.queue_deadline),
            "expires_at": order.expires_at.map(instant),
            "cancel_requested_at": order.cancel_requested_at.map(instant),
        },
        "history": events,
    })
}
