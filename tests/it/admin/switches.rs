//! The switches of a sale, as buyers feel them.

use std::sync::Arc;

use domain::orders::State;
use domain::roles::Role;
use serde_json::json;
use tests::chain::Chain;
use tests::http::{self, Buyer, is};
use tests::look;
use tests::randomness;
use tests::seed::{order, product, quick};
use tests::staff::Office;
use uuid::Uuid;

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_refuses_new_orders_and_ends() {
    let office = Office::open().await;
    let member = office.hire(Role::Operator).await;
    let sold = product(office.tenant_id, 10).insert(&mut office.database.another_owner().await).await;
    let chain = Chain::new(&office.database, 1, 10, randomness::seed());
    let orders = http::orders(office.database.app(1), Arc::clone(&chain.queues) as _);
    let buyer = Buyer::new(office.tenant_id);
    let place = async |key: &str| buyer.place(&orders, sold.described.id, key, r#"{"quantity":1}"#).await;
    let product_switch = format!("/v1/admin/products/{}/intake", sold.described.id);
    for path in [product_switch.as_str(), "/v1/admin/store/intake"] {
        let switch = async |intake: &str| {
            let body = json!({ "intake": intake, "reason": "a test" });
            member.send(&office.admin, "PUT", path, &body).await.status
        };
        assert_eq!((switch("paused").await, switch("paused").await), (204, 204), "twice is once");
        assert_eq!(place(&format!("{path}-paused")).await.refusal(), is(503, "sales-paused"));
        assert_eq!(switch("open").await, 204);
        place(&format!("{path}-open")).await.accepted();
        for body in [json!({ "intake": "closed", "reason": "x" }), json!({ "intake": "open", "reason": " " })] {
            assert_eq!(member.send(&office.admin, "PUT", path, &body).await.refusal(), is(422, "invalid"), "{body}");
        }
    }
    office.database.finish_under_way().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_halt_stops_numbers_and_is_seen() {
    let office = Office::open().await;
    let member = office.hire(Role::Owner).await;
    let sold = product(office.tenant_id, 10).insert(&mut office.database.another_owner().await).await;
    let path = format!("/v1/admin/products/{}/reserving", sold.described.id);
    let switch = async |reserving: &str| {
        let body = json!({ "reserving": reserving, "reason": "numbers look wrong" });
        member.send(&office.admin, "PUT", &path, &body).await.status
    };
    let chain = Chain::new(&office.database, 1, 10, randomness::seed());
    let id = order(office.database.owner(), &sold, Uuid::now_v7(), &quick(1)).await;
    assert_eq!(switch("halted").await, 204);
    let blocks = format!("/v1/admin/products/{}/blocks", sold.described.id);
    let blocked = member.send(&office.admin, "POST", &blocks, &json!({ "numbers": [1], "reason": "x" })).await;
    assert_eq!(blocked.refusal(), is(409, "reserving-halted"));
    chain.put(&sold, id);
    chain.run().await;
    assert_eq!(look::order(&office.database, id).await.state, State::Queued);
    let shown = member.get(&office.admin, &format!("/v1/admin/products/{}", sold.described.id)).await.json();
    assert_eq!(shown["reserving"], "halted");
    assert_eq!(switch("on").await, 204);
    chain.put(&sold, id);
    chain.run().await;
    assert_eq!(look::order(&office.database, id).await.state, State::Reserved);
    office.database.finish_under_way().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sale_is_closed_once_it_has_opened() {
    let office = Office::open().await;
    let member = office.hire(Role::Operator).await;
    let mut owner = office.database.another_owner().await;
    let soon = time::OffsetDateTime::now_utc() + time::Duration::hours(1);
    let announced = product(office.tenant_id, 10).window(soon, soon + time::Duration::days(1)).insert(&mut owner).await;
    let sold = product(office.tenant_id, 10).insert(&mut owner).await;
    let close = async |id: Uuid, key: &str| {
        let path = format!("/v1/admin/products/{id}/closings");
        member.send_under(&office.admin, key, "POST", &path, &json!({ "reason": "called off" })).await
    };
    let early = close(announced.described.id, "a").await;
    assert_eq!((early.refusal(), early.retry_after()), (is(409, "not-open"), None), "not in a few seconds");
    let waiting = order(&owner, &sold, Uuid::now_v7(), &quick(1)).await;
    assert_eq!(close(sold.described.id, "b").await.status, 204);
    assert_eq!(close(sold.described.id, "b").await.status, 204, "the same request");
    assert_eq!(close(sold.described.id, "c").await.refusal(), is(409, "sale-closed"));
    let chain = Chain::new(&office.database, 1, 10, randomness::seed());
    let orders = http::orders(office.database.app(1), Arc::clone(&chain.queues) as _);
    let late = Buyer::new(office.tenant_id).place(&orders, sold.described.id, "k", r#"{"quantity":1}"#).await;
    assert_eq!(late.refusal(), is(409, "sale-closed"));
    chain.put(&sold, waiting);
    chain.run().await;
    assert_eq!(look::order(&office.database, waiting).await.state, State::Rejected);
    office.database.finish_under_way().await;
}
