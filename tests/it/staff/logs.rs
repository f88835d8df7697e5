//! Nothing personal and no secret gets into a log.

use std::io::Write;
use std::sync::{Arc, Mutex};

use domain::roles::Role;
use edge::telemetry::{filter, lines};
use serde_json::json;
use tests::leaks;
use tests::staff::{Office, now};

use super::{OWNER, forget_steps, joined};

/// A log kept in memory.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

// One thread, so that everything logs where this test listens.
#[tokio::test(flavor = "current_thread")]
async fn neither_addresses_nor_links_nor_secrets_are_logged() {
    let memory = Memory::default();
    let writer = memory.clone();
    let guard = tracing::subscriber::set_default(lines(filter("trace"), move || writer.clone()));
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
    let text = String::from_utf8(memory.0.lock().unwrap().clone()).unwrap();
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
