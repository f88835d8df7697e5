//! A bitmap that lies: the unique index decides, the loser pays, the bit is mended, the next batch is clean.

use domain::Reason;
use domain::catalog::Reserving;
use domain::orders::{Fallback, Request, State};
use store::catalog::{Product, require_product};
use store::numbers::{Served, rebuild, reserve};
use store::switches::set_reserving;
use tests::chain::Chain;
use tests::look::{change, count};
use tests::seed::{buyers, exact, product, quick, store};
use tests::{TestDatabase, auditor, look, operator, randomness, seed};
use tokio_postgres::Client;
use uuid::Uuid;

/// What the counters say about the lie.
#[derive(Debug, Clone, Copy)]
enum Counters {
    /// They agree with the wrong bit.
    Agree,
    /// They agree with the rows.
    Right,
    /// They are wrong in another way: nothing is available.
    NothingLeft,
}

const COUNTERS: [Counters; 3] = [Counters::Agree, Counters::Right, Counters::NothingLeft];

async fn lie(database: &TestDatabase, number: i32, bit: i32, counters: Counters) {
    let moved = if bit == 0 { 1 } else { -1 };
    let set = match counters {
        Counters::Agree => format!("available = available + {moved}, reserved = reserved - {moved}"),
        Counters::Right => "available = available".to_owned(),
        Counters::NothingLeft => "paid = paid + available, available = 0".to_owned(),
    };
    let sql = format!("update number_chunks set bits = set_bit(bits, {}, {bit}), {set} where chunk = 0", number - 1);
    change(database, &sql, 1).await;
}

async fn fresh(database: &TestDatabase) -> (Client, Product) {
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let product = product(tenant, 100).insert(&mut client).await;
    let winner = seed::order(&client, &product, buyers(1)[0], &exact(&[5])).await;
    serve(&mut client, &product, &[winner]).await;
    (client, product)
}

