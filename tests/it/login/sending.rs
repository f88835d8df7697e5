//! Codes reach their phones although queues refuse, senders die and providers are away; old ones are not sent.

use std::sync::Arc;

use domain::messages::{LoginCodeMessage, Queue};
use edge::queue::{MessageQueue, Outgoing};
use send_login_code::Sender;
use serde_json::json;
use store::login::{Claim, claim, mark_sent};
use tests::login::Door;
use tests::look::{change, count};

use super::PHONE;

const UNSENT: &str = "select count(*) from login_codes where sent < asked";

/// A sender that always fails: its file cannot be.
fn away() -> Sender {
    Sender::local("/dev/null/phones.jsonl")
}

/// Another message about the only asking session.
async fn send_again(door: &Door, asking: uuid::Uuid) {
    let message = LoginCodeMessage::new(door.tenant_id, asking);
    let sent = door.queues.send(Queue::SendLoginCode, &[Outgoing::from(&message)]).await;
    assert!(sent.iter().all(Result::is_ok));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_delivered_twice_is_sent_once() {
    let door = Door::open().await;
    let asking = door.asking(PHONE).await;
    for _ in 0..20 {
        send_again(&door, asking).await;
    }
    door.send().await;
    assert_eq!(door.phones.messages().len(), 1);
    assert_eq!(door.queues.dead(Queue::SendLoginCode), Vec::<String>::new());
    door.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_queue_took_is_owed_by_its_row() {
    let door = Door::open().await;
    door.queues.refuse_every(1);
    let asking = door.asking(PHONE).await;
    assert_eq!(door.queues.len(Queue::SendLoginCode), 0, "the answer was the same");
    door.queues.refuse_every(0);
    let queue = Arc::clone(&door.queues) as Arc<dyn MessageQueue>;
    let deadline = || edge::Deadline::after(std::time::Duration::from_secs(60));
    let app = door.database.app(1);
    assert_eq!(reconcile_orders::run(&app, &queue, deadline()).await.login_codes, 0, "its request may be about to");
    change(&door.database, "update login_codes set look_at = now()", 1).await;
    assert_eq!(reconcile_orders::run(&app, &queue, deadline()).await.login_codes, 1);
    assert_eq!(reconcile_orders::run(&app, &queue, deadline()).await.login_codes, 0, "not at every run");
    door.send().await;
    let body = json!({ "asking_session": asking, "code": door.phones.code(PHONE) });
    assert_eq!(door.give(&body).await.status, 201);
    change(&door.database, "update login_codes set look_at = now()", 1).await;
    assert_eq!(reconcile_orders::run(&app, &queue, deadline()).await.login_codes, 0, "it was sent");
    door.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_that_dies_has_its_message_sent_again() {
    let door = Door::open().await;
    let asking = door.asking(PHONE).await;
    let client = door.database.app_client().await;
    let message = LoginCodeMessage::new(door.tenant_id, asking);
    let Claim::Yours(first) = claim(&client, &message).await.unwrap() else { panic!("nobody else is there") };
    assert!(!first.is_repeat);
    assert_eq!(claim(&client, &message).await.unwrap(), Claim::Busy, "somebody is sending");
    change(&door.database, "update login_codes set claimed_until = now()", 1).await;
    let Claim::Yours(second) = claim(&client, &message).await.unwrap() else { panic!("its sender is dead") };
    assert!(second.is_repeat, "the first may have sent it: this is counted");
    mark_sent(&client, &second).await.unwrap();
    assert_eq!(claim(&client, &message).await.unwrap(), Claim::Nothing);
    door.send().await;
    assert_eq!(door.phones.messages(), Vec::<(String, String)>::new(), "it counts as sent");
    door.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resend_meanwhile_is_not_lost() {
    let door = Door::open().await;
    let asking = door.asking(PHONE).await;
    let client = door.database.app_client().await;
    let message = LoginCodeMessage::new(door.tenant_id, asking);
    let Claim::Yours(first) = claim(&client, &message).await.unwrap() else { panic!("nobody else is there") };
    assert_eq!(door.ask(&json!({ "phone": PHONE, "asking_session": asking })).await.status, 202);
    mark_sent(&client, &first).await.unwrap();
    assert_eq!(count(&door.database, UNSENT).await, 1);
    door.send().await;
    assert_eq!((door.phones.messages().len(), count(&door.database, UNSENT).await), (1, 0));
    door.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_away_loses_nothing_that_is_still_good() {
    let door = Door::open().await;
    let asking = door.asking(PHONE).await;
    door.send_by(away()).await;
    assert_eq!(door.queues.dead(Queue::SendLoginCode).len(), 1, "it was tried until the queue gave up");
    assert_eq!(count(&door.database, "select count(*) from login_codes where claimed_until is null").await, 1);
    send_again(&door, asking).await;
    door.send().await;
    let body = json!({ "asking_session": asking, "code": door.phones.code(PHONE) });
    assert_eq!(door.give(&body).await.status, 201);
    door.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_that_is_over_is_not_sent() {
    let door = Door::open().await;
    door.asking(PHONE).await;
    change(&door.database, "update login_codes set expires_at = now()", 1).await;
    door.send().await;
    assert_eq!(door.phones.messages(), Vec::<(String, String)>::new());
    assert_eq!((door.queues.len(Queue::SendLoginCode), door.queues.dead(Queue::SendLoginCode).len()), (0, 0));
    let used = door.asking("+34600000002").await;
    let other = format!("update login_codes set used_at = now() where id = '{used}'");
    change(&door.database, &other, 1).await;
    door.send().await;
    assert_eq!(door.phones.messages(), Vec::<(String, String)>::new());
    door.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_language_has_its_text() {
    let door = Door::open().await;
    for (phone, language, said) in [
        ("+34600000001", None, "es tu clave"),
        ("+5511900000001", None, "é sua senha"),
        ("+351912345678", None, "é sua senha"),
        ("+34600000002", Some("en"), "is your code"),
        ("+5511900000002", Some("es"), "es tu clave"),
    ] {
        assert_eq!(door.ask(&json!({ "phone": phone, "language": language })).await.status, 202);
        door.send().await;
        let (to, text) = door.phones.messages().pop().unwrap();
        assert_eq!(to, phone);
        assert!(text.contains(said), "{text}");
    }
    door.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_over_is_pruned() {
    let door = Door::open().await;
    door.log_in(PHONE).await;
    let client = door.database.app_client().await;
    let rows = async || {
        let rows = "select (select count(*) from login_codes) * 100 + (select count(*) from sessions) * 10
            + (select count(*) from login_limits)";
        count(&door.database, rows).await
    };
    store::prune::prune(&client).await.unwrap();
    assert_eq!(rows().await, 115, "nothing is over");
    let pass = "with codes as (update login_codes set expires_at = expires_at - interval '2 hours'),
            pots as (update login_limits set full_until = full_until - interval '1 day')
        update sessions set expires_at = expires_at - interval '61 days'";
    change(&door.database, pass, 1).await;
    store::prune::prune(&client).await.unwrap();
    assert_eq!(rows().await, 0);
    assert_eq!(count(&door.database, "select count(*) from buyers").await, 1);
    door.database.finish().await;
}
