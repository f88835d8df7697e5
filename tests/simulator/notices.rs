//! Notices while the function that sends them is killed.

use std::time::Duration;

use domain::limits::NOTICE_CLAIM;
use tests::login::Phones;
use tests::look::count;
use tests::notices::log_in;
use tests::simulator::{Setup, World, wish};

const BOUND: Duration = Duration::from_secs(30);
const HASTE: f64 = 60.0;
const PHONE: &str = "+34600000001";

/// Fault 29: the sender is killed between its claim, the provider and its mark. The notice comes, at most once too
/// often, and its order has long been served.
#[tokio::test(flavor = "multi_thread")]
async fn the_sender_of_notices_is_killed() {
    for (failpoint, messages) in [("notice.before_send=kill", 1), ("notice.before_mark=kill", 2)] {
        let world = World::start(Setup { scale: HASTE, duplicates: 0.0, ..Setup::default() }).await;
        let product = world.product(100).await;
        let (shopper, phones) = (world.shopper(&product), Phones::of(&world.database));
        log_in(&world.database, product.described.tenant_id, shopper.buyer.id, PHONE).await;
        assert!(shopper.place(product.described.id, &wish(&[], 1, "reject")).await.is_some());
        world.mapping("reserve-numbers").start();
        let owed = async || count(&world.database, "select count(*) from notices").await == 1;
        world.until("the notice is owed", BOUND, owed).await;
        world.function("send-notice").arm(failpoint);
        world.schedule("reconcile-orders").run_once().await.answer();
        world.mapping("send-notice").start();
        let crashed = async || world.function("send-notice").counts().crashes == 1;
        world.until("the sender is dead", BOUND, crashed).await;
        world.pass(NOTICE_CLAIM).await;
        let ended = async || count(&world.database, "select count(*) from notices where outcome = 'sent'").await == 1;
        world.until("the notice has left", BOUND, ended).await;
        assert_eq!(phones.messages().len(), messages, "{failpoint}");
        world.finish(BOUND).await;
    }
}