/// One batch; every order of it must be decided.
async fn serve(client: &mut Client, product: &Product, ids: &[Uuid]) {
    let mut rng = randomness::stream(randomness::seed(), 0);
    let (tenant_id, product_id) = (product.described.tenant_id, product.described.id);
    let served = reserve(client, tenant_id, product_id, ids, &mut rng).await.unwrap().served;
    assert_eq!(served.len(), ids.len());
    assert!(served.iter().all(|(_, served)| *served == Served::Done), "{served:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bit_that_wrongly_says_free() {
    for counters in COUNTERS {
        let database = TestDatabase::new().await;
        let (mut client, product) = fresh(&database).await;
        lie(&database, 5, 0, counters).await;
        let wishes = [
            exact(&[1, 2]),
            exact(&[4, 5]),
            Request::new(vec![5, 7], 0, Fallback::Drop).unwrap(),
            exact(&[8]),
            Request::new(vec![5, 6], 0, Fallback::Replace).unwrap(),
        ];
        let wishes: Vec<_> = buyers(5).into_iter().zip(wishes).collect();
        let ids = seed::orders(&database.app(1), &product, &wishes, 1).await;
        serve(&mut client, &product, &ids).await;
        let orders = look::orders(&database, &ids).await;
        assert_eq!(orders[0].numbers, [1, 2], "{counters:?}");
        assert_eq!((orders[1].state, orders[1].reason), (State::Rejected, Some(Reason::NumbersTaken)), "{counters:?}");
        assert_eq!(orders[1].lost_numbers, [5], "the lost number is named");
        assert!(!orders[1].suggestions.is_empty() && !orders[1].suggestions.contains(&5));
        assert_eq!((&orders[2].lost_numbers[..], &orders[2].numbers[..]), (&[5][..], &[7][..]));
        assert_eq!(orders[3].numbers, [8]);
        assert_eq!((&orders[4].lost_numbers[..], orders[4].numbers.len()), (&[5][..], 2));
        after(&database, &mut client, &product).await;
        database.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bit_that_wrongly_says_taken() {
    for counters in COUNTERS {
        let database = TestDatabase::new().await;
        let (mut client, product) = fresh(&database).await;
        lie(&database, 9, 1, counters).await;
        let wishes: Vec<_> = buyers(3).into_iter().zip([exact(&[1]), exact(&[8, 9]), exact(&[5, 10])]).collect();
        let ids = seed::orders(&database.app(1), &product, &wishes, 1).await;
        serve(&mut client, &product, &ids).await;
        let orders = look::orders(&database, &ids).await;
        assert_eq!(orders[0].numbers, [1]);
        assert_eq!(orders[1].numbers, [8, 9], "{counters:?}: no row, so it was free");
        assert_eq!(orders[2].lost_numbers, [5], "{counters:?}: really taken");
        after(&database, &mut client, &product).await;
        database.finish().await;
    }
}

/// One finding, resolved; nothing wrong any more; and the next batch finds nothing.
async fn after(database: &TestDatabase, client: &mut Client, product: &Product) {
    assert_eq!(count(database, "select count(*) from audit_findings where resolved_at is not null").await, 1);
    auditor::assert_clean(database).await;
    let wishes: Vec<_> = buyers(2).into_iter().zip([exact(&[5]), quick(3)]).collect();
    let ids = seed::orders(&database.app(1), product, &wishes, 1).await;
    serve(client, product, &ids).await;
    let orders = look::orders(database, &ids).await;
    assert_eq!((orders[0].state, orders[1].state), (State::Rejected, State::Reserved));
    assert_eq!(count(database, "select count(*) from audit_findings").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quick_pick_of_a_wrongly_free_number_gets_another_one() {
    let database = TestDatabase::new().await;
    let (mut client, product) = all_but_six(&database).await;
    lie(&database, 5, 0, Counters::Agree).await;
    // Together they want all that seems to be free, so that one of them meets the lie.
    let wishes: Vec<_> = buyers(2).into_iter().map(|buyer| (buyer, quick(1))).collect();
    let ids = seed::orders(&database.app(1), &product, &wishes, 1).await;
    serve(&mut client, &product, &ids).await;
    let orders = look::orders(&database, &ids).await;
    assert_eq!(orders[0].numbers, [6], "picked again after the bit was mended");
    assert_eq!(orders[1].reason, Some(Reason::SoldOut));
    database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn quick_picks_are_not_refused_because_counters_and_bits_disagree() {
    for (bit, counters) in [(1, Counters::Right), (0, Counters::NothingLeft)] {
        let database = TestDatabase::new().await;
        let (mut client, product) = all_but_six(&database).await;
        lie(&database, 6, bit, counters).await;
        let ids = [seed::order(&client, &product, buyers(1)[0], &quick(1)).await];
        serve(&mut client, &product, &ids).await;
        let order = look::order(&database, ids[0]).await;
        assert_eq!(order.numbers, [6], "{counters:?}: {:?}", order.reason);
        database.finish().await;
    }
}

/// What no transaction can see cheaply: bit and counters agree on the lie, and nobody names the number.
#[tokio::test(flavor = "multi_thread")]
async fn the_continuous_audit_finds_what_a_quick_pick_cannot() {
    let database = TestDatabase::new().await;
    let (mut client, product) = all_but_six(&database).await;
    lie(&database, 6, 1, Counters::Agree).await;
    let chain = Chain::new(&database, 1, 10, 0);
    assert_eq!(chain.reconcile().await.findings, 1);
    let product = require_product(&client, product.described.id).await.unwrap();
    assert_eq!(product.reserving, Reserving::Halted, "until an operator has looked at it");
    assert_eq!(rebuild(&mut client, &product).await.unwrap(), 1);
    set_reserving(&client, product.described.tenant_id, product.described.id, Reserving::On, None).await.unwrap();
    let ids = [seed::order(&client, &product, buyers(1)[0], &quick(1)).await];
    serve(&mut client, &product, &ids).await;
    assert_eq!(look::order(&database, ids[0]).await.numbers, [6]);
    assert_eq!(chain.reconcile().await.findings, 0);
    database.finish().await;
}

/// 5 is reserved, 6 is free, all others are blocked.
async fn all_but_six(database: &TestDatabase) -> (Client, Product) {
    let (mut client, product) = fresh(database).await;
    let others = (1..=100).filter(|number| ![5, 6].contains(number)).collect();
    operator::block(&mut client, &product, &others).await.unwrap();
    (client, product)
}

#[tokio::test(flavor = "multi_thread")]
async fn releasing_over_a_wrong_bit_mends_it() {
    for counters in COUNTERS {
        let database = TestDatabase::new().await;
        let (mut client, product) = fresh(&database).await;
        lie(&database, 5, 0, counters).await;
        change(&database, "update orders set cancel_requested_at = now()", 1).await;
        let id: Uuid = client.query_one("select id from orders", &[]).await.unwrap().get(0);
        let (tenant_id, product_id) = (product.described.tenant_id, product.described.id);
        let served = store::numbers::release(&mut client, tenant_id, product_id, &[id]).await.unwrap();
        assert_eq!(served, [(id, Served::Done)], "{counters:?}");
        assert_eq!(look::order(&database, id).await.state, State::Cancelled);
        database.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_auditor_and_the_rebuild_see_every_lie() {
    for bit in [0, 1] {
        for counters in COUNTERS {
            let database = TestDatabase::new().await;
            let (mut client, product) = fresh(&database).await;
            lie(&database, if bit == 0 { 5 } else { 50 }, bit, counters).await;
            let found = auditor::findings(&database, auditor::Expect::Rest).await;
            assert!(found.iter().any(|finding| finding.starts_with("I2")), "{found:?}");
            assert_eq!(rebuild(&mut client, &product).await.unwrap(), 1);
            assert_eq!(rebuild(&mut client, &product).await.unwrap(), 0);
            database.finish().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_waiting_orders_are_found_wrong_and_written_anew() {
    let database = TestDatabase::new().await;
    let (mut client, product) = fresh(&database).await;
    let queued = seed::order(&client, &product, buyers(1)[0], &quick(1)).await;
    for damage in [
        "delete from order_queue",
        "update order_queue set created_at = created_at - interval '1 s'",
        "insert into order_queue (product_key, created_at, order_id)
            select product_key, created_at, id from orders where state = 'reserved'",
        "update holds set order_ids = '{}'",
        "delete from holds",
    ] {
        client.execute(damage, &[]).await.unwrap();
        let found = store::audit::product(&mut client, &product).await.unwrap().findings;
        assert!(found.iter().any(|finding| finding.invariant == "I9"), "{damage}: {found:?}");
        assert!(rebuild(&mut client, &product).await.unwrap() > 0, "{damage}");
        auditor::assert_consistent(&database).await;
    }
    assert_eq!(rebuild(&mut client, &product).await.unwrap(), 0);
    serve(&mut client, &product, &[queued]).await;
    database.finish().await;
}

/// What cannot be compared in time, of however many orders, keeps no other product from being audited.
#[tokio::test(flavor = "multi_thread")]
async fn an_audit_goes_on_past_holdings_that_it_cannot_read() {
    let database = TestDatabase::new().await;
    let (mut client, first) = fresh(&database).await;
    let second = product(first.described.tenant_id, 100).insert(&mut client).await;
    let lie = "update number_chunks set bits = set_bit(bits, 0, 1), available = available - 1, reserved = reserved + 1
        where product_key = ";
    change(&database, &format!("{lie} {}", second.key), 1).await;
    let reader = client.transaction().await.unwrap();
    reader.batch_execute("lock table buyer_holdings in access exclusive mode").await.unwrap();
    let report = Chain::new(&database, 1, 10, 0).reconcile().await;
    assert_eq!((report.failed_steps, report.findings), (vec!["audit"], 1));
    reader.rollback().await.unwrap();
    assert_eq!(require_product(&client, second.described.id).await.unwrap().reserving, Reserving::Halted);
    assert_eq!(rebuild(&mut client, &second).await.unwrap(), 1);
    database.finish().await;
}
