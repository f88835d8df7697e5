//! What the store's functions are told of another tenant's things: that there are none.

use domain::catalog::{Intake, Reserving};
use domain::messages::{ExportMessage, NoticeMessage};
use domain::notices::Kind;
use domain::payments::{Gateway, Method};
use domain::{Error, Reason, Result};
use store::numbers::{self, Served};
use store::payments::{self, Answer, NewAttempt, RefundAnswer, RefundRequest};
use store::staff::Prover;
use store::switches::{Switch, set_intake, set_reserving};
use store::{exports, notices, orders, products, staff, uploads};
use tests::{TestDatabase, operator, randomness, seed};
use uuid::Uuid;

use super::furnished::{Furnished, digest};

async fn furnish(database: &TestDatabase) -> (Furnished, Furnished) {
    let owner = database.owner();
    let (here, there) = (seed::store(owner).await, seed::store(owner).await);
    let ours = Furnished::new(database, here, "+34600000001").await;
    (ours, Furnished::new(database, there, "+34600000002").await)
}

#[track_caller]
fn assert_not_found<T>(result: Result<T>) {
    let is_not_found = matches!(&result, Err(Error::Rejected(Reason::NotFound)));
    assert!(is_not_found, "{:?}", result.map(drop));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_another_tenant_is_read() {
    let database = TestDatabase::new().await;
    let (ours, theirs) = furnish(&database).await;
    let client = database.app_client().await;
    let (us, order, attempt, product_id) = (ours.tenant_id, theirs.order, theirs.attempt, theirs.product.described.id);
    assert_not_found(products::find(&client, us, product_id).await);
    assert_not_found(orders::history_of(&client, us, order).await);
    assert_eq!(orders::find(&client, us, theirs.buyer.id, order).await.unwrap(), None);
    let page = orders::Page { after: None, limit: 10 };
    assert_eq!(orders::list(&client, us, theirs.buyer.id, page).await.unwrap(), []);
    assert_eq!(payments::find_attempt(&client, us, attempt).await.unwrap(), None);
    let known_as = format!("manual-{attempt}");
    let found = async |tenant_id: Uuid| {
        payments::find_attempt_of_payment(&client, tenant_id, Gateway::Manual, &known_as).await.unwrap().is_some()
    };
    assert!(found(theirs.tenant_id).await && !found(us).await);
    assert!(payments::find_payable(&client, us, order).await.unwrap().is_none());
    assert_not_found(payments::find_overview(&client, us, order).await);
    assert_eq!(payments::list_payments(&client, us, order).await.unwrap(), (None, vec![]));
    assert_eq!(payments::find_policy(&client, us, product_id).await.unwrap(), None);
    assert_eq!(payments::list_refundable(&client, us, product_id, None).await.unwrap(), Vec::<Uuid>::new());
    assert_eq!(payments::list_failed(&client, us, product_id, None).await.unwrap(), []);
    assert_not_found(exports::find(&client, us, theirs.export).await);
    assert_eq!(uploads::find(&client, us, theirs.upload).await.unwrap(), None);
    let (member, session) = (theirs.member.id, theirs.member.session_id);
    assert!(staff::look(&client, us, member, session).await.unwrap().is_none());
    assert_eq!(staff::list_sessions(&client, us, member).await.unwrap(), []);
    database.finish_under_way().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_another_tenant_is_changed() {
    let database = TestDatabase::new().await;
    let (ours, theirs) = furnish(&database).await;
    let before = digest(database.owner(), theirs.tenant_id).await;
    let mut client = database.app_client().await;
    let mut rng = randomness::stream(randomness::seed(), 0);
    let (us, order, product_id) = (ours.tenant_id, theirs.order, theirs.product.described.id);
    let unknown = [(order, Served::Unknown)];
    // Of a product that is not ours, and of one that is, but not the order's.
    let our_product = ours.product.described.id;
    for product_id in [product_id, our_product] {
        let group = numbers::reserve(&mut client, us, product_id, &[order], &mut rng).await.unwrap();
        assert_eq!(group.served, unknown);
        assert_eq!(numbers::release(&mut client, us, product_id, &[order]).await.unwrap(), unknown);
    }
    assert_not_found(numbers::release_due(&mut client, us, product_id, &[order]).await);
    let swept = numbers::release_due(&mut client, us, our_product, &[order]).await.unwrap();
    assert_eq!((swept.orders, swept.failed), (0, 0));
    assert_not_found(payments::record(&mut client, us, theirs.attempt, Answer::Declined("no")).await);
    let refused = RefundAnswer::Refused("no");
    assert_not_found(payments::record_refund(&mut client, us, order, theirs.refund, refused).await);
    let other = payments::record_refund(&mut client, us, ours.order, theirs.refund, refused).await;
    assert!(matches!(other, Err(Error::Fault(_))), "our order with their refund is a bug of ours");
    assert_not_found(payments::retry_refund(&mut client, us, order, theirs.refund).await);
    assert_not_found(payments::retry_refund(&mut client, us, ours.order, theirs.refund).await);
    let request =
        RefundRequest { tenant_id: us, order_id: order, numbers: None, note: "no", refund_id: Uuid::now_v7() };
    assert_not_found(operator::refund(&mut client, &request).await);
    assert_not_found(operator::withdraw(&mut client, us, order).await);
    let new = NewAttempt {
        id: Uuid::now_v7(),
        tenant_id: us,
        buyer_id: None,
        order_id: order,
        method: Method::Manual,
        return_url: None,
        key: "no",
    };
    assert_not_found(payments::start(&mut client, &new).await);
    assert_not_found(seed::cancel(&mut client, us, theirs.buyer.id, order).await);
    let policy = payments::find_policy(&client, theirs.tenant_id, product_id).await.unwrap().unwrap();
    assert_not_found(payments::save_policy(&client, us, product_id, &policy).await);
    assert_not_found(set_intake(&client, Switch::Product(us, product_id), Intake::Paused, None).await);
    assert_not_found(set_reserving(&client, us, product_id, Reserving::Halted, None).await);
    let message = ExportMessage::new(us, theirs.export);
    assert_eq!(exports::claim(&client, &message, Uuid::now_v7()).await.unwrap(), exports::Claim::Nothing);
    let message = NoticeMessage::new(us, order, Kind::Paid);
    assert_eq!(notices::claim(&client, &message).await.unwrap(), notices::Claim::Nothing);
    let who = Prover { tenant_id: us, staff_id: theirs.member.id, session_id: theirs.member.session_id };
    for who in [who, Prover { staff_id: ours.member.id, ..who }] {
        let proved = staff::prove(&mut client, who, |_| Ok(None)).await;
        assert!(matches!(proved, Err(Error::Rejected(Reason::TooManyAttempts))));
    }
    assert_eq!(digest(database.owner(), theirs.tenant_id).await, before);
    database.finish_under_way().await;
}
