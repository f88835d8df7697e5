//! Foreign keys name the tenant, so that no row can name another store's.

use std::collections::BTreeSet;

use store::constraint_of;
use tests::TestDatabase;
use tests::seed;
use tokio_postgres::error::SqlState;
use uuid::Uuid;

use super::furnished::{Furnished, digest};

/// Foreign keys between two tables with a tenant that do not name it, and what does their work.
const WITHOUT_TENANT: &[(&str, &str)] = &[
    ("payment_attempts_order_exists", "orders have no unique (tenant_id, id): payment_attempts_order_of_tenant looks"),
    ("refunds_order_exists", "refunds_attempt_of_order says more; to drop this one would lock orders"),
];

/// Ids of something else that no foreign key with the tenant keeps, and why.
const WITHOUT_KEY: &[(&str, &str)] = &[
    ("audit_log.subject_id", "of any table, and older than what is pruned there"),
    ("exports.claim", "a claim has no row"),
    ("idempotency_keys.subject_id", "a buyer or somebody of staff; forgotten after a day"),
    ("notices.order_id", "the trigger notices_of_order, once per statement"),
    ("orders.buyer_id", "a lock of the buyer's row per order; place_order looks, and there is no other way"),
    ("orders.product_id", "a lock of the product's row per order; as its buyer_id, and the auditor looks"),
    ("outbox.order_id", "the trigger outbox_of_order, and place_order for its own"),
    ("outbox.product_id", "as its order_id"),
    ("payment_attempts.order_id", "the trigger payment_attempts_order_of_tenant"),
    ("refunds.key_of", "a part of a gateway's key, which two refunds may have exchanged"),
    ("sessions.device_id", "a device has no row"),
    ("staff_sessions.device_id", "a device has no row"),
];

/// Which foreign keys there are between tables that have a tenant: name, table, the other table, and the last of the
/// columns on both sides, which is the one that names the row.
const KEYS: &str = "select c.conname::text, c.conrelid::regclass::text, c.confrelid::regclass::text, h.attname::text,
        f.attname::text, exists (select from unnest(c.conkey, c.confkey) as pair (here, there)
            where pair.here = a.attnum and pair.there = b.attnum) and c.convalidated
    from pg_constraint c
        join pg_attribute a on a.attrelid = c.conrelid and a.attname = 'tenant_id'
        join pg_attribute b on b.attrelid = c.confrelid and b.attname = 'tenant_id'
        join pg_attribute h on h.attrelid = c.conrelid and h.attnum = c.conkey[cardinality(c.conkey)]
        join pg_attribute f on f.attrelid = c.confrelid and f.attnum = c.confkey[cardinality(c.confkey)]
    where c.contype = 'f' order by 1";

