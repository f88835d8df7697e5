//! `sqs-*.json`: batches, good ones and poisoned ones.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use domain::messages::{
    CheckMessage, ExportMessage, LoginCodeMessage, Message, NoticeMessage, OrderMessage, Queue, SettleMessage,
};
use domain::orders::State;
use domain::payments::Gateway;
use domain::roles::Role;
use domain::uploads::{from_quarantine_key, quarantine_key};
use edge::Deadline;
use edge::queue::{Delay, MessageQueue, Outgoing};
use futures::future::BoxFuture;
use store::payments::{Event, Received, receive};
use tests::bucket::FakeBucket;
use tests::gateway::FakeGateway;
use tests::http::{self, Buyer};
use tests::login::{Phones, keys};
use tests::notices::{Told, log_in};
use tests::{TestDatabase, look, staff};
use uuid::{Uuid, uuid};

use super::{BUYER, ORDERS, TENANT, as_named, event, gateway, names};

/// Accepts everything and keeps nothing: these messages are in no queue.
struct Nowhere;

impl MessageQueue for Nowhere {
    fn send<'a>(&'a self, _: Queue, messages: &'a [Outgoing]) -> BoxFuture<'a, Vec<domain::Result<()>>> {
        Box::pin(async { messages.iter().map(|_| Ok(())).collect() })
    }

    fn delay<'a>(&'a self, _: Queue, delays: &'a [Delay]) -> BoxFuture<'a, Vec<domain::Result<()>>> {
        Box::pin(async { delays.iter().map(|_| Ok(())).collect() })
    }
}

fn failed(response: SqsBatchResponse) -> BTreeSet<String> {
    response.batch_item_failures.into_iter().map(|failure| failure.item_identifier).collect()
}

/// The order that a message is about; none if the queue's worker cannot read it.
fn order_of(queue: Queue, body: &str) -> Option<Uuid> {
    if queue != Queue::SettlePayment {
        return OrderMessage::parse(body).ok().map(|message| message.order_id);
    }
    match SettleMessage::parse(body).ok()? {
        SettleMessage::Order(message) => Some(message.order_id),
        SettleMessage::Event(message) => {
            assert_eq!((message.event_id.as_str(), message.gateway), (EVENT, Gateway::Stripe));
            Some(PAID_BY_EVENT)
        }
    }
}

/// The event that the files name, and the order whose payment it is about.
const EVENT: &str = "evt_1";
const PAID_BY_EVENT: Uuid = ORDERS[2];

async fn run(database: &TestDatabase, queue: Queue, event: SqsEvent) -> BTreeSet<String> {
    let (app, deadline) = (database.app(1), Deadline::after(Duration::from_secs(20)));
    failed(match queue {
        Queue::SettlePayment => {
            let (gateway, cashier) = gateway(database).await;
            pay(database, &gateway, &cashier).await;
            let state = settle_payment::State::new(app, cashier, Arc::new(Nowhere));
            settle_payment::handle(&state, event, deadline).await.unwrap()
        }
        Queue::ReserveNumbers => {
            reserve_numbers::handle(&reserve_numbers::State::new(app, Arc::new(Nowhere)), event, deadline)
                .await
                .unwrap()
        }
        Queue::WriteExports => {
            let bucket = FakeBucket::start().await;
            let state = write_exports::State::new(app, bucket.writer(), Arc::new(Nowhere));
            let deadline = Deadline::after(Duration::from_secs(290));
            let response = write_exports::handle(&state, event, deadline).await.unwrap();
            assert_eq!(bucket.files().len(), 2, "both exports have a file");
            response
        }
        Queue::CheckUploads => {
            let bucket = FakeBucket::start().await;
            for id in UPLOADS {
                bucket.send(
                    &quarantine_key(TENANT, id),
                    b"no image, but as long as one would have to be at the very least",
                    "image/png",
                );
            }
            let state = check_uploads::State::new(app, bucket.looker(), Arc::new(Nowhere));
            let response =
                check_uploads::handle(&state, event, Deadline::after(Duration::from_secs(52))).await.unwrap();
            assert!(bucket.files().keys().all(|key| key.starts_with("quarantine/")), "nothing was published");
            response
        }
        Queue::SendLoginCode => {
            let phones = Phones::default();
            let state = send_login_code::State::new(app, keys().login, phones.sender(), Arc::new(Nowhere));
            let response = send_login_code::handle(&state, event, deadline).await.unwrap();
            assert!(phones.messages().iter().all(|(phone, _)| phone == PHONE));
            response
        }
        Queue::SendNotice => {
            let told = Told::default();
            let state = send_notice::State::new(app, told.senders(), Arc::new(Nowhere));
            let response = send_notice::handle(&state, event, deadline).await.unwrap();
            assert!(told.phones.messages().iter().all(|(phone, _)| phone == PHONE));
            response
        }
        Queue::ReleaseNumbers => {
            release_numbers::handle(&release_numbers::State::new(app, Arc::new(Nowhere)), event, deadline)
                .await
                .unwrap()
        }
    })
}

