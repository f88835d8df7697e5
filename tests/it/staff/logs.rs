//! Nothing personal and no secret gets into a log.

use domain::roles::Role;
use serde_json::json;
use tests::leaks::{self, Memory};
use tests::staff::{Office, now};

use super::{OWNER, forget_steps, joined};

// One thread, so that everything logs where this test listens.
#[tokio::test(flavor = "current_thread")]
async fn neither_addresses_nor_links_nor_secrets_are_logged() {
    let memory = Memory::default();
    let guard = memory.listen();
    let office = Office::open().await;
    let (secret, session) = joined(&office, OWNER, Role::Owner).await;
    forget_steps(&office).await;
    office.ask_link(OWNER).await;
    let link = office.mailbox.link(OWNER);
    let password = secret.password(now());
    office.sign_in(&link, &secret.password(now() + 3_600)).await;
    assert_eq!(office.sign_in(&link, &password).await.status, 201);
    assert_eq!(office.sign_in(&link, &password).await.status, 422);
    let away = tests::http::staff(
        office.database.app(1),
        tests::staff::keys(),
        staff::Post::new(staff::Sender::local("/dev/null/mails.jsonl"), "https://staff.example".into()),
    );
    let path = format!("/v1/stores/{}/staff-links", office.store);
    away.call(tests::login::request("POST", &path, "192.0.2.1", &[], &json!({ "email": OWNER }))).await;
    office.refresh(&session["refresh_token"], &session["device"]).await;
    office.refresh(&session["refresh_token"], &json!(null)).await;
    drop(guard);
    let text = memory.text();
    for said in ["a link was not mailed", "used again", "request refused"] {
        assert!(text.contains(said), "the log was listened to: {said}");
    }
    for line in text.lines() {
        assert_eq!(leaks::find(line), None, "{line}");
        for hidden in [OWNER, "192.0.2.1", &link[4..], &secret.base32()] {
            assert!(!line.contains(hidden), "{line}");
        }
        let mut fields: serde_json::Value = serde_json::from_str(line).unwrap();
        fields.as_object_mut().unwrap().remove("timestamp");
        let has_password = fields.to_string().split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == password);
        assert!(!has_password, "{line}");
    }
    office.database.finish().await;
}
