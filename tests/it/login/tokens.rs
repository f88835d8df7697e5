//! Tokens of the login where they are none of use: in another place, and at another store.

use tests::http::{self, Buyer, ask, is};
use tests::login::Door;
use uuid::Uuid;

use super::PHONE;

#[tokio::test(flavor = "multi_thread")]
async fn only_the_access_token_gives_access() {
    let door = Door::open().await;
    let session = door.log_in(PHONE).await;
    let status = http::order_status(door.database.app(1));
    for (name, expected) in [("access_token", 200), ("refresh_token", 401), ("device", 401)] {
        let bearer = format!("Bearer {}", session[name].as_str().unwrap());
        let answer = status.send(ask("GET", "/v1/orders").header("authorization", bearer), "").await;
        assert_eq!(answer.status, expected, "{name}: {}", answer.text());
    }
    for name in ["access_token", "device"] {
        let answer = door.refresh(&session[name], &session["device"]).await;
        assert_eq!(answer.refusal(), is(401, "unauthorized"), "{name}");
    }
    let answer = door.refresh(&session["refresh_token"], &session["device"]).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    door.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_another_store_finds_nothing_here() {
    let door = Door::open().await;
    let mut client = door.database.another_owner().await;
    let product = tests::seed::product(door.tenant_id, 100).insert(&mut client).await;
    let session = door.log_in(PHONE).await;
    let id: Uuid = session["buyer"].as_str().unwrap().parse().unwrap();
    let buyer = Buyer { id, bearer: format!("Bearer {}", session["access_token"].as_str().unwrap()) };
    let orders = http::orders(door.database.app(1), door.queues.clone());
    let order = buyer.place(&orders, product.described.id, "first", r#"{"quantity":1}"#).await.accepted();
    let other = tests::seed::store(door.database.owner()).await;
    let stranger = Buyer::with_id(other, id);
    let status = http::order_status(door.database.app(1));
    assert_eq!(stranger.read(&status, order).await.refusal(), is(404, "not-found"));
    let placed = stranger.place(&orders, product.described.id, "first", r#"{"quantity":1}"#).await;
    assert_eq!(placed.refusal(), is(404, "not-found"));
    door.database.finish_under_way().await;
}