fn names(list: &[(&str, &str)]) -> BTreeSet<String> {
    list.iter().map(|(name, _)| (*name).to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_keys_name_the_tenant() {
    let database = TestDatabase::new().await;
    let rows = database.owner().query(KEYS, &[]).await.unwrap();
    let without: BTreeSet<String> = rows.iter().filter(|row| !row.get::<_, bool>(5)).map(|row| row.get(0)).collect();
    assert_eq!(without, names(WITHOUT_TENANT));
    // What looks like an id of something else is one, and is kept.
    let sql = "select c.relname || '.' || a.attname
        from pg_class c
            join pg_attribute t on t.attrelid = c.oid and t.attname = 'tenant_id'
            join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace
            and a.atttypid = 'uuid'::regtype and a.attname not in ('id', 'tenant_id')
            and not exists (select from pg_constraint f where f.contype = 'f' and f.conrelid = c.oid
                and a.attnum = any(f.conkey) and t.attnum = any(f.conkey))";
    let without: BTreeSet<String> =
        database.owner().query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    assert_eq!(without, names(WITHOUT_KEY));
    database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_cannot_name_another_stores() {
    let database = TestDatabase::new().await;
    let owner = database.owner();
    let (here, there) = (seed::store(owner).await, seed::store(owner).await);
    let ours = Furnished::new(&database, here, "+34600000001").await;
    let theirs = Furnished::new(&database, there, "+34600000002").await;
    for store in [here, there] {
        for (table, (rows, _)) in digest(owner, store).await {
            assert!(rows > 0 || !table.ends_with(".tenant_id"), "there is nothing in {table} that could be wrong");
        }
    }
    let refused = async |sql: &str, constraint: &str| {
        let error = owner.execute(sql, &[]).await.unwrap_err();
        assert_eq!(error.code(), Some(&SqlState::FOREIGN_KEY_VIOLATION), "{sql}: {error}");
        assert_eq!(constraint_of(&error), Some(constraint), "{sql}");
    };
    let keys = owner.query(KEYS, &[]).await.unwrap();
    // What was done cannot be changed at all.
    for row in keys.iter().filter(|row| row.get::<_, bool>(5) && row.get::<_, &str>(1) != "audit_log") {
        let (name, table, other): (&str, &str, &str) = (row.get(0), row.get(1), row.get(2));
        let (column, id): (&str, &str) = (row.get(3), row.get(4));
        let sql = format!(
            "update {table} set {column} = (select {id} from {other} where tenant_id = '{here}' limit 1)
            where tenant_id = '{there}'"
        );
        refused(&sql, name).await;
    }
    let sql = format!(
        "insert into audit_log (id, tenant_id, staff_id, action, subject, subject_id)
        values (gen_random_uuid(), '{there}', '{}', 'list_staff', 'store', '{there}')",
        ours.member.id
    );
    refused(&sql, "audit_log_staff_exists").await;
    let attempt = |order: Uuid| {
        format!(
            "insert into payment_attempts (id, tenant_id, order_id, expires_at, amount_minor, number, gateway, method,
                capture, currency, requested_under, fingerprint, state)
            values (gen_random_uuid(), '{there}', '{order}', now(), 1, 9, 'manual', 'manual', 'automatic', 'EUR', 'key',
                '', 'declined')"
        )
    };
    refused(&attempt(ours.order), "payment_attempts_order_of_tenant").await;
    assert_eq!(owner.execute(&attempt(theirs.order), &[]).await.unwrap(), 1, "the same of one's own");
    database.finish_under_way().await;
}

/// Where no key keeps them together, the operators' audit looks.
#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_names_another_store_is_found() {
    let database = TestDatabase::new().await;
    let mut client = database.another_owner().await;
    let (here, there) = (seed::store(&client).await, seed::store(&client).await);
    let sold = seed::product(here, 10).insert(&mut client).await;
    seed::order(&client, &sold, Uuid::now_v7(), &seed::quick(1)).await;
    for (store, found) in [(there, vec!["I10"]), (here, vec![])] {
        let moved = format!("update orders set tenant_id = '{store}'");
        assert_eq!(client.execute(&moved, &[]).await.unwrap(), 1);
        let audit = store::audit::product(&mut client, &sold).await.unwrap();
        let invariants: Vec<&str> = audit.findings.iter().map(|finding| finding.invariant).collect();
        assert_eq!(invariants, found, "{:?}", audit.findings);
    }
    database.finish_under_way().await;
}

/// What names an order, a product or a buyer without a foreign key, from the functions' role.
#[tokio::test(flavor = "multi_thread")]
async fn functions_name_no_other_stores_order() {
    let database = TestDatabase::new().await;
    let mut owner = database.another_owner().await;
    let (here, there) = (seed::store(&owner).await, seed::store(&owner).await);
    let (ours, theirs) = (sold(&mut owner, here).await, sold(&mut owner, there).await);
    let app = database.app_client().await;
    let refused = async |sql: &str, constraint: &str| {
        let error = app.execute(sql, &[]).await.unwrap_err();
        assert_eq!(error.code(), Some(&SqlState::FOREIGN_KEY_VIOLATION), "{sql}: {error}");
        assert_eq!(constraint_of(&error), Some(constraint), "{sql}");
    };
    let owed = |(tenant, product, order): (Uuid, Uuid, Uuid)| {
        format!(
            "insert into outbox (id, queue, tenant_id, product_id, order_id, next_attempt_at)
            values (gen_random_uuid(), 'reserve-numbers', '{tenant}', '{product}', '{order}', now())"
        )
    };
    let notice = |tenant: Uuid, order: Uuid| {
        format!("insert into notices (tenant_id, order_id, kind) values ('{tenant}', '{order}', 'reserved')")
    };
    let placed = |(tenant, product): (Uuid, Uuid), buyer: Uuid| {
        format!(
            "select place_order('{{}}', gen_random_uuid(), '{product}', '{tenant}', '{buyer}', '{{}}', 1, 'reject',
                gen_random_uuid()::text, sha256('x'), 60, 2147483647, -2147483648, 1, 10, 10, 'reserve-numbers', 60)"
        )
    };
    refused(&owed((there, ours.product, ours.order)), "outbox_of_order").await;
    refused(&owed((there, theirs.product, ours.order)), "outbox_of_order").await;
    refused(&owed((here, theirs.product, ours.order)), "outbox_of_order").await;
    refused(&owed((here, ours.product, Uuid::now_v7())), "outbox_of_order").await;
    refused(&notice(there, ours.order), "notices_of_order").await;
    refused(&notice(here, Uuid::now_v7()), "notices_of_order").await;
    refused(&placed((here, ours.product), theirs.buyer), "orders_buyer_of_tenant").await;
    let orders = "select count(*) from orders";
    let before: i64 = owner.query_one(orders, &[]).await.unwrap().get(0);
    // A product of another store is one of none.
    app.execute(&placed((there, ours.product), theirs.buyer), &[]).await.unwrap();
    assert_eq!(owner.query_one(orders, &[]).await.unwrap().get::<_, i64>(0), before);
    for own in
        [owed((here, ours.product, ours.order)), notice(here, ours.order), placed((here, ours.product), ours.buyer)]
    {
        assert_eq!(app.execute(&own, &[]).await.unwrap(), 1, "the same of one's own: {own}");
    }
    assert_eq!(owner.query_one(orders, &[]).await.unwrap().get::<_, i64>(0), before + 1);
    let error = app.batch_execute("insert into orders select * from orders").await.unwrap_err();
    assert_eq!(error.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "an order past place_order: {error}");
    database.finish_under_way().await;
}

