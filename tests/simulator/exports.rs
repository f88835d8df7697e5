//! Exports while the function that writes them is killed.

use std::time::Duration;

use domain::limits::EXPORT_CLAIM;
use domain::roles::Role;
use tests::seed::{order, quick};
use tests::simulator::{Setup, World};
use tests::{look, staff};
use uuid::Uuid;

const BOUND: Duration = Duration::from_secs(30);
const HASTE: f64 = 60.0;

/// The writer is killed when a part is in the bucket and not in the row, or when the file is there and the row does not
/// say so. Whoever comes next ends with one file.
#[tokio::test(flavor = "multi_thread")]
async fn the_writer_is_killed() {
    for (failpoint, parts) in
        [("export.before_save=kill", [1, 1].as_slice()), ("export.before_finish=kill", [1].as_slice())]
    {
        let world = World::start(Setup { scale: HASTE, duplicates: 0.0, ..Setup::default() }).await;
        let product = world.product(100).await;
        let owner = world.database.another_owner().await;
        order(&owner, &product, Uuid::now_v7(), &quick(1)).await;
        let tenant_id = product.described.tenant_id;
        let member = staff::hire(&world.database, tenant_id, Role::Finance).await;
        let sql = "insert into exports (id, tenant_id, product_id, staff_id, kind, format, language)
            values ($1, $2, $3, $4, 'orders', 'csv', 'en')";
        owner.execute(sql, &[&Uuid::now_v7(), &tenant_id, &product.described.id, &member.id]).await.unwrap();
        world.function("write-exports").arm(failpoint);
        world.schedule("reconcile-orders").run_once().await.answer();
        world.mapping("write-exports").start();
        let crashed = async || world.function("write-exports").counts().crashes == 1;
        world.until("the writer is dead", BOUND, crashed).await;
        world.pass(EXPORT_CLAIM).await;
        world.schedule("reconcile-orders").run_once().await.answer();
        let ready = "select count(*) from exports where state = 'ready' and rows_done = 1";
        world.until("the file is there", BOUND, async || look::count(&world.database, ready).await == 1).await;
        assert_eq!(world.bucket.put(), parts, "{failpoint}");
        assert_eq!((world.bucket.files().len(), world.bucket.open_uploads()), (1, 0), "{failpoint}");
        world.finish(BOUND).await;
    }
}
