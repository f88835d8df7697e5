//! The place in the queue that buyers see: never below the true rank, never rising, whatever order messages come in.

use std::collections::HashMap;

use domain::limits::PLACE_COUNT_MAX;
use domain::orders::State;
use rand::RngExt;
use rand::seq::SliceRandom;
use serde_json::Value;
use tests::http::{self, Buyer};
use tests::look::{change, count};
use tests::seed::{self, buyers, quick};
use tests::{TestDatabase, look, randomness};
use uuid::Uuid;

use super::Shop;

/// Lets every queued order be older, so that nobody waits for seconds.
async fn age(database: &TestDatabase, seconds: i32) {
    let queued = "select count(*) from orders where state = 'queued'";
    let queued = u64::try_from(count(database, queued).await).unwrap();
    let older = format!("update orders set created_at = created_at - interval '{seconds} s' where state = 'queued'");
    change(database, &older, queued).await;
}

/// The position shown to a buyer by an environment that has not seen them before.
async fn position(database: &TestDatabase, buyer: &Buyer, id: Uuid) -> Option<i64> {
    let answer = buyer.read(&http::order_status(database.app(1)), id).await.json();
    assert!(answer["place"].is_null() || answer["state"] == "queued", "{answer}");
    answer["place"]["position"].as_i64()
}

async fn rank(database: &TestDatabase, id: Uuid) -> i64 {
    let sql = format!(
        "select count(*) from orders o join orders mine on mine.id = '{id}'
        where o.product_key = mine.product_key and o.state = 'queued' and (o.created_at, o.id) <= (mine.created_at, mine.id)"
    );
    count(database, &sql).await
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_never_below_the_rank_and_never_rises() {
    let shop = Shop::open().await;
    let mut rng = randomness::stream(randomness::seed(), 1);
    let mut waiting: Vec<(Buyer, Uuid)> = Vec::new();
    let mut shown: HashMap<Uuid, i64> = HashMap::new();
    let mut looks = 0;
    for round in 0..14 {
        if round < 8 {
            for _ in 0..rng.random_range(5..9) {
                let buyer = shop.buyer();
                let id = shop.order(&buyer, r#"{"quantity":1}"#).await;
                waiting.push((buyer, id));
            }
        }
        age(&shop.database, 4).await;
        // Standard queues deliver out of order; some buyers cancel; workers work while buyers look.
        let mut served: Vec<Uuid> = waiting.iter().map(|(_, id)| *id).collect();
        served.shuffle(&mut rng);
        served.truncate(rng.random_range(0..6));
        let (database, seed) = (shop.database.app(1), rng.random());
        let (tenant_id, product_id) = (shop.tenant, shop.product_id());
        let worker = tokio::spawn(async move {
            let mut rng = randomness::stream(seed, 2);
            let mut client = database.client().await.unwrap();
            store::numbers::reserve(&mut client, tenant_id, product_id, &served, &mut rng).await.unwrap()
        });
        for (buyer, id) in &waiting {
            let before = rank(&shop.database, *id).await;
            let Some(position) = position(&shop.database, buyer, *id).await else { continue };
            let after = rank(&shop.database, *id).await;
            assert!(position >= after && position <= before, "{position} for a rank of {before}, then {after}");
            let last = shown.insert(*id, position).unwrap_or(i64::MAX);
            assert!(position <= last, "rose from {last} to {position}");
            looks += 1;
        }
        worker.await.unwrap();
        if let Some((buyer, id)) = waiting.first().filter(|_| round % 4 == 3) {
            let _ = buyer.cancel(&shop.orders, *id, "c").await;
        }
        let states = look::orders(&shop.database, &waiting.iter().map(|(_, id)| *id).collect::<Vec<_>>()).await;
        let mut states = states.iter().map(|order| order.state);
        waiting.retain(|_| states.next() == Some(State::Queued));
    }
    assert!(looks >= 10, "{looks} looks");
    shop.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_unknown_at_first_and_counts_no_further_than_it_must() {
    let shop = Shop::with(|tenant| seed::product(tenant, 5_000)).await;
    let crowd: Vec<_> = buyers(1_000).into_iter().map(|buyer| (buyer, quick(1))).collect();
    let ids = seed::orders(&shop.database.app(4), &shop.product, &crowd, 4).await;
    age(&shop.database, 60).await;
    let buyer = shop.buyer();
    let last = shop.order(&buyer, r#"{"quantity":1}"#).await;
    let read = async || buyer.read(&http::order_status(shop.database.app(1)), last).await.json();
    let young = read().await;
    assert_eq!((&young["place"], &young["poll_after"]), (&Value::Null, &2.into()), "older inserts may be under way");
    age(&shop.database, 4).await;
    let place = read().await["place"].clone();
    assert_eq!((&place["position"], &place["or_more"]), (&(PLACE_COUNT_MAX + 1).into(), &true.into()));
    assert_eq!(place["estimate_seconds"], Value::Null, "nothing moves");
    assert_eq!(read().await["poll_after"], 30);

    // The queue moves: twice as fast as time.
    let health = format!(
        "insert into queue_health (product_key, oldest_queued_at, advance_per_second, measured_at)
        select product_key, created_at - interval '100 seconds', 2, now() from orders where id = '{last}'"
    );
    change(&shop.database, &health, 1).await;
    assert_eq!(read().await["place"]["estimate_seconds"], 50);
    let mut rng = randomness::stream(randomness::seed(), 0);
    let mut client = shop.database.app_client().await;
    store::numbers::reserve(&mut client, shop.tenant, shop.product_id(), &ids[..400], &mut rng).await.unwrap();
    store::numbers::reserve(&mut client, shop.tenant, shop.product_id(), &ids[400..700], &mut rng).await.unwrap();
    let place = read().await["place"].clone();
    assert_eq!((&place["position"], &place["or_more"]), (&301.into(), &false.into()));
    for id in &ids[700..] {
        shop.chain.put(&shop.product, *id);
    }
    shop.finish().await;
}
