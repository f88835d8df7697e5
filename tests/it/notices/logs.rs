//! Nothing personal gets into a log, or into a row where it does not belong.

use tests::chain::Chain;
use tests::leaks::{self, Memory};
use tests::look::change;
use tests::notices::{Told, log_in, send_by};
use tests::seed::{self, exact};
use tests::{TestDatabase, randomness};
use uuid::Uuid;

const PHONE: &str = "+34600000001";
const EMAIL: &str = "a@example.org";

// One thread, so that everything logs where this test listens.
#[tokio::test(flavor = "current_thread")]
async fn neither_phones_nor_addresses_nor_texts_are_logged() {
    let memory = Memory::default();
    let guard = memory.listen();
    let database = TestDatabase::new().await;
    let (chain, told) = (Chain::new(&database, 1, 10, randomness::seed()), Told::default());
    let mut owner = database.another_owner().await;
    let product = seed::product(seed::store(&owner).await, 100).insert(&mut owner).await;
    let buyer_id = Uuid::now_v7();
    log_in(&database, product.described.tenant_id, buyer_id, PHONE).await;
    change(&database, &format!("update buyers set email = '{EMAIL}', language = 'en'"), 1).await;
    chain.put(&product, seed::order(&database.app_client().await, &product, buyer_id, &exact(&[7, 77])).await);
    chain.reserve().await;
    chain.queues.refuse_every(1);
    chain.reconcile().await;
    chain.queues.refuse_every(0);
    let due = "update notices set look_at = now(), not_before = now()";
    for senders in [told.away(true), told.senders()] {
        change(&database, due, 1).await;
        chain.reconcile().await;
        send_by(senders, &database, &chain.queues).await;
    }
    drop(guard);
    assert_eq!((told.texts(PHONE).len(), told.mailbox.mails().len()), (1, 1));
    let text = memory.text();
    for said in ["notices not published", "not told"] {
        assert!(text.contains(said), "the log was listened to: {said}");
    }
    for line in text.lines() {
        assert_eq!(leaks::find(line), None, "{line}");
        for hidden in [&PHONE[1..], EMAIL, "reserved until"] {
            assert!(!line.contains(hidden), "{line}");
        }
    }
    let leaking: Vec<String> = leaks::in_rows(database.owner()).await;
    assert!(leaking.iter().all(|found| found.starts_with("buyers.phone has")), "{leaking:?}");
    assert_eq!(leaking.len(), 1, "{leaking:?}");
    database.finish().await;
}
