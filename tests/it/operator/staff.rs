//! A store's first owner, and the one whom nobody else can help.

use domain::roles::Role;
use edge::Stage;
use edge::sealing::{DEVELOPMENT_KEYS, SealingKeys, totp_context};
use serde_json::json;
use tests::staff::{Office, now};

use super::Terminal;

const OWNER: &str = "owner@example.org";

fn token(link: &serde_json::Value) -> String {
    let (page, token) = link.as_str().unwrap().split_once('#').unwrap();
    assert_eq!(page, "https://staff.example/in");
    token.to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_owner_is_invited_and_recovered_from_a_terminal() {
    let office = Office::open().await;
    let terminal = Terminal { database_url: office.database.app_location(), variables: Vec::new() };
    let about = ["--store", &office.store, "--email", "Owner@example.org", "--page", "https://staff.example/in"];
    let invite = [&["staff", "invite"][..], &about, &["--role", "owner"]].concat();
    let first = terminal.done(&invite).await;
    let second = terminal.done(&invite).await;
    assert_eq!(first["staff"], second["staff"]);
    let old = office.post("/v1/staff/enrolments", &json!({ "link": token(&first["link"]) })).await;
    assert_eq!(old.status, 422, "only the last link is good");
    let recover = [&["staff", "recover"][..], &about].concat();
    let (code, text) = terminal.refused(&recover).await;
    assert!(code == 3 && text.contains("has not joined"), "{text}");
    let link = token(&second["link"]);
    let secret = office.enrol(&link).await;
    assert_eq!(office.sign_in(&link, &secret.password(now())).await.json()["role"], "owner");
    let (code, text) = terminal.refused(&invite).await;
    assert!(code == 3 && text.contains("staff recover"), "{text}");

    let link = token(&terminal.done(&recover).await["link"]);
    let secret = office.enrol(&link).await;
    assert_eq!(office.sign_in(&link, &secret.password(now())).await.status, 201);
    let listed = terminal.done(&["staff", "list", "--store", &office.store]).await;
    assert_eq!((&listed["staff"][0]["email"], &listed["staff"][0]["role"]), (&json!(OWNER), &json!("owner")));
    let acts = "select count(*) from audit_log where staff_id is null";
    assert_eq!(tests::look::count(&office.database, acts).await, 3, "what the operator did is recorded too");
    let nobody = ["staff", "recover", "--store", &office.store, "--email", "nobody@example.org"];
    assert_eq!(terminal.refused(&nobody).await.0, 3);
    office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_sealed_again_for_a_rotation() {
    let office = Office::open().await;
    let member = office.hire(Role::Owner).await;
    let (old, new) =
        (DEVELOPMENT_KEYS, r#"{"keys":[{"id":"new","key":"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="}]}"#);
    let both = new.replace("}]}", "},") + &old.trim()[old.find("{\"id\"").unwrap()..];
    let database_url = office.database.app_location();
    let terminal = Terminal { database_url, variables: vec![("TIRADA_STAGE", "local".into())] };
    let done = terminal.with("TIRADA_SEALING_KEYS", &both).done(&["staff", "reseal"]).await;
    assert_eq!(done, json!({ "resealed": 1, "current": 0, "unopened": [] }));
    let sql = "select totp from staff where id = $1";
    let sealed: Vec<u8> = office.database.owner().query_one(sql, &[&member.id]).await.unwrap().get(0);
    let keys = SealingKeys::from_json(new, Stage::Local).unwrap();
    let context = totp_context(member.tenant_id, member.id);
    assert_eq!(keys.open(&context, &sealed).unwrap(), member.secret.bytes());
    let database_url = office.database.app_location();
    let terminal = Terminal { database_url, variables: vec![("TIRADA_STAGE", "local".into())] };
    let output = terminal.with("TIRADA_SEALING_KEYS", old).run(&["staff", "reseal"]).await.unwrap();
    assert_eq!((output.code(), &output.json()["unopened"]), (1, &json!([member.id])));
    office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_who_left_is_forgotten_and_what_they_did_is_not() {
    let office = Office::open().await;
    let member = office.hire(Role::Operator).await;
    let pause = json!({ "intake": "paused", "reason": "x" });
    assert_eq!(member.send(&office.admin, "PUT", "/v1/admin/store/intake", &pause).await.status, 204);
    let email = format!("operator-{}@example.org", member.id.simple());
    let terminal = Terminal { database_url: office.database.app_location(), variables: Vec::new() };
    let erase = ["staff", "erase", "--store", &office.store, "--email", &email, "--yes"];
    let (code, text) = terminal.refused(&erase).await;
    assert!(code == 3 && text.contains("remove them first"), "{text}");
    let removed = format!("update staff set removed_at = now() where id = '{}'", member.id);
    tests::look::change(&office.database, &removed, 1).await;
    assert_eq!(terminal.done(&erase).await["staff"], json!([member.id]));
    assert_eq!(tests::leaks::columns_with(office.database.owner(), &email).await, []);
    let left = format!(
        "select count(*) from audit_log l join staff s on s.id = l.staff_id where s.id = '{}' and s.removed_at < now()",
        member.id
    );
    assert_eq!(tests::look::count(&office.database, &left).await, 1, "what they did");
    assert_eq!(tests::look::count(&office.database, "select count(*) from staff_sessions").await, 0);
    assert_eq!(terminal.done(&erase).await["erased"], json!(false));
    let logged = "select count(*) from audit_log where action = 'erase_staff' and subject = 'staff'";
    assert_eq!(tests::look::count(&office.database, logged).await, 1);
    office.database.finish().await;
}
