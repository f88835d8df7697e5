//! Migrations beside traffic.

use std::time::{Duration, Instant};

use store::migrations;
use tests::TestDatabase;
use tests::look::count;

const WAITING: &str = "select count(*) from pg_locks
    where not granted and database = (select oid from pg_database where datname = current_database())";

/// What the last migration made that cannot be made twice.
const UNDO: &str = "drop table audit_suspects;
    drop function refuse_message_of_another_order, refuse_notices_of_another_order cascade;";

/// Somebody holds the table that a migration needs. It waits briefly, lets those behind it pass, and tries again.
#[tokio::test(flavor = "multi_thread")]
async fn a_migration_steps_back_from_a_lock() {
    let database = TestDatabase::new().await;
    let last = migrations::latest();
    let again = format!("{UNDO} delete from refinery_schema_history where version = {last}");
    database.owner().batch_execute(&again).await.unwrap();
    let reader = database.another_owner().await;
    reader.batch_execute("begin; lock table refinery_schema_history in share mode").await.unwrap();
    let mut client = database.another_owner().await;
    let migrating = tokio::spawn(async move { migrations::run(&mut client).await });
    until(&database, 1).await;
    until(&database, 0).await;
    assert!(!migrating.is_finished(), "it has stepped back, not given up");
    reader.batch_execute("commit").await.unwrap();
    let report = migrating.await.unwrap().unwrap();
    assert_eq!((report.applied, report.version), (vec![last], last));
    database.finish().await;
}

async fn until(database: &TestDatabase, waiting: i64) {
    let began = Instant::now();
    while count(database, WAITING).await != waiting {
        assert!(began.elapsed() < Duration::from_secs(10), "never were {waiting} waiting");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
