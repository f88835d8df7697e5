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
    // Somebody else has its number, and no repair can know who is right.
    let stolen = format!("update taken_numbers set order_id = gen_random_uuid() where number = {number}");
    change(&database, &stolen, 1).await;
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
    const OPEN: &str = "select count(*) from audit_findings where resolved_at is null";
    change(&database, &format!("update orders set sweep_at = now() where id = '{poisoned}'"), 1).await;
    assert_eq!(chain.expire().await.failed, 1);
    assert_eq!(count(&database, OPEN).await, 1, "one finding, however often it fails");
    // Somebody has found the reason and put the row right; the order's next try succeeds and closes the finding.
    let mended = format!("update taken_numbers set order_id = '{poisoned}' where number = {number}");
    change(&database, &mended, 1).await;
    change(&database, &format!("update orders set sweep_at = now() where id = '{poisoned}'"), 1).await;
    assert_eq!(chain.expire().await.orders, 1);
    assert_eq!(count(&database, OPEN).await, 0);
    database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_product_keeps_no_other_waiting() {
    let database = TestDatabase::new().await;
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let chain = Chain::new(&database, 2, 10, randomness::seed());
    let mut products = Vec::new();
    for buyer in buyers(3) {
        let product = product(tenant, 100).insert(&mut client).await;
        chain.put(&product, seed::order(&client, &product, buyer, &exact(&[7])).await);
        products.push(product);
    }
    chain.run().await;
    change(&database, RUN_OUT, 3).await;
    for locked in &products {
        let mut other = database.another_owner().await;
        let tx = other.transaction().await.unwrap();
        let sql = "select from number_chunks where product_key = $1 for no key update";
        tx.execute(sql, &[&locked.key]).await.unwrap();
        let report = chain.expire().await;
        assert_eq!(report.products_failed, u64::from(taken(&database, locked).await > 0), "{report:?}");
        tx.rollback().await.unwrap();
    }
    chain.expire().await;
    assert_eq!(count(&database, "select count(*) from orders where state = 'expired'").await, 3);
    database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_row_is_restored_before_its_order_is_released() {
    let database = TestDatabase::new().await;
    let (chain, product, ids) = held(&database, 10, 1_000).await;
    let number = look::order(&database, ids[3]).await.numbers[0];
    change(&database, &format!("delete from taken_numbers where number = {number}"), 1).await;
    // A rival does not get it: freeing it would sell it twice.
    let rival = seed::order(&database.app_client().await, &product, buyers(1)[0], &exact(&[number])).await;
    chain.put(&product, rival);
    chain.run().await;
    assert_eq!(look::order(&database, rival).await.reason, Some(domain::Reason::NumbersTaken));
    change(&database, &format!("delete from taken_numbers where number = {number}"), 1).await;
    change(&database, RUN_OUT, 10).await;
    let report = chain.expire().await;
    assert_eq!((report.orders, report.failed), (10, 0));
    assert_eq!(taken(&database, &product).await, 0);
    database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_holdings_are_recounted_and_hold_nothing_back() {
    let database = TestDatabase::new().await;
    let (chain, product, ids) = held(&database, 10, 1_000).await;
    let buyer = look::order(&database, ids[3]).await.buyer_id;
    let lie = |held| format!("update buyer_holdings set held = {held} where buyer_id = '{buyer}'");
    let held_now = format!("select held::int8 from buyer_holdings where buyer_id = '{buyer}'");
    let right = count(&database, &held_now).await;
    // Found by the continuous audit, whichever way it lies, and by a rebuild.
    for wrong in [0, right + 5] {
        change(&database, &lie(wrong), 1).await;
        chain.reconcile().await;
        assert_eq!(count(&database, &held_now).await, right);
    }
    change(&database, &lie(0), 1).await;
    assert_eq!(store::numbers::rebuild(&mut database.app_client().await, &product).await.unwrap(), 1);
    // And by the release that it would have stopped.
    change(&database, &lie(0), 1).await;
    change(&database, RUN_OUT, 10).await;
    let report = chain.expire().await;
    assert_eq!((report.orders, report.failed), (10, 0));
    assert_eq!(count(&database, &held_now).await, 0);
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

/// The list of holds keeps orders that ended before; they are passed over, however many head the list.
#[tokio::test(flavor = "multi_thread")]
async fn ended_orders_in_the_list_do_not_end_the_sweep() {
    let database = TestDatabase::new().await;
    let (chain, product, ids) = held(&database, 2, 100).await;
    change(&database, RUN_OUT, 2).await;
    assert_eq!(chain.expire().await.orders, 2);
    let late = seed::order(database.owner(), &product, buyers(1)[0], &exact(&[7])).await;
    chain.put(&product, late);
    chain.run().await;
    change(&database, RUN_OUT, 1).await;
    let ended = format!(
        "insert into holds (product_key, sweep_at, order_ids)
        select {}, now() - interval '1 h', array['{}'::uuid] from generate_series(1, 1200)",
        product.key, ids[0]
    );
    change(&database, &ended, 1_200).await;
    assert_eq!(chain.expire().await.orders, 1);
    assert_eq!(count(&database, "select count(*) from holds where sweep_at <= now()").await, 0);
    database.finish().await;
}
