//! Sending: once, by each channel, in the buyer's language.

use domain::messages::{NoticeMessage, Queue};
use domain::notices::{Kind, Outcome};
use serde_json::json;
use store::notices::{Channel, Claim, claim, end, mark_sent, may_have};
use tests::login::Door;
use tests::look::change;
use tests::notices::{Told, log_in};
use tests::seed::{self, exact, quick};
use tests::till::{Policy, Till};
use uuid::Uuid;

use super::{PHONE, ended, ends, known, tell};

fn message(till: &Till, order_id: Uuid) -> NoticeMessage {
    NoticeMessage::new(till.product.described.tenant_id, order_id, Kind::Reserved)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_delivered_twice_is_sent_once() {
    let till = Till::open(Policy::default()).await;
    let (told, buyer) = (Told::default(), known(&till).await);
    let message = message(&till, till.reserve(&buyer, &quick(1)).await);
    for _ in 0..20 {
        let body = serde_json::to_string(&message).unwrap();
        till.chain.queues.put_body(Queue::SendNotice, body, message.tenant_id.to_string());
    }
    tell(&till, &told).await;
    assert_eq!(told.texts(PHONE).len(), 1);
    assert_eq!(till.chain.queues.dead(Queue::SendNotice), Vec::<String>::new());
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_of_another_store_finds_nothing() {
    let till = Till::open(Policy::default()).await;
    let order = till.reserve(&known(&till).await, &quick(1)).await;
    let client = till.database.app_client().await;
    let stranger = NoticeMessage::new(seed::store(till.database.owner()).await, order, Kind::Reserved);
    assert_eq!(claim(&client, &stranger).await.unwrap(), Claim::Nothing);
    end(&client, &stranger, Outcome::Sent).await.unwrap();
    mark_sent(&client, &stranger, Channel::Phone).await.unwrap();
    let owed = "update notices set look_at = look_at where outcome is null and phone_sent_at is null";
    change(&till.database, owed, 1).await;
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_that_dies_has_its_notice_sent_again() {
    let till = Till::open(Policy::default()).await;
    let (told, buyer) = (Told::default(), known(&till).await);
    let message = message(&till, till.reserve(&buyer, &quick(1)).await);
    let client = till.database.app_client().await;
    let Claim::Yours(first) = claim(&client, &message).await.unwrap() else { panic!("nobody else is there") };
    assert!(!first.is_repeat && first.attempts == 1);
    assert_eq!(claim(&client, &message).await.unwrap(), Claim::Busy, "somebody is sending");
    change(&till.database, "update notices set claimed_until = now()", 1).await;
    let Claim::Yours(second) = claim(&client, &message).await.unwrap() else { panic!("its sender is dead") };
    assert!(second.is_repeat, "the first may have sent it: this is counted");
    mark_sent(&client, &message, Channel::Phone).await.unwrap();
    change(&till.database, "update notices set claimed_until = now()", 1).await;
    tell(&till, &told).await;
    assert_eq!(told.texts(PHONE), Vec::<String>::new(), "the phone has it");
    assert_eq!(ends(&till).await, [ended("reserved", "sent")]);
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_goes_where_there_is_an_address() {
    let till = Till::open(Policy::default()).await;
    let (told, buyer) = (Told::default(), known(&till).await);
    change(&till.database, "update buyers set email = 'a@example.org', language = 'en'", 1).await;
    let numbers: Vec<i32> = (1..=60).collect();
    till.reserve(&buyer, &exact(&numbers)).await;
    tell(&till, &told).await;
    let (texts, mails) = (told.texts(PHONE), told.mailbox.mails());
    assert!(texts[0].contains("reserved until ") && texts[0].contains("(+"), "{}", texts[0]);
    assert_eq!((texts.len(), mails.len()), (1, 1));
    assert_eq!(mails[0]["to"], "a@example.org");
    assert_eq!(mails[0]["subject"], "A store: your numbers are reserved");
    assert!(mails[0]["text"].as_str().unwrap().contains("00001, 00002, "), "{}", mails[0]);
    assert!(mails[0]["text"].as_str().unwrap().contains(", 00060. Pay"), "{}", mails[0]);
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_language_is_that_of_the_last_code() {
    let door = Door::open().await;
    let phone = "+5511900000001";
    for language in ["pt-BR", "en"] {
        let asking = door.ask(&json!({ "phone": phone, "language": language })).await.json()["asking_session"].clone();
        door.send().await;
        let body = json!({ "asking_session": asking, "code": door.phones.code(phone) });
        assert_eq!(door.give(&body).await.status, 201);
        let sql = "select language from buyers where phone = $1";
        let row = door.database.owner().query_one(sql, &[&phone]).await.unwrap();
        assert_eq!(row.get::<_, String>(0), language);
    }
    door.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_gets_more_than_the_pots_hold() {
    let till = Till::open(Policy::default()).await;
    let (told, buyer) = (Told::default(), known(&till).await);
    let client = till.database.app_client().await;
    for _ in 0..domain::limits::NOTICES_PER_BUYER.messages {
        assert!(may_have(&client, buyer.id).await.unwrap());
    }
    assert!(!may_have(&client, buyer.id).await.unwrap());
    assert!(may_have(&client, Uuid::now_v7()).await.unwrap(), "others have pots of their own");
    till.reserve(&buyer, &quick(1)).await;
    tell(&till, &told).await;
    assert_eq!(told.texts(PHONE), Vec::<String>::new());
    assert_eq!(ends(&till).await, [ended("reserved", "limited")]);
    let fuse = "update login_limits set full_until = now() + interval '1 day' where subject = md5('notices')::uuid";
    change(&till.database, fuse, 1).await;
    assert!(!may_have(&client, Uuid::now_v7()).await.unwrap(), "nobody has any while the fuse is blown");
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_message_goes_to_a_country_that_the_store_does_not_serve() {
    let till = Till::open(Policy::default()).await;
    let (told, buyer) = (Told::default(), till.buyer());
    // As staff enter it who sell over the counter: nobody has logged in with it.
    let abroad = "+882123456789";
    log_in(&till.database, till.product.described.tenant_id, buyer.id, abroad).await;
    till.reserve(&buyer, &quick(1)).await;
    tell(&till, &told).await;
    assert_eq!((told.texts(abroad), ends(&till).await), (Vec::new(), vec![ended("reserved", "needless")]));
    change(&till.database, "update buyers set email = 'a@example.org'", 1).await;
    till.reserve(&buyer, &quick(1)).await;
    tell(&till, &told).await;
    assert_eq!((told.texts(abroad).len(), told.mailbox.mails().len()), (0, 1), "mail costs the same everywhere");
    assert_eq!(ends(&till).await, [ended("reserved", "needless"), ended("reserved", "sent")]);
    till.finish().await;
}
