//! What buyers are told, where it goes, and what became of it.

use domain::login::Phone;
use serde_json::json;
use tests::look::{change, count};
use tests::notices::{Told, log_in, send_by};
use tests::seed::quick;
use tests::till::{Policy, Till};

use super::Terminal;

const PHONE: &str = "+34600000001";

async fn slug(till: &Till) -> String {
    let sql = "select slug from tenants where id = $1";
    till.database.owner().query_one(sql, &[&till.product.described.tenant_id]).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_switches_kinds_on_and_off() {
    let till = Till::open(Policy::default()).await;
    let (terminal, store) = (Terminal::of(&till), slug(&till).await);
    let shown = terminal.done(&["store", "notices", "--store", &store]).await;
    assert_eq!(shown["sends"], json!(["reserved", "paid", "rejected", "expired", "refunded"]));
    let saved = terminal.done(&["store", "notices", "--store", &store, "--send", "refunded,paid,paid"]).await;
    assert_eq!(saved["sends"], json!(["paid", "refunded"]));
    let none = terminal.done(&["store", "notices", "--store", &store, "--none"]).await;
    assert_eq!(none["sends"], json!([]));
    let (code, _) = terminal.refused(&["store", "notices", "--store", "nowhere"]).await;
    assert_eq!(code, 3);
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_buyer_gets_an_address() {
    let till = Till::open(Policy::default()).await;
    let (terminal, store) = (Terminal::of(&till), slug(&till).await);
    let buyer = till.buyer();
    let phone = Phone::parse(PHONE).unwrap();
    let email = ["buyer", "email", "--store", &store, "--phone", phone.as_str(), "--email", "A@Example.org"];
    assert_eq!(terminal.refused(&email).await.0, 3, "nobody has logged in with it");
    log_in(&till.database, till.product.described.tenant_id, buyer.id, PHONE).await;
    assert_eq!(terminal.done(&email).await["mails"], json!(true));
    assert_eq!(count(&till.database, "select count(*) from buyers where email = 'a@example.org'").await, 1);
    assert_eq!(terminal.done(&email[..6]).await["mails"], json!(false));
    assert_eq!(count(&till.database, "select count(*) from buyers where email is null").await, 1);
    let logged = "select count(*) from audit_log l join buyers b on b.id = l.subject_id
        where l.action = 'set_buyer_email' and l.subject = 'buyer' and l.staff_id is null
            and l.detail in ('{\"mails\":true}', '{\"mails\":false}')";
    assert_eq!(count(&till.database, logged).await, 2, "the address is not in it");
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_provider_refuses_is_shown() {
    let till = Till::open(Policy::default()).await;
    let (terminal, told, buyer) = (Terminal::of(&till), Told::default(), till.buyer());
    log_in(&till.database, till.product.described.tenant_id, buyer.id, PHONE).await;
    let order = till.reserve(&buyer, &quick(1)).await;
    let owed = terminal.done(&["notices"]).await;
    assert_eq!(owed["last_day"], json!([{ "kind": "reserved", "outcome": "owed", "notices": 1 }]));
    assert_eq!((&owed["failing"], &owed["stuck"]), (&json!(0), &json!([])));
    till.chain.reconcile().await;
    send_by(told.away(true), &till.database, &till.chain.queues).await;
    let output = terminal.run(&["notices"]).await.unwrap();
    let stuck = &output.json()["stuck"][0];
    assert_eq!((output.code(), &stuck["order"], &stuck["tries"]), (1, &json!(order), &json!(1)));
    assert!(stuck["provider"].as_str().unwrap().starts_with("busy: "), "{stuck}");
    change(&till.database, "update notices set look_at = now(), not_before = now()", 1).await;
    till.chain.reconcile().await;
    told.send(&till.database, &till.chain.queues).await;
    let sent = terminal.done(&["notices"]).await;
    assert_eq!(sent["last_day"], json!([{ "kind": "reserved", "outcome": "sent", "notices": 1 }]));
    assert_eq!(sent["oldest_owed_seconds"], json!(null));
    till.finish().await;
}
