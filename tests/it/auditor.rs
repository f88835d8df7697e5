//! Who audits the auditor: each kind of damage must be found.

use domain::limits::WRONG_MONEY_SETTLES_IN;
use tests::auditor::{Expect, findings};
use tests::chain::Chain;
use tests::look::change;
use tests::seed::{self, buyers, exact, product, quick, store};
use tests::simulator::time::pass;
use tests::till::{Policy, Till};
use tests::{TestDatabase, randomness};

const TABLES: [&str; 9] = [
    "number_chunks",
    "taken_numbers",
    "orders",
    "order_events",
    "order_queue",
    "holds",
    "buyer_holdings",
    "outbox",
    "notices",
];

/// Damage, and how the finding about it begins. Order 1 holds 1 and 2, order 2 was rejected, order 3 is queued.
const DAMAGE: &[(&str, &str)] = &[
    ("update number_chunks set bits = set_bit(bits, 0, 0) where chunk = 0", "I2"),
    ("update number_chunks set bits = set_bit(bits, 77, 1) where chunk = 0", "I2"),
    ("update number_chunks set bits = set_bit(bits, 8191, 0) where chunk = 1", "I2"),
    ("update number_chunks set available = available - 1, paid = paid + 1 where chunk = 1", "I3"),
    ("delete from number_chunks where chunk = 1", "product"),
    ("delete from taken_numbers where number = 2", "I1"),
    ("update taken_numbers set order_id = null where number = 2", "I1"),
    ("update taken_numbers set order_id = (select id from orders where state = 'rejected') where number = 2", "I1"),
    ("update taken_numbers set order_id = gen_random_uuid() where number = 2", "I1"),
    ("insert into taken_numbers values (1, 10001, null)", "product"),
    ("insert into taken_numbers values (99, 1, null)", "number"),
    ("update orders set numbers = '{1}' where state = 'reserved'", "I1"),
    ("update orders set total_minor = total_minor + 1 where state = 'reserved'", "order"),
    ("update orders set numbers = '{3}' where state = 'queued'", "order"),
    ("update orders set substitutes = '{9}' where state = 'reserved'", "order"),
    ("update orders set product_key = 2 where state = 'queued'", "order"),
    (
        "update orders set tenant_id = (select id from tenants where slug = 'other'), product_id = (select id from products where key = 2) where state = 'queued'",
        "order",
    ),
    ("update buyer_holdings set held = held + 1 where held > 0", "holdings"),
    ("delete from buyer_holdings", "holdings"),
    ("update products set numbers_per_buyer_max = 1 where key = 1", "limit"),
    ("update orders set state = 'paying' where state = 'reserved'", "I12"),
    ("update orders set version = version + 1 where state = 'rejected'", "I12"),
    ("delete from order_events where to_state = 'reserved'", "I12"),
    ("update order_events set from_state = 'paid' where to_state = 'rejected'", "I12"),
    ("update order_events set version = 7 where to_state = 'rejected'", "I12"),
    (
        "insert into order_events (order_id, version, to_state, cause) values (gen_random_uuid(), 1, 'queued', 'x')",
        "I12",
    ),
    ("delete from order_queue", "I9: queued orders"),
    ("update order_queue set created_at = created_at - interval '1 s'", "I9: queued orders"),
    (
        "insert into order_queue select product_key, created_at, id from orders where state = 'rejected'",
        "I9: orders in",
    ),
    ("delete from holds", "I9: held orders"),
    ("update holds set sweep_at = sweep_at + interval '1 s'", "I9: held orders"),
    ("update holds set order_ids = order_ids || gen_random_uuid()", "I9: unknown orders"),
    ("update outbox set order_id = gen_random_uuid()", "I9"),
    ("update outbox set tenant_id = (select id from tenants where slug = 'other')", "I9: messages"),
    ("update notices set tenant_id = (select id from tenants where slug = 'other')", "I9: notices"),
    ("update orders set cancel_requested_at = now() where state = 'reserved'", "I9: cancellations"),
    ("update orders set expires_at = now() - interval '1 hour' where state = 'reserved'", "I5"),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_damage_is_found() {
    let database = TestDatabase::new().await;
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let sold = product(tenant, 10_000).per_buyer(5).insert(&mut client).await;
    let elsewhere = store(&client).await;
    product(elsewhere, 10).insert(&mut client).await;
    client.batch_execute(&format!("update tenants set slug = 'other' where id = '{elsewhere}'")).await.unwrap();
    let chain = Chain::new(&database, 1, 10, randomness::seed());
    for _ in 0..2 {
        chain.put(&sold, seed::order(&client, &sold, buyers(1)[0], &exact(&[1, 2])).await);
    }
    chain.run().await;
    let queued = seed::order(&client, &sold, buyers(1)[0], &quick(1)).await;
    let told = "insert into notices (order_id, kind, tenant_id)
        select id, state, tenant_id from orders where state = 'rejected'";
    assert_eq!(client.execute(told, &[]).await.unwrap(), 1);
    for table in TABLES {
        client.batch_execute(&format!("create table saved_{table} as table {table}")).await.unwrap();
    }
    assert_eq!(findings(&database, Expect::Rest).await, ["I9: orders are still queued: 1"]);
    assert!(findings(&database, Expect::UnderWay).await.is_empty());
    for (damage, beginning) in DAMAGE {
        assert!(client.execute(*damage, &[]).await.expect(damage) > 0, "{damage}");
        let found = findings(&database, Expect::Rest).await;
        assert!(found.iter().any(|finding| finding.starts_with(beginning)), "{damage}: {found:?}");
        for table in TABLES {
            let restore =
                format!("delete from {table}; insert into {table} overriding system value select * from saved_{table}");
            client.batch_execute(&restore).await.unwrap();
        }
        client.batch_execute("update products set numbers_per_buyer_max = 5 where key = 1").await.unwrap();
    }
    chain.put(&sold, queued);
    chain.run().await;
    database.finish().await;
}

/// The index keeps a number from being taken twice; the auditor does not rely on it.
#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_was_sold_twice_is_found() {
    let database = TestDatabase::new().await;
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let sold = product(tenant, 10).insert(&mut client).await;
    let chain = Chain::new(&database, 1, 10, randomness::seed());
    for number in [1, 2] {
        chain.put(&sold, seed::order(&client, &sold, buyers(1)[0], &exact(&[number])).await);
    }
    chain.run().await;
    client
        .batch_execute(
            "alter table taken_numbers drop constraint taken_numbers_pkey;
            update taken_numbers set number = 1;
            update orders set numbers = '{1}'",
        )
        .await
        .unwrap();
    let found = findings(&database, Expect::Rest).await;
    assert!(found.iter().any(|finding| finding == "I1: number 1 of product 1 is taken twice"), "{found:?}");
    assert!(found.iter().any(|finding| finding.starts_with("I1: 1 belongs to the orders")), "{found:?}");
    client
        .batch_execute(
            "update orders set numbers = requested_numbers;
            update taken_numbers t set number = o.numbers[1] from orders o where o.id = t.order_id",
        )
        .await
        .unwrap();
    database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_continuous_audit_goes_through_the_money_of_all_orders_and_tells_what_is_wrong_once() {
    let till = Till::open(Policy::default()).await;
    let buyer = till.buyer();
    let order = till.reserve(&buyer, &exact(&[1, 2])).await;
    let attempt = till.open_payment(&buyer, order, "first", "card").await;
    till.gateway.pay(attempt).unwrap();
    till.settle().await;
    let client = till.database.app_client().await;
    let audited = async || {
        let seen = store::audit::money_pass(&client).await.unwrap();
        (seen, store::findings::count_open(&client).await.unwrap())
    };
    assert_eq!(audited().await, (1, 0));
    let long = async || pass(&mut till.database.another_owner().await, WRONG_MONEY_SETTLES_IN).await;
    let less = "update payment_attempts set captured_minor = captured_minor - 250";
    let more = "update payment_attempts set captured_minor = captured_minor + 250";
    // A while is forgiven: it may be on its way.
    change(&till.database, less, 1).await;
    assert_eq!((audited().await, audited().await), ((1, 0), (1, 0)));
    change(&till.database, more, 1).await;
    long().await;
    assert_eq!(audited().await, (1, 0));
    change(&till.database, less, 1).await;
    assert_eq!(audited().await, (1, 0), "time has started over");
    long().await;
    assert_eq!((audited().await, audited().await), ((1, 1), (1, 1)));
    let open = store::findings::list_open(&client, None, 10).await.unwrap();
    assert!(open[0].invariant == "I4" && open[0].detail.contains(&order.to_string()), "{open:?}");
    // A halt excuses what is new, and closes nothing.
    change(&till.database, "update products set reserving = 'halted'", 1).await;
    assert_eq!(audited().await, (1, 1));
    change(&till.database, "update products set reserving = 'on'", 1).await;
    assert_eq!(audited().await, (1, 1));
    change(&till.database, more, 1).await;
    assert_eq!(audited().await, (1, 0), "what is right again is closed");
    // What was asked for and what waits through a halt is on its way, however long.
    let asked = "insert into refunds (id, tenant_id, order_id, attempt_id, amount_minor, numbers, cause, key_of)
        select gen_random_uuid(), tenant_id, order_id, id, 250, '{1}', 'staff', gen_random_uuid() from payment_attempts";
    change(&till.database, asked, 1).await;
    for _ in 0..2 {
        assert_eq!(audited().await, (1, 0));
        long().await;
    }
    change(&till.database, "delete from refunds", 1).await;
    change(&till.database, less, 1).await;
    change(&till.database, "update products set reserving = 'halted'", 1).await;
    for _ in 0..2 {
        assert_eq!(audited().await, (1, 0));
        long().await;
    }
    assert_eq!(audited().await, (1, 0));
    change(&till.database, "update products set reserving = 'on'", 1).await;
    assert_eq!(audited().await, (1, 0), "its message comes a little later");
    long().await;
    assert_eq!(audited().await, (1, 1));
    change(&till.database, more, 1).await;
    assert_eq!(audited().await, (1, 0));
    till.database.finish_under_way().await;
}
