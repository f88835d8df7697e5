//! The same request again: one order, one answer.

use std::collections::BTreeSet;

use tests::http::{Buyer, is};
use tests::look::{change, count};
use tests::seed::{exact, product};
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use super::Shop;

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_required_and_have_a_form() {
    let shop = Shop::open().await;
    let path = format!("/v1/products/{}/orders", shop.product_id());
    let request = |buyer: &Buyer| buyer.ask("POST", &path).header("content-type", "application/json");
    let buyer = shop.buyer();
    assert_eq!(shop.orders.send(request(&buyer), r#"{"quantity":1}"#).await.refusal(), is(400, "key-missing"));
    for bad in ["", "\"\"", "a b", "a,b", &"k".repeat(129)] {
        let answer = buyer.place(&shop.orders, shop.product_id(), bad, r#"{"quantity":1}"#).await;
        assert_eq!(answer.refusal(), is(400, "invalid"), "{bad}");
    }
    assert_eq!(count(&shop.database, "select count(*) from orders").await, 0);
    shop.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_belongs_to_one_buyer_and_one_request() {
    let shop = Shop::open().await;
    let mut client = shop.database.another_owner().await;
    let other = product(shop.tenant, 10).insert(&mut client).await.described.id;
    let (buyer, id) = (shop.buyer(), shop.product_id());
    let first = buyer.place(&shop.orders, id, "k", r#"{"numbers":[1,2],"quantity":1}"#).await;
    for same in [r#"{"numbers":[1,2],"quantity":1}"#, r#"{"fallback":"reject","quantity":1,"numbers":[2,1]}"#] {
        for key in ["k", "\"k\""] {
            let again = buyer.place(&shop.another(), id, key, same).await;
            assert!(again.is_replay(), "{same}");
            assert_eq!((again.body, again.status), (first.body.clone(), 202));
        }
    }
    for changed in [
        r#"{"numbers":[1,2],"quantity":2}"#,
        r#"{"numbers":[1,3],"quantity":1}"#,
        r#"{"numbers":[1,2],"quantity":1,"fallback":"drop"}"#,
    ] {
        assert_eq!(buyer.place(&shop.orders, id, "k", changed).await.refusal(), is(422, "key-reused"), "{changed}");
    }
    let same = r#"{"numbers":[1,2],"quantity":1}"#;
    assert_eq!(buyer.place(&shop.orders, other, "k", same).await.refusal(), is(422, "key-reused"), "another product");
    let stranger = shop.buyer().place(&shop.orders, id, "k", same).await;
    assert!(!stranger.is_replay() && stranger.accepted() != first.accepted(), "another buyer's key is another key");
    let upper = buyer.place(&shop.orders, id, "K", same).await;
    assert!(!upper.is_replay(), "keys are case sensitive");
    shop.chain.run().await;
    assert!(buyer.place(&shop.orders, id, "k", same).await.is_replay(), "served long ago");
    shop.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_at_once_are_one_order() {
    let shop = Shop::open().await;
    for round in 0..10 {
        let (buyer, key) = (shop.buyer(), format!("round-{round}"));
        // Each in an environment of its own, as API Gateway would spread them.
        let apis: Vec<_> = (0..20).map(|_| shop.another()).collect();
        let tasks = apis.iter().map(|api| {
            let (buyer, api, key, id) = (buyer.clone(), api.clone(), key.clone(), shop.product_id());
            tokio::spawn(async move { buyer.place(&api, id, &key, r#"{"quantity":2}"#).await })
        });
        let answers: Vec<_> = futures::future::join_all(tasks).await.into_iter().map(Result::unwrap).collect();
        let ids: BTreeSet<Uuid> = answers.iter().map(tests::http::Answer::accepted).collect();
        assert_eq!(ids.len(), 1, "round {round}");
        assert_eq!(answers.iter().filter(|answer| !answer.is_replay()).count(), 1, "round {round}: one is the first");
        let bodies: BTreeSet<_> = answers.iter().map(|answer| &answer.body).collect();
        assert_eq!(bodies.len(), 1, "round {round}");
    }
    assert_eq!(count(&shop.database, "select count(*) from orders").await, 10);
    shop.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_does_not_use_the_key_up() {
    let now = OffsetDateTime::now_utc();
    let shop = Shop::with(|tenant| product(tenant, 9).window(now + Duration::hours(1), now + Duration::hours(2))).await;
    let (buyer, id) = (shop.buyer(), shop.product_id());
    let place = || buyer.place(&shop.orders, id, "k", r#"{"numbers":[9]}"#);
    assert_eq!(place().await.refusal(), is(409, "not-open"));
    assert_eq!(place().await.refusal(), is(409, "not-open"));
    change(&shop.database, "update products set opens_at = now() - interval '1 minute'", 1).await;
    let accepted = place().await;
    assert!(!accepted.is_replay());
    assert_eq!(place().await.accepted(), accepted.accepted());
    shop.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_wins_over_whatever_happened_since() {
    let shop = Shop::with(|tenant| product(tenant, 2)).await;
    let (buyer, id) = (shop.buyer(), shop.product_id());
    let place = |key: &'static str| buyer.place(&shop.orders, id, key, r#"{"numbers":[1,2]}"#);
    let order = place("k").await.accepted();
    shop.chain.run().await;
    shop.pay(order).await;
    assert_eq!(place("new").await.refusal().1, "sold-out");
    assert_eq!(place("k").await.accepted(), order);
    for (sql, code) in [
        ("update products set intake = 'paused'", "sales-paused"),
        ("update products set numbers_per_order_max = 1", "limit-exceeded"),
        ("update products set closes_at = now() - interval '1 minute'", "sale-closed"),
    ] {
        change(&shop.database, sql, 1).await;
        assert_eq!(place("new").await.refusal().1, code);
        let replay = place("k").await;
        assert_eq!((replay.accepted(), replay.is_replay()), (order, true), "{code}");
    }
    shop.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_twin_that_has_not_committed_is_in_flight() {
    let shop = Shop::open().await;
    let (buyer, id) = (shop.buyer(), shop.product_id());
    let twin = shop.database.app_client().await;
    for commits in [false, true] {
        twin.batch_execute("begin").await.unwrap();
        let request = exact(&[5]);
        let order = store::orders::NewOrder {
            id: Uuid::now_v7(),
            product_id: id,
            tenant_id: shop.tenant,
            buyer_id: buyer.id,
            request: &request,
            key: "k",
        };
        store::orders::place(&twin, &order, &[]).await.unwrap();
        let answer = buyer.place(&shop.orders, id, "k", r#"{"numbers":[5]}"#).await;
        assert_eq!(answer.refusal(), is(409, "key-in-flight"));
        assert!(answer.retry_after().is_some());
        twin.batch_execute(if commits { "commit" } else { "rollback" }).await.unwrap();
        let answer = buyer.place(&shop.orders, id, "k", r#"{"numbers":[5]}"#).await;
        if commits {
            assert_eq!((answer.accepted(), answer.is_replay()), (order.id, true));
        } else {
            answer.accepted();
            // Makes room for the second round.
            change(&shop.database, "update orders set idempotency_key = 'other'", 1).await;
        }
    }
    shop.finish().await;
}
