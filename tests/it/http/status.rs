//! `order-status`: one order and the buyer's list.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::http::{self, Answer, Api, Buyer, is};
use tests::look::change;
use tests::seed::{self, product};
use tests::writes::Writes;
use uuid::Uuid;

use super::Shop;

fn fresh(shop: &Shop) -> Api {
    http::order_status(shop.database.app(2))
}

async fn conditional(api: &Api, buyer: &Buyer, id: Uuid, etag: &str) -> Answer {
    api.send(buyer.ask("GET", &format!("/v1/orders/{id}")).header("if-none-match", etag), "").await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_from_queued_to_cancelled() {
    let shop = Shop::open().await;
    let buyer = shop.buyer();
    let id = shop.order(&buyer, r#"{"numbers":[7,77],"fallback":"drop"}"#).await;
    let queued = buyer.read(&fresh(&shop), id).await;
    assert_eq!((queued.status, queued.header("cache-control")), (200, "private, no-cache"));
    let body = queued.json();
    assert_eq!((&body["id"], &body["state"], &body["place"]), (&json!(id), &json!("queued"), &Value::Null));
    assert_eq!(body["requested"], json!({"numbers": [7, 77], "quantity": 0, "fallback": "drop"}));
    assert_eq!((body["poll_after"].as_u64(), queued.retry_after()), (Some(2), Some(2)));

    shop.chain.run().await;
    let reserved = buyer.read(&fresh(&shop), id).await.json();
    assert_eq!((&reserved["state"], &reserved["numbers"]), (&json!("reserved"), &json!([7, 77])));
    assert_eq!(reserved["labels"], json!(["00007", "00077"]));
    assert_eq!(reserved["total"], json!({"amount": "500", "currency": "EUR"}));
    let expires_at = reserved["expires_at"].as_str().unwrap();
    let expires_at = time::OffsetDateTime::parse(expires_at, &time::format_description::well_known::Rfc3339).unwrap();
    let left = expires_at - time::OffsetDateTime::now_utc();
    assert!(left > time::Duration::seconds(890) && left <= time::Duration::seconds(900), "{left}");

    buyer.cancel(&shop.orders, id, "c").await;
    let asked = buyer.read(&fresh(&shop), id).await.json();
    assert_eq!((&asked["state"], &asked["cancel_requested"]), (&json!("reserved"), &json!(true)));
    shop.chain.run().await;
    let cancelled = buyer.read(&fresh(&shop), id).await;
    assert_eq!((&cancelled.json()["state"], cancelled.retry_after()), (&json!("cancelled"), None));
    assert_eq!(cancelled.json()["poll_after"], Value::Null);
    shop.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loser_learns_what_was_lost_and_what_is_free() {
    let shop = Shop::with(|tenant| product(tenant, 20)).await;
    let (winner, loser) = (shop.buyer(), shop.buyer());
    shop.order(&winner, r#"{"numbers":[1,2,3]}"#).await;
    shop.chain.run().await;
    let id = shop.order(&loser, r#"{"numbers":[2,3,4]}"#).await;
    shop.chain.run().await;
    let body = loser.read(&fresh(&shop), id).await.json();
    assert_eq!((&body["state"], &body["reason"]["code"]), (&json!("rejected"), &json!("numbers-taken")));
    assert_eq!((&body["lost_numbers"], &body["numbers"]), (&json!([2, 3]), &json!([])));
    let suggestions: Vec<i64> = body["suggestions"].as_array().unwrap().iter().filter_map(Value::as_i64).collect();
    assert!(!suggestions.is_empty() && suggestions.iter().all(|number| (4..=20).contains(number)), "{suggestions:?}");
    shop.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unchanged_is_304_until_it_changes() {
    let shop = Shop::open().await;
    let buyer = shop.buyer();
    let id = shop.order(&buyer, r#"{"quantity":1}"#).await;
    let first = buyer.read(&fresh(&shop), id).await;
    let etag = first.header("etag");
    assert!(etag.starts_with("W/\""));
    let same = conditional(&fresh(&shop), &buyer, id, etag).await;
    assert_eq!((same.status, same.body.len(), same.header("etag")), (304, 0, etag));
    assert_eq!(same.retry_after(), Some(2), "a 304 says too when to come back");
    shop.chain.run().await;
    let changed = conditional(&fresh(&shop), &buyer, id, etag).await;
    assert_eq!((changed.status, &changed.json()["state"]), (200, &json!("reserved")));
    assert_ne!(changed.header("etag"), etag);
    shop.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_early_poll_is_answered_from_memory() {
    let shop = Shop::open().await;
    let buyer = shop.buyer();
    let id = shop.order(&buyer, r#"{"quantity":1}"#).await;
    let other = shop.order(&buyer, r#"{"quantity":1}"#).await;
    shop.chain.run().await;
    let pool = shop.database.app(1);
    let api = http::order_status(pool.clone());
    assert_eq!(buyer.read(&api, id).await.status, 200);
    assert_eq!(buyer.read(&api, id).await.status, 200, "the first early poll is excused");
    let polled = Instant::now();
    {
        let _only_connection = pool.client().await.unwrap();
        let answer = buyer.read(&api, id).await;
        assert_eq!(answer.refusal(), is(429, "too-early"));
        assert!(matches!(answer.retry_after(), Some(3..=5)), "{:?}", answer.retry_after());
        assert!(polled.elapsed() < Duration::from_millis(2_400), "no connection was waited for");
    }
    assert_eq!(buyer.read(&api, other).await.status, 200, "another order");
    assert_eq!(shop.buyer().read(&api, id).await.refusal(), is(404, "not-found"), "another buyer");
    tokio::time::sleep_until((polled + Duration::from_millis(2_550)).into()).await;
    assert_eq!(buyer.read(&api, id).await.status, 200, "half of the wait is over");
    shop.pay(id).await;
    for _ in 0..3 {
        let ended = buyer.read(&fresh(&shop), id).await;
        assert_eq!((ended.status, ended.retry_after()), (200, None), "an ended order may be read at will");
    }
    shop.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_peoples_orders_do_not_exist() {
    let shop = Shop::open().await;
    let buyer = shop.buyer();
    let id = shop.order(&buyer, r#"{"quantity":1}"#).await;
    let elsewhere = seed::store(&shop.database.another_owner().await).await;
    let api = fresh(&shop);
    let writes = Writes::watch(&shop.database).await;
    for stranger in [shop.buyer(), Buyer::with_id(elsewhere, buyer.id)] {
        assert_eq!(stranger.read(&api, id).await.refusal(), is(404, "not-found"));
        let list = api.send(stranger.ask("GET", "/v1/orders"), "").await;
        assert_eq!(list.json(), json!({"orders": [], "next_cursor": null}));
    }
    assert_eq!(buyer.read(&api, Uuid::now_v7()).await.refusal(), is(404, "not-found"));
    assert_eq!(api.send(buyer.ask("GET", "/v1/orders/7"), "").await.refusal(), is(404, "not-found"));
    assert_eq!(writes.take().await, Vec::<Vec<String>>::new(), "reading writes nothing");
    shop.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_in_pages() {
    let shop = Shop::open().await;
    let buyer = shop.buyer();
    let mut placed = Vec::new();
    for _ in 0..7 {
        placed.push(shop.order(&buyer, r#"{"quantity":1}"#).await);
        shop.order(&shop.buyer(), r#"{"quantity":1}"#).await;
    }
    placed.reverse();
    let api = fresh(&shop);
    let list = async |query: &str| api.send(buyer.ask("GET", &format!("/v1/orders{query}")), "").await;
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    for expected in [3, 3, 1] {
        let page = list(&format!("?limit=3{cursor}")).await.json();
        let orders = page["orders"].as_array().unwrap();
        assert_eq!(orders.len(), expected);
        seen.extend(orders.iter().map(|order| order["id"].as_str().unwrap().parse::<Uuid>().unwrap()));
        cursor = page["next_cursor"].as_str().map_or(String::new(), |cursor| format!("&cursor={cursor}"));
    }
    assert_eq!((seen, cursor.as_str()), (placed, ""), "newest first, each once");
    assert_eq!(list("").await.json()["orders"].as_array().unwrap().len(), 7);
    for query in ["?limit=0", "?limit=101", "?limit=x", "?cursor=x", "?limit=1&limit=2", "?offset=3"] {
        assert_eq!(list(query).await.refusal(), is(422, "invalid"), "{query}");
    }
    let first = list("").await;
    let request = buyer.ask("GET", "/v1/orders").header("if-none-match", first.header("etag"));
    assert_eq!(api.send(request, "").await.status, 304);
    change(&shop.database, "update products set price_minor = 999", 1).await;
    assert_eq!(list("").await.json()["orders"][0]["unit_price"]["amount"], "250", "the price at acceptance");
    shop.finish().await;
}
