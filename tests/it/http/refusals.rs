//! Orders that are refused, each with its code, and nothing written.

use domain::catalog::Intake;
use store::switches::{Switch, set_intake};
use tests::http::{Answer, Buyer, is};
use tests::look::change;
use tests::operator;
use tests::seed::product;
use tests::writes::Writes;
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use super::Shop;

async fn place(shop: &Shop, body: &str) -> Answer {
    let key = Uuid::now_v7().to_string();
    shop.buyer().place(&shop.another(), shop.product_id(), &key, body.to_owned()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn before_the_opening_and_after_the_closing() {
    let now = OffsetDateTime::now_utc();
    let window = |from: i64, to: i64| (now + Duration::seconds(from), now + Duration::seconds(to));
    let early = Shop::with(|tenant| {
        let (opens_at, closes_at) = window(90, 900);
        product(tenant, 10).window(opens_at, closes_at)
    })
    .await;
    let answer = place(&early, r#"{"quantity":1}"#).await;
    assert_eq!(answer.refusal(), is(409, "not-open"));
    let wait = answer.retry_after().unwrap();
    assert!((85..=91).contains(&wait), "comes back just after the opening: {wait}");
    early.database.finish().await;

    let late = Shop::with(|tenant| {
        let (opens_at, closes_at) = window(-900, -1);
        product(tenant, 10).window(opens_at, closes_at)
    })
    .await;
    let answer = place(&late, r#"{"quantity":1}"#).await;
    assert_eq!((answer.refusal(), answer.retry_after()), (is(409, "sale-closed"), None));
    late.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_switch_pauses_sales() {
    let shop = Shop::open().await;
    let client = shop.database.app_client().await;
    for switch in [Switch::Product(shop.tenant, shop.product_id()), Switch::Tenant(shop.tenant), Switch::Platform] {
        set_intake(&client, switch, Intake::Paused, Some("test")).await.unwrap();
        let answer = place(&shop, r#"{"quantity":1}"#).await;
        assert_eq!(answer.refusal(), is(503, "sales-paused"), "{switch:?}");
        assert!(answer.retry_after().is_some());
        set_intake(&client, switch, Intake::Open, None).await.unwrap();
        place(&shop, r#"{"quantity":1}"#).await.accepted();
    }
    shop.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sold_out_only_when_nothing_can_come_back() {
    let shop = Shop::with(|tenant| product(tenant, 3)).await;
    let mut client = shop.database.another_owner().await;
    operator::block(&mut client, &shop.product, &[3].into()).await.unwrap();
    let paid = shop.order(&shop.buyer(), r#"{"numbers":[1]}"#).await;
    let held = shop.order(&shop.buyer(), r#"{"numbers":[2]}"#).await;
    shop.chain.run().await;
    shop.pay(paid).await;
    // Nothing is available, but a hold may expire.
    let hopeful = place(&shop, r#"{"quantity":1}"#).await.accepted();
    shop.chain.run().await;
    assert_eq!(tests::look::order(&shop.database, hopeful).await.reason, Some(domain::Reason::SoldOut));
    shop.pay(held).await;
    assert_eq!(place(&shop, r#"{"quantity":1}"#).await.refusal(), is(409, "sold-out"));
    assert_eq!(place(&shop, r#"{"numbers":[3]}"#).await.refusal(), is(409, "sold-out"));
    shop.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_and_limits() {
    let shop = Shop::with(|tenant| product(tenant, 100).first(1_000).per_order(5).per_buyer(8)).await;
    let writes = Writes::watch(&shop.database).await;
    for body in
        [r#"{"numbers":[999]}"#, r#"{"numbers":[1100]}"#, r#"{"numbers":[1000,999999999]}"#, r#"{"numbers":[0]}"#]
    {
        assert_eq!(place(&shop, body).await.refusal(), is(422, "out-of-range"), "{body}");
    }
    for body in [r#"{"quantity":6}"#, r#"{"numbers":[1000,1001,1002],"quantity":3}"#] {
        assert_eq!(place(&shop, body).await.refusal(), is(422, "limit-exceeded"), "{body}");
    }
    change(&shop.database, "update products set numbers_per_order_max = 100", 1).await;
    writes.take().await;
    assert_eq!(place(&shop, r#"{"quantity":9}"#).await.refusal(), is(422, "limit-exceeded"), "of a buyer");
    assert_eq!(writes.take().await, Vec::<Vec<String>>::new());
    shop.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_open_orders_until_one_ends() {
    let shop = Shop::open().await;
    let buyer = shop.buyer();
    let mut placed = Vec::new();
    for _ in 0..domain::limits::OPEN_ORDERS_MAX {
        placed.push(shop.order(&buyer, r#"{"quantity":1}"#).await);
    }
    let answer = buyer.place(&shop.orders, shop.product_id(), "eleventh", r#"{"quantity":1}"#).await;
    assert_eq!(answer.refusal(), is(409, "too-many-open-orders"));
    shop.order(&shop.buyer(), r#"{"quantity":1}"#).await;
    assert_eq!(buyer.cancel(&shop.orders, placed[0], "cancel").await.status, 202);
    buyer.place(&shop.orders, shop.product_id(), "eleventh", r#"{"quantity":1}"#).await.accepted();
    shop.chain.run().await;
    let answer = buyer.place(&shop.orders, shop.product_id(), "twelfth", r#"{"quantity":1}"#).await;
    assert_eq!(answer.refusal(), is(409, "too-many-open-orders"), "held orders are open too");
    shop.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_or_an_outbox_that_is_too_old_closes_intake_but_answers_replays() {
    let shop = Shop::open().await;
    let buyer = shop.buyer();
    let first = buyer.place(&shop.orders, shop.product_id(), "before", r#"{"quantity":1}"#).await;
    let key = shop.product.key;
    let old = "now() - interval '601 seconds'";
    let queue =
        format!("insert into queue_health (product_key, oldest_queued_at, measured_at) values ({key}, {old}, now())");
    let outbox = format!("update outbox_health set oldest_unpublished_at = {old}");
    for (close, open) in [
        (queue.as_str(), "delete from queue_health"),
        (outbox.as_str(), "update outbox_health set oldest_unpublished_at = null"),
    ] {
        change(&shop.database, close, 1).await;
        let writes = Writes::watch(&shop.database).await;
        let api = shop.another();
        let refused = buyer.place(&api, shop.product_id(), "after", r#"{"quantity":1}"#).await;
        assert_eq!(refused.refusal(), is(503, "queue-full"), "{close}");
        assert!(refused.retry_after().is_some());
        let replay = buyer.place(&api, shop.product_id(), "before", r#"{"quantity":1}"#).await;
        assert_eq!((replay.accepted(), replay.is_replay()), (first.accepted(), true));
        assert_eq!(buyer.place(&api, shop.product_id(), "before", r#"{"quantity":2}"#).await.refusal().1, "key-reused");
        assert_eq!(writes.take().await, Vec::<Vec<String>>::new());
        let unwatch = "drop function watch cascade; drop table watched";
        shop.database.owner().batch_execute(unwatch).await.unwrap();
        change(&shop.database, open, 1).await;
    }
    buyer.place(&shop.another(), shop.product_id(), "after", r#"{"quantity":1}"#).await.accepted();
    shop.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_stores_products_do_not_exist() {
    let shop = Shop::open().await;
    let mut client = shop.database.another_owner().await;
    let elsewhere = tests::seed::store(&client).await;
    let theirs = product(elsewhere, 10).insert(&mut client).await.described.id;
    let writes = Writes::watch(&shop.database).await;
    for id in [theirs, Uuid::nil(), Uuid::max(), Uuid::now_v7()] {
        let answer = shop.buyer().place(&shop.orders, id, "k", r#"{"quantity":1}"#).await;
        assert_eq!(answer.refusal(), is(404, "not-found"), "{id}");
    }
    let stranger = Buyer::new(elsewhere);
    let answer = stranger.place(&shop.orders, shop.product_id(), "k", r#"{"quantity":1}"#).await;
    assert_eq!(answer.refusal(), is(404, "not-found"));
    assert_eq!(writes.take().await, Vec::<Vec<String>>::new());
    shop.database.finish().await;
}
