//! Nothing personal and no secret gets into a log or a row where it does not belong.

use std::sync::Arc;

use serde_json::json;
use tests::leaks::{self, Memory};
use tests::login::Door;

use super::PHONE;

// One thread, so that everything logs where this test listens.
#[tokio::test(flavor = "current_thread")]
async fn neither_phones_nor_codes_nor_tokens_are_logged() {
    let memory = Memory::default();
    let guard = memory.listen();
    let door = Door::open().await;
    let asking = door.asking(PHONE).await;
    door.send_by(send_login_code::Sender::local("/dev/null/phones.jsonl")).await;
    door.queues.refuse_every(1);
    door.ask(&json!({ "phone": PHONE, "asking_session": asking })).await;
    door.queues.refuse_every(0);
    let queue = Arc::clone(&door.queues) as Arc<dyn edge::queue::MessageQueue>;
    tests::look::change(&door.database, "update login_codes set look_at = now()", 1).await;
    let deadline = edge::Deadline::after(std::time::Duration::from_secs(60));
    reconcile_orders::run(&door.database.app(1), &queue, deadline).await;
    door.send().await;
    let code = door.phones.code(PHONE);
    door.give(&json!({ "asking_session": asking, "code": "000000" })).await;
    let session = door.give(&json!({ "asking_session": asking, "code": code })).await.json();
    door.refresh(&session["refresh_token"], &session["device"]).await;
    door.refresh(&session["refresh_token"], &json!(null)).await;
    for _ in 0..10 {
        door.ask(&json!({ "phone": PHONE })).await;
    }
    drop(guard);
    let text = memory.text();
    for said in ["a login code was not sent", "not published", "used again", "request refused"] {
        assert!(text.contains(said), "the log was listened to: {said}");
    }
    for line in text.lines() {
        assert_eq!(leaks::find(line), None, "{line}");
        for secret in [&PHONE[1..], "192.0.2.1", &session["buyer"].to_string()] {
            assert!(!line.contains(secret), "{line}");
        }
        let mut fields: serde_json::Value = serde_json::from_str(line).unwrap();
        fields.as_object_mut().unwrap().remove("timestamp");
        let has_code = fields.to_string().split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == code);
        assert!(!has_code, "{line}");
    }
    let leaking: Vec<String> = leaks::in_rows(door.database.owner()).await;
    let belongs = |found: &String| found.starts_with("buyers.phone has") || found.starts_with("login_codes.phone has");
    assert!(!leaking.is_empty() && leaking.iter().all(belongs), "{leaking:?}");
    door.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_database_says_of_a_row_is_not_repeated() {
    let door = Door::open().await;
    let owner = door.database.owner();
    let id = uuid::Uuid::now_v7();
    let sql = "insert into buyers (id, tenant_id, phone, email) values ($1, $2, $3, 'A@example.org')";
    let error = owner.execute(sql, &[&id, &door.tenant_id, &PHONE]).await.unwrap_err();
    let quoted = error.as_db_error().unwrap().detail().unwrap();
    assert!(quoted.contains(PHONE) && quoted.contains("A@example.org"), "the server quotes the row: {quoted}");
    let said = store::from_postgres(error);
    for text in [said.chain(), format!("{said:?}")] {
        assert!(text.contains("buyers_email_form") && text.contains("23514"), "{text}");
        assert!(!text.contains(&PHONE[1..]) && !text.contains("example.org"), "{text}");
    }
    door.database.finish().await;
}
