//! Providers and queues that are away, and notices that come too late: orders go on, and nothing is lost unseen.

use domain::limits::{NOTICE_ATTEMPTS_MAX, NOTICE_LIVES};
use domain::messages::Queue;
use tests::look::{change, count};
use tests::notices::{Told, send_by};
use tests::seed::quick;
use tests::till::{Policy, Till};

use super::{PHONE, ended, ends, known, tell};

const DUE: &str = "update notices set look_at = now(), not_before = now()";

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_away_holds_nothing_up_and_loses_nothing() {
    let till = Till::open(Policy::default()).await;
    let (told, buyer) = (Told::default(), known(&till).await);
    change(&till.database, "update buyers set email = 'a@example.org'", 1).await;
    let order = till.reserve(&buyer, &quick(1)).await;
    assert_eq!(till.chain.reconcile().await.notices, 1);
    send_by(told.away(false), &till.database, &till.chain.queues).await;
    assert_eq!(told.mailbox.mails().len(), 1, "the other provider is not away");
    assert_eq!((till.chain.queues.len(Queue::SendNotice), till.chain.queues.dead(Queue::SendNotice).len()), (0, 0));
    let noted = "select count(*) from notices where outcome is null and attempts = 1 and claimed_until is null
        and failure like 'busy: %' and look_at = not_before and look_at > now() + interval '50 seconds'";
    assert_eq!(count(&till.database, noted).await, 1);
    let report = till.chain.reconcile().await;
    assert_eq!((report.notices, report.notices_failing), (0, 1), "its backoff is not over");
    change(&till.database, DUE, 1).await;
    tell(&till, &told).await;
    assert_eq!((told.texts(PHONE).len(), told.mailbox.mails().len()), (1, 1), "each channel once");
    assert_eq!(ends(&till).await, [ended("reserved", "sent")]);
    let attempt = till.open_payment(&buyer, order, "first", "card").await;
    till.gateway.pay(attempt).unwrap();
    till.settle().await;
    till.is(order, "paid").await;
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_too_often_is_given_up() {
    let till = Till::open(Policy::default()).await;
    let (told, buyer) = (Told::default(), known(&till).await);
    till.reserve(&buyer, &quick(1)).await;
    change(&till.database, &format!("update notices set attempts = {}", NOTICE_ATTEMPTS_MAX - 2), 1).await;
    for expected in [None, Some("failed".to_owned())] {
        change(&till.database, DUE, 1).await;
        till.chain.reconcile().await;
        send_by(told.away(true), &till.database, &till.chain.queues).await;
        assert_eq!(ends(&till).await, [("reserved".to_owned(), expected)]);
    }
    change(&till.database, DUE, 1).await;
    tell(&till, &told).await;
    assert_eq!(told.texts(PHONE), Vec::<String>::new(), "it has ended");
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_queue_took_is_owed_again() {
    let till = Till::open(Policy::default()).await;
    let (told, buyer) = (Told::default(), known(&till).await);
    till.reserve(&buyer, &quick(1)).await;
    till.chain.queues.refuse_every(1);
    assert_eq!(till.chain.reconcile().await.notices, 0);
    till.chain.queues.refuse_every(0);
    assert_eq!(till.chain.reconcile().await.notices, 0, "not at every run");
    change(&till.database, DUE, 1).await;
    tell(&till, &told).await;
    assert_eq!(told.texts(PHONE).len(), 1);
    change(&till.database, DUE, 1).await;
    assert_eq!(till.chain.reconcile().await.notices, 0, "it was sent");
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_longer_true_is_not_said() {
    let till = Till::open(Policy::default()).await;
    let (told, buyer) = (Told::default(), known(&till).await);
    let order = till.reserve(&buyer, &quick(1)).await;
    till.chain.reconcile().await;
    let attempt = till.open_payment(&buyer, order, "first", "card").await;
    till.gateway.pay(attempt).unwrap();
    till.settle().await;
    tell(&till, &told).await;
    let texts = told.texts(PHONE);
    assert!(texts.len() == 1 && texts[0].contains("pago recibido"), "{texts:?}");
    assert_eq!(ends(&till).await, [ended("reserved", "needless"), ended("paid", "sent")]);
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_old_is_dropped_and_counted() {
    let till = Till::open(Policy::default()).await;
    let (told, buyer) = (Told::default(), known(&till).await);
    till.reserve(&buyer, &quick(1)).await;
    till.chain.reconcile().await;
    let age = format!("update notices set created_at = now() - make_interval(secs => {})", NOTICE_LIVES.as_secs());
    change(&till.database, &age, 1).await;
    told.send(&till.database, &till.chain.queues).await;
    assert_eq!(ends(&till).await, [("reserved".to_owned(), None)], "the worker leaves it to the reconciler");
    change(&till.database, DUE, 1).await;
    let report = till.chain.reconcile().await;
    assert_eq!((report.notices_late, report.notices), (1, 0));
    assert_eq!(ends(&till).await, [ended("reserved", "late")]);
    assert_eq!(told.texts(PHONE), Vec::<String>::new());
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_buyer_who_is_gone_is_not_waited_for() {
    let till = Till::open(Policy::default()).await;
    let (told, buyer) = (Told::default(), known(&till).await);
    till.reserve(&buyer, &quick(1)).await;
    change(&till.database, "delete from buyers", 1).await;
    tell(&till, &told).await;
    assert_eq!(ends(&till).await, [ended("reserved", "needless")]);
    assert_eq!(till.chain.queues.dead(Queue::SendNotice), Vec::<String>::new());
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn old_ones_are_pruned() {
    let till = Till::open(Policy::default()).await;
    let (told, buyer) = (Told::default(), known(&till).await);
    till.reserve(&buyer, &quick(1)).await;
    tell(&till, &told).await;
    let client = till.database.app_client().await;
    store::prune::prune(&client).await.unwrap();
    assert_eq!(count(&till.database, "select count(*) from notices").await, 1);
    change(&till.database, "update notices set created_at = now() - interval '91 days'", 1).await;
    store::prune::prune(&client).await.unwrap();
    assert_eq!(count(&till.database, "select count(*) from notices").await, 0);
    till.finish().await;
}
