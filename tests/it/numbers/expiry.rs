//! Holds that run out.

use store::numbers::sweep;
use tests::chain::Chain;
use tests::look::{change, count, expected, outcomes, taken};
use tests::seed::{buyers, exact, product, quick, store};
use tests::{TestDatabase, look, randomness, seed};
use uuid::Uuid;

const RUN_OUT: &str =
    "update orders set expires_at = now() - interval '1 s', sweep_at = now() - interval '1 s' where state = 'reserved'";

#[tokio::test(flavor = "multi_thread")]
async fn two_sweepers_at_once_free_everything_once() {
    let database = TestDatabase::new().await;
    let (chain, product, _) = held(&database, 1_200, 20_000).await;
    let before = taken(&database, &product).await;
    change(&database, RUN_OUT, 1_200).await;
    let (one, other) = tokio::join!(chain.expire(), chain.expire());
    assert_eq!(one.orders + other.orders, 1_200, "{one:?} {other:?}");
    assert_eq!(one.numbers + other.numbers, u64::try_from(before).unwrap());
    assert_eq!(one.failed + other.failed, 0);
    assert_eq!(outcomes(&database, &product).await, expected([("expired", 1_200)]));
    assert_eq!(taken(&database, &product).await, 0);
    assert_eq!(count(&database, "select coalesce(sum(held), 0) from buyer_holdings").await, 0);
    database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_is_freed_when_it_has_run_out_and_not_before() {
    let database = TestDatabase::new().await;
    let (chain, product, ids) = held(&database, 3, 100).await;
    assert_eq!(chain.expire().await.orders, 0);
    change(&database, "update orders set sweep_at = now()", 3).await;
    assert_eq!(chain.expire().await.orders, 0, "the hold's end counts, not when the sweep looks at it");
    let one = format!("update orders set expires_at = now(), sweep_at = now() where id = '{}'", ids[1]);
    change(&database, &one, 1).await;
    assert_eq!(chain.expire().await.orders, 1);
    assert_eq!(outcomes(&database, &product).await, expected([("expired", 1), ("reserved", 2)]));
    // A cancellation whose message was lost is done by the sweep, as a cancellation.
    let cancelled = format!("update orders set cancel_requested_at = now(), sweep_at = now() where id = '{}'", ids[2]);
    change(&database, &cancelled, 1).await;
    assert_eq!(chain.expire().await.orders, 1);
    assert_eq!(outcomes(&database, &product).await, expected([("expired", 1), ("reserved", 1), ("cancelled", 1)]));
    database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poisoned_order_costs_only_itself() {
    let database = TestDatabase::new().await;
    let (chain, product, ids) = held(&database, 100, 1_000).await;
    let poisoned = ids[37];
    let number = look::order(&database, poisoned).await.numbers[0];
    change(&database, &format!("delete from taken_numbers where number = {number}"), 1).await;
    change(&database, RUN_OUT, 100).await;
    let mut client = database.app_client().await;
    let swept = sweep(&mut client, &product).await.unwrap();
    assert_eq!((swept.orders, swept.failed), (99, 1));
    assert_eq!(outcomes(&database, &product).await, expected([("expired", 99), ("reserved", 1)]));
    let later = format!(
        "select count(*) from orders where id = '{poisoned}' and sweep_attempts = 1 and sweep_at > now() + interval '10 s'"
    );
    assert_eq!(count(&database, &later).await, 1, "it does not head the next pass");
    assert_eq!(sweep(&mut client, &product).await.unwrap(), store::numbers::Sweep::default());
    assert_eq!(chain.expire().await.failed, 0);
    // Somebody has found the reason and put the row back; the order's next try succeeds.
    let mended = format!("insert into taken_numbers values ({}, {number}, '{poisoned}', 'reserved')", product.key);
    change(&database, &mended, 1).await;
    store::numbers::rebuild(&mut client, &product).await.unwrap();
    change(&database, &format!("update orders set sweep_at = now() where id = '{poisoned}'"), 1).await;
    assert_eq!(chain.expire().await.orders, 1);
    database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_that_meets_a_wrong_bit_mends_it() {
    let database = TestDatabase::new().await;
    let (chain, product, ids) = held(&database, 10, 1_000).await;
    let number = look::order(&database, ids[3]).await.numbers[0];
    change(&database, &format!("update number_chunks set bits = set_bit(bits, {}, 0)", number - 1), 1).await;
    change(&database, RUN_OUT, 10).await;
    let report = chain.expire().await;
    assert_eq!((report.orders, report.failed), (10, 0));
    assert_eq!(count(&database, "select count(*) from audit_findings").await, 1, "and says so");
    assert_eq!(taken(&database, &product).await, 0);
    database.finish().await;
}

/// A product with so many reserved orders.
async fn held(database: &TestDatabase, orders: usize, numbers: i32) -> (Chain, store::catalog::Product, Vec<Uuid>) {
    let seed = randomness::seed();
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let product = product(tenant, numbers).insert(&mut client).await;
    let wish = |(i, buyer)| (buyer, if i % 2 == 0 { quick(2) } else { exact(&[i32::try_from(i).unwrap()]) });
    let wishes: Vec<_> = buyers(orders).into_iter().enumerate().map(wish).collect();
    let chain = Chain::new(database, 2, 100, seed);
    // The exact ones first, so that no quick pick takes their numbers.
    let (exact, quick): (Vec<_>, Vec<_>) = wishes.into_iter().partition(|(_, request)| request.quantity() == 0);
    let mut ids = Vec::new();
    for wishes in [exact, quick] {
        let placed = seed::orders(&database.app(4), &product, &wishes, 4).await;
        for id in &placed {
            chain.put(&product, *id);
        }
        chain.run().await;
        ids.extend(placed);
    }
    let reserved = i64::try_from(orders).unwrap();
    assert_eq!(outcomes(database, &product).await, expected([("reserved", reserved)]));
    (chain, product, ids)
}
