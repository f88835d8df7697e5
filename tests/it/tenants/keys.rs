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
    ("notices.order_id", "a trigger per order; both ids are copied from the order's row, and the auditor looks"),
    ("orders.buyer_id", "a lock of the buyer's row per order; the token says both"),
    ("orders.product_id", "a lock of the product's row per order; both ids are copied from it, and the auditor looks"),
    ("outbox.order_id", "a trigger per order; both ids are copied from the order's row"),
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

#[tokio::test(flavor = "multi_thread")]
async fn functions_move_no_row_to_another_store() {
    let database = TestDatabase::new().await;
    let app = database.app_client().await;
    let sql = "select c.relname::text from pg_class c join pg_attribute a on a.attrelid = c.oid
        where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace and a.attname = 'tenant_id'";
    let tables = database.owner().query(sql, &[]).await.unwrap();
    assert!(tables.len() > 15, "{} tables", tables.len());
    for row in &tables {
        let table: &str = row.get(0);
        let error = app.batch_execute(&format!("update {table} set tenant_id = tenant_id")).await.unwrap_err();
        assert_eq!(error.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{table}: {error}");
    }
    app.batch_execute("update orders set version = version; select id from orders for no key update").await.unwrap();
    database.finish().await;
}
