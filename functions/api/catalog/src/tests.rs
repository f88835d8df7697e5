//! What can be said without a database: routes, documentation, and refusals that come before it.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::Request;
use domain::catalog::{Intake, Money, NewProduct, Range, Reserving};
use domain::numbers::Counters;
use serde_json::{Value, json};
use store::Settings;
use store::catalog::{Availability, Product};
use time::OffsetDateTime;
use tower::ServiceExt;
use uuid::Uuid;

use super::*;
use crate::availability::buckets;
use crate::products::ProductWithCounters;
use crate::snapshot::Snapshot;

pub(crate) fn snapshot() -> Snapshot {
    let range = Range { first: 1, count: 10_000 };
    let described = NewProduct {
        id: Uuid::from_u128(7),
        tenant_id: Uuid::from_u128(1),
        campaign: "spring".into(),
        name: "A thousand prints".into(),
        range,
        padding: 5,
        price: Money { minor: 1_000, currency: "BRL".into() },
        opens_at: OffsetDateTime::UNIX_EPOCH,
        closes_at: OffsetDateTime::UNIX_EPOCH + Duration::from_secs(60),
        zone: "America/Sao_Paulo".into(),
        hold_seconds: 600,
        numbers_per_order_max: 5,
        numbers_per_buyer_max: 10,
    };
    let product =
        Product { key: 3, store: "lima".into(), described, intake: Intake::Open, reserving: Reserving::On, version: 2 };
    let counters = Counters { available: 9_999, reserved: 1, ..Counters::default() };
    let availability = Availability { counters, version: 9 };
    Snapshot { product, intake: Intake::Open, availability, buckets: Arc::new(buckets::count(range, &[])) }
}

/// The function with a database that nobody listens for.
async fn ask(path: &str) -> (u16, Value) {
    let mut settings = Settings::from_url("postgres://nobody@127.0.0.1:1/none").unwrap();
    settings.borrow_timeout = Duration::from_millis(200);
    let state = State::new(Database::new(settings).unwrap());
    let service = edge::http::service(router(state));
    let response = service.oneshot(Request::get(path).body(Body::empty()).unwrap()).await.unwrap();
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, serde_json::from_slice(&body).unwrap())
}

#[tokio::test]
async fn what_cannot_be_ours_is_refused_before_any_database_work() {
    let id = Uuid::nil();
    for (path, status, code) in [
        ("/v1/nowhere".to_owned(), 404, "not-found"),
        ("/v1/products/7".to_owned(), 404, "not-found"),
        ("/v1/products/7/availability".to_owned(), 404, "not-found"),
        (format!("/v1/products/{id}/availability/x"), 404, "not-found"),
        (format!("/v1/products/{id}/availability/99999999999"), 404, "not-found"),
        (format!("/v1/products/{id}/numbers/1.5"), 404, "not-found"),
        (format!("/v1/products/{id}/numbers/%ff"), 404, "not-found"),
        ("/v1/stores/a/products?limit=0".to_owned(), 422, "invalid"),
        ("/v1/stores/a/products?limit=101".to_owned(), 422, "invalid"),
        ("/v1/stores/a/products?limit=x".to_owned(), 422, "invalid"),
        ("/v1/stores/a/products?cursor=x".to_owned(), 422, "invalid"),
        ("/v1/stores/a/products?offset=1".to_owned(), 422, "invalid"),
    ] {
        let (got, problem) = ask(&path).await;
        assert_eq!((got, &problem["code"]), (status, &Value::from(code)), "{path}: {problem}");
        assert_eq!(problem["type"], format!("urn:tirada:problem:{code}"), "{path}");
    }
}

#[tokio::test]
async fn a_database_that_is_away_is_503() {
    for path in ["/v1/time".to_owned(), "/v1/stores/a".to_owned(), format!("/v1/products/{}", Uuid::nil())] {
        let (status, problem) = ask(&path).await;
        assert_eq!((status, &problem["code"]), (503, &Value::from("unavailable")), "{path}");
        assert_eq!(problem["retry_after"], 2);
    }
}

#[test]
fn every_route_is_documented() {
    let documentation = serde_json::to_value(routes().to_openapi()).unwrap();
    let paths: Vec<_> = documentation["paths"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(
        paths,
        [
            "/v1/products/{product}",
            "/v1/products/{product}/availability",
            "/v1/products/{product}/availability/{chunk}",
            "/v1/products/{product}/numbers/{number}",
            "/v1/stores/{store}",
            "/v1/stores/{store}/products",
            "/v1/time",
        ]
    );
}

#[test]
fn a_product_reads_as_agreed() {
    let body = serde_json::to_value(ProductWithCounters::new(&snapshot())).unwrap();
    assert_eq!(
        body,
        json!({
            "id": Uuid::from_u128(7), "name": "A thousand prints", "campaign": "spring",
            "price": {"amount": "1000", "currency": "BRL"}, "first": 1, "count": 10_000, "padding": 5,
            "opens_at": "1970-01-01T00:00:00Z", "closes_at": "1970-01-01T00:01:00Z", "zone": "America/Sao_Paulo",
            "hold_seconds": 600, "numbers_per_order_max": 5, "numbers_per_buyer_max": 10, "intake": "open",
            "counters": {"available": 9_999, "reserved": 1, "paid": 0, "blocked": 0},
            "availability": {"version": 9, "numbers_per_chunk": 8_192, "chunk_count": 2, "bit_order": "lsb-first"},
        })
    );
}

#[test]
fn a_tag_changes_with_each_thing_that_an_answer_says() {
    let base = snapshot();
    let mut paused = base.clone();
    paused.intake = Intake::Paused;
    let mut sold = base.clone();
    sold.availability.version += 1;
    let mut renamed = base.clone();
    renamed.product.version += 1;
    let tags: std::collections::BTreeSet<_> = [&base, &paused, &sold, &renamed].map(Snapshot::tag).into();
    assert_eq!(tags.len(), 4);
}