/// What a store has sold to whom.
struct Sold {
    product: Uuid,
    buyer: Uuid,
    order: Uuid,
}

async fn sold(owner: &mut tokio_postgres::Client, store: Uuid) -> Sold {
    let product = seed::product(store, 10).insert(owner).await;
    let buyer = Uuid::now_v7();
    let sql = "insert into buyers (id, tenant_id, phone) values ($1, $2, '+34600000001')";
    owner.execute(sql, &[&buyer, &store]).await.unwrap();
    let order = seed::order(owner, &product, buyer, &seed::quick(1)).await;
    Sold { product: product.described.id, buyer, order }
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_move_no_row_to_another_store() {
    let database = TestDatabase::new().await;
    let app = database.app_client().await;
    let sql = "select c.relname::text, a.attname::text
        from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
        where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace and c.relname <> 'audit_cursor'
            and a.attname in ('tenant_id', 'product_id', 'product_key', 'buyer_id', 'order_id')";
    let columns = database.owner().query(sql, &[]).await.unwrap();
    assert!(columns.len() > 30, "{} columns", columns.len());
    for row in &columns {
        let (table, column): (&str, &str) = (row.get(0), row.get(1));
        let error = app.batch_execute(&format!("update {table} set {column} = {column}")).await.unwrap_err();
        assert_eq!(error.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{table}.{column}: {error}");
    }
    app.batch_execute("update orders set version = version; select id from orders for no key update").await.unwrap();
    database.finish().await;
}

/// What runs as the owner finds its tables wherever the caller looks for them, and nobody else may call it.
#[tokio::test(flavor = "multi_thread")]
async fn what_runs_as_the_owner_is_not_led_astray() {
    let database = TestDatabase::new().await;
    let sql = "select p.proname::text, coalesce(p.proconfig::text, ''),
            exists (select from aclexplode(p.proacl) as granted where granted.grantee = 0) or p.proacl is null
        from pg_proc p where p.prosecdef and p.pronamespace = 'public'::regnamespace";
    let found: Vec<(String, String, bool)> = database
        .owner()
        .query(sql, &[])
        .await
        .unwrap()
        .iter()
        .map(|row| (row.get(0), row.get(1), row.get(2)))
        .collect();
    let expected = ("place_order".to_owned(), "{\"search_path=public, pg_temp\"}".to_owned(), false);
    assert_eq!(found, [expected]);
    let app = database.app_client().await;
    let error = app.batch_execute("create function public.now() returns int return 1").await.unwrap_err();
    assert_eq!(error.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{error}");
    database.finish().await;
}
