//! `POST /v1/webhooks/{gateway}/{store}`

use axum::extract::State as Shared;
use axum::http::{HeaderMap, StatusCode, Uri};
use domain::Reason;
use domain::messages::{EventMessage, Queue};
use domain::payments::Gateway;
use edge::Problem;
use edge::http::{PathParams, RawBody};
use edge::metrics::{self, Dimension};
use edge::queue::Outgoing;
use gateways::{WebhookRequest, verify};
use store::payments::{Event, Received};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::State;

/// Hear from a gateway.
///
/// For gateways only: the signature is checked over the bytes as received. The same event may come any number of times.
#[utoipa::path(
    post, path = "/v1/webhooks/{gateway}/{store}", tag = "payments", operation_id = "receive_webhook",
    params(("gateway" = String, Path, description = "stripe, mercado-pago or sandbox"),
        ("store" = String, Path, description = "The store's slug")),
    request_body(content = String, content_type = "application/json"),
    responses(
        (status = 200, description = "Written down"),
        (status = 400, description = "bad-signature", body = Problem),
        (status = 404, description = "not-found", body = Problem),
        (status = 413, description = "too-large", body = Problem),
        (status = 503, description = "unavailable", body = Problem))
)]
pub(crate) async fn receive(
    Shared(state): Shared<State>,
    PathParams((gateway, store)): PathParams<(String, String)>,
    uri: Uri,
    headers: HeaderMap,
    RawBody(body): RawBody,
) -> Result<StatusCode, Problem> {
    let gateway = Gateway::from_word(&gateway).filter(|gateway| *gateway != Gateway::Manual).ok_or(Reason::NotFound)?;
    let tenant_id = state.stores.tenant(&state.database, &store).await?;
    let credentials = state.cashier.credentials(tenant_id, gateway).await?;
    let request = WebhookRequest {
        headers: &headers,
        query: uri.query().unwrap_or_default(),
        body: &body,
        now: OffsetDateTime::now_utc(),
    };
    let mut heard = verify(&credentials, &request);
    if heard.is_err()
        && let Some(again) = state.cashier.credentials_again(tenant_id, gateway).await?
    {
        heard = verify(&again, &request);
    }
    let heard = heard.map_err(|error| {
        metrics::count("webhooks", &[(Dimension::Outcome, "bad-signature")]);
        tracing::warn!(store.id = %tenant_id, gateway = gateway.word(), error.message = %error, "a webhook was refused");
        Problem::new(Reason::BadSignature)
    })?;
    let event = Event { tenant_id, gateway, event_id: heard.event_id, kind: heard.kind, payment_id: heard.payment_id };
    let received = store::payments::receive(&*state.database.client().await?, &event).await?;
    fail::fail_point!("webhook.received");
    count(received);
    if received != Received::Processed {
        publish(&state, &event).await;
    }
    Ok(StatusCode::OK)
}

/// A message that cannot be sent is owed by the inbox: the reconciler sends it.
async fn publish(state: &State, event: &Event) {
    let message = EventMessage::new(event.tenant_id, event.gateway, &event.event_id);
    let sent = state.queue.send(Queue::SettlePayment, &[Outgoing::from(&message)]).await;
    if let Some(Err(error)) = sent.into_iter().next() {
        let store_id: Uuid = event.tenant_id;
        tracing::warn!(store.id = %store_id, %error, "an event was not published, left to the reconciler");
    }
}

fn count(received: Received) {
    let outcome = match received {
        Received::New => "new",
        Received::Unprocessed | Received::Processed => "duplicate",
    };
    metrics::count("webhooks", &[(Dimension::Outcome, outcome)]);
}