async fn cancel(database: &TestDatabase) {
    let mut client = database.app_client().await;
    for id in ORDERS {
        let key = id.to_string();
        let scope =
            store::idempotency::Scope { tenant_id: TENANT, subject_id: BUYER, route: "cancellations", key: &key };
        store::orders::cancel(&mut client, scope, id, uuid::Uuid::now_v7()).await.unwrap();
    }
}

/// Buyers pay all orders, and the gateway told us about one of the payments.
async fn pay(database: &TestDatabase, gateway: &FakeGateway, cashier: &cashier::Cashier) {
    let payments = http::payments(database.app(1), cashier.clone());
    let buyer = Buyer::with_id(TENANT, BUYER);
    let mut payment_id = None;
    for id in ORDERS {
        let answer = buyer.pay(&payments, id, "first", r#"{"method":"card"}"#).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
        payment_id = Some(gateway.pay(answer.json()["id"].as_str().unwrap()).unwrap());
    }
    let kind = "payment_intent.succeeded".into();
    let event = Event { tenant_id: TENANT, gateway: Gateway::Stripe, event_id: EVENT.into(), kind, payment_id };
    assert_eq!(receive(&database.app_client().await, &event).await.unwrap(), Received::New);
}

#[tokio::test(flavor = "multi_thread")]
async fn sqs_files_are_served_and_only_the_bad_records_reported() {
    let ends = [State::Reserved, State::Cancelled, State::Paid];
    for (queue, wanted) in Queue::OF_ORDERS.into_iter().zip(ends) {
        let mut served = BTreeSet::new();
        for name in names(&format!("sqs-{}", queue.name())) {
            let (database, _) = as_named().await;
            let good = serde_json::from_value(event("sqs-reserve-numbers")).unwrap();
            if queue != Queue::ReserveNumbers {
                assert_eq!(run(&database, Queue::ReserveNumbers, good).await, BTreeSet::new());
            }
            if queue == Queue::ReleaseNumbers {
                cancel(&database).await;
            }
            let event: SqsEvent = serde_json::from_value(event(&name)).unwrap();
            let (mut bad, mut readable) = (BTreeSet::new(), Vec::new());
            for record in &event.records {
                match order_of(queue, record.body.as_deref().unwrap_or_default()) {
                    Some(order_id) => readable.push(order_id),
                    None => assert!(bad.insert(record.message_id.clone().unwrap())),
                }
            }
            assert_eq!(bad.is_empty(), !name.ends_with("-poison"), "{name}");
            assert!(readable.len() >= 2, "{name}: a bad record has neighbours");
            assert_eq!(run(&database, queue, event).await, bad, "{name}");
            for order_id in readable {
                assert_eq!(look::order(&database, order_id).await.state, wanted, "{name}: {order_id}");
                served.insert(order_id);
            }
            database.finish_under_way().await;
        }
        assert!(served.len() >= 2);
    }
}

/// A phone that asks for codes in both asking sessions that the files name.
const PHONE: &str = "+5511900000001";

#[tokio::test(flavor = "multi_thread")]
async fn files_about_codes_are_served_and_only_the_bad_records_reported() {
    for name in names("sqs-send-login-code") {
        let (database, _) = as_named().await;
        let event: SqsEvent = serde_json::from_value(event(&name)).unwrap();
        let read = |record: &SqsMessage| LoginCodeMessage::parse(record.body.as_deref().unwrap_or_default()).ok();
        let readable: Vec<_> = event.records.iter().filter_map(read).collect();
        assert!(readable.len() >= 2, "{name}: a bad record has neighbours");
        for message in &readable {
            assert_eq!(message.tenant_id, TENANT);
            let sql = "insert into login_codes (id, tenant_id, phone, language, key_id, expires_at, look_at)
                values ($1, $2, $3, 'pt-BR', 'development', now() + interval '5 minutes', now())";
            database.owner().execute(sql, &[&message.asking_id, &TENANT, &PHONE]).await.unwrap();
        }
        let bad: BTreeSet<String> =
            event.records.iter().filter(|one| read(one).is_none()).filter_map(|one| one.message_id.clone()).collect();
        assert_eq!(bad.is_empty(), !name.ends_with("-poison"), "{name}");
        assert_eq!(run(&database, Queue::SendLoginCode, event).await, bad, "{name}");
        let unsent = "select count(*) from login_codes where sent < asked or claimed_until is not null";
        assert_eq!(look::count(&database, unsent).await, 0, "{name}");
        database.finish_under_way().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_about_notices_are_served_and_only_the_bad_records_reported() {
    for name in names("sqs-send-notice") {
        let (database, _) = as_named().await;
        log_in(&database, TENANT, BUYER, PHONE).await;
        let reserving = serde_json::from_value(super::event("sqs-reserve-numbers")).unwrap();
        assert_eq!(run(&database, Queue::ReserveNumbers, reserving).await, BTreeSet::new());
        let event: SqsEvent = serde_json::from_value(event(&name)).unwrap();
        let read = |record: &SqsMessage| NoticeMessage::parse(record.body.as_deref().unwrap_or_default()).ok();
        let readable: BTreeSet<Uuid> = event.records.iter().filter_map(read).map(|message| message.order_id).collect();
        assert!(readable.len() >= 2, "{name}: a bad record has neighbours");
        let bad: BTreeSet<String> =
            event.records.iter().filter(|one| read(one).is_none()).filter_map(|one| one.message_id.clone()).collect();
        assert_eq!(bad.is_empty(), !name.ends_with("-poison"), "{name}");
        assert_eq!(run(&database, Queue::SendNotice, event).await, bad, "{name}");
        for order_id in readable {
            let sent = format!("select count(*) from notices where order_id = '{order_id}' and outcome = 'sent'");
            assert_eq!(look::count(&database, &sent).await, 1, "{name}: {order_id}");
        }
        database.finish_under_way().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_about_exports_are_served_and_only_the_bad_records_reported() {
    for name in names("sqs-write-exports") {
        let (database, product) = as_named().await;
        let member = staff::hire(&database, TENANT, Role::Finance).await;
        let event: SqsEvent = serde_json::from_value(event(&name)).unwrap();
        let read = |record: &SqsMessage| ExportMessage::parse(record.body.as_deref().unwrap_or_default()).ok();
        let ids: BTreeSet<Uuid> = event.records.iter().filter_map(read).map(|message| message.export_id).collect();
        assert_eq!(ids.len(), 2, "{name}: a bad record has neighbours");
        // The orders that the files name are older than this product: their ids say when they were made.
        let sql = "update products set created_at = '2025-01-01'";
        database.owner().execute(sql, &[]).await.unwrap();
        for id in &ids {
            let sql = "insert into exports (id, tenant_id, product_id, staff_id, kind, format, language)
                values ($1, $2, $3, $4, 'orders', 'csv', 'pt-BR')";
            database.owner().execute(sql, &[id, &TENANT, &product.described.id, &member.id]).await.unwrap();
        }
        let bad: BTreeSet<String> =
            event.records.iter().filter(|one| read(one).is_none()).filter_map(|one| one.message_id.clone()).collect();
        assert_eq!(bad.is_empty(), !name.ends_with("-poison"), "{name}");
        assert_eq!(run(&database, Queue::WriteExports, event).await, bad, "{name}");
        let ready = "select count(*) from exports where state = 'ready' and rows_done = 3 and percent = 100";
        assert_eq!(look::count(&database, ready).await, 2, "{name}");
        database.finish_under_way().await;
    }
}

/// The uploads that the files name.
const UPLOADS: [Uuid; 2] =
    [uuid!("01995b2c-1a00-7e31-8b4c-6d7e8f901a2b"), uuid!("01995b2c-1a01-7e32-9c5d-7e8f901a2b3c")];

#[tokio::test(flavor = "multi_thread")]
async fn files_about_uploads_are_served_and_only_the_bad_records_reported() {
    for name in names("sqs-check-uploads") {
        let (database, _) = as_named().await;
        let member = staff::hire(&database, TENANT, Role::Operator).await;
        for id in UPLOADS {
            let sql = "insert into uploads (id, tenant_id, staff_id, media_type, expires_at, look_at)
                values ($1, $2, $3, 'image/png', now() + interval '5 minutes', now() + interval '6 minutes')";
            database.owner().execute(sql, &[&id, &TENANT, &member.id]).await.unwrap();
        }
        let event: SqsEvent = serde_json::from_value(event(&name)).unwrap();
        let read = |record: &SqsMessage| CheckMessage::parse(record.body.as_deref().unwrap_or_default()).ok();
        let mut named = BTreeSet::new();
        for message in event.records.iter().filter_map(read) {
            match message {
                CheckMessage::Upload(message) => named.extend([message.upload_id]),
                CheckMessage::Made(keys) => {
                    named.extend(keys.iter().filter_map(|key| Some(from_quarantine_key(key)?.1)))
                }
            }
        }
        assert!(!named.is_empty() && named.iter().all(|id| UPLOADS.contains(id)), "{name}: {named:?}");
        let bad: BTreeSet<String> =
            event.records.iter().filter(|one| read(one).is_none()).filter_map(|one| one.message_id.clone()).collect();
        assert_eq!(bad.is_empty(), !name.ends_with("-poison"), "{name}");
        assert_eq!(run(&database, Queue::CheckUploads, event).await, bad, "{name}");
        let rejected =
            "select count(*) from uploads where state = 'rejected' and refusal in ('wrong-kind', 'wrong-size')";
        assert_eq!(look::count(&database, rejected).await, i64::try_from(named.len()).unwrap(), "{name}");
        database.finish_under_way().await;
    }
}

#[test]
fn the_files_show_what_may_come() {
    for queue in Queue::ALL {
        let poison = event(&format!("sqs-{}-poison", queue.name()));
        let bodies: Vec<&str> =
            poison["Records"].as_array().unwrap().iter().filter_map(|r| r["body"].as_str()).collect();
        let with = |what: &str| bodies.iter().any(|body| body.contains(what));
        assert!(with("\"v\":9") && with("\"colour\"") && with("not-a-uuid") && bodies.contains(&""));
        for name in [format!("sqs-{}", queue.name()), format!("sqs-{}-poison", queue.name())] {
            for record in event(&name)["Records"].as_array().unwrap() {
                assert!(record["eventSourceARN"].as_str().unwrap().ends_with(&format!("-{}", queue.name())), "{name}");
                assert_eq!(
                    record["attributes"]["MessageGroupId"],
                    TENANT.to_string(),
                    "{name}: the group is the tenant"
                );
            }
        }
    }
}
