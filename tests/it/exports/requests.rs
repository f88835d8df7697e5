//! Asking for exports, following them, fetching them.

use domain::roles::Role;
use serde_json::{Value, json};
use tests::http::is;
use tests::look::{change, count};
use uuid::Uuid;

use super::{Archive, browser};

#[tokio::test(flavor = "multi_thread")]
async fn an_export_is_asked_for_once_per_key_and_recorded() {
    let archive = Archive::open().await;
    let body = json!({ "kind": "orders", "format": "csv", "language": "es" });
    let path = archive.path();
    let ask = async |key: &str, body: &Value| archive.member.send_under(&archive.api, key, "POST", &path, body).await;
    let first = ask("a", &body).await;
    let again = ask("a", &body).await;
    assert_eq!((first.status, first.is_replay(), again.status, again.is_replay()), (202, false, 202, true));
    assert_eq!(first.json(), again.json());
    let other = json!({ "kind": "numbers", "format": "csv", "language": "es" });
    assert_eq!(ask("a", &other).await.refusal(), is(422, "key-reused"));
    assert_eq!(count(&archive.office.database, "select count(*) from exports").await, 1);
    let logged = "select count(*) from audit_log where action = 'export_product' and subject = 'export'
        and detail like '%\"kind\":\"orders\"%'";
    assert_eq!(count(&archive.office.database, logged).await, 1);
    // Its key is forgotten after a day, what was made under it is not.
    change(&archive.office.database, "delete from idempotency_keys", 1).await;
    assert_eq!(ask("a", &body).await.refusal(), is(422, "key-reused"));
    assert_eq!(count(&archive.office.database, "select count(*) from audit_log").await, 1, "nor is it logged");
    for (pointer, value) in [("/kind", "buyers"), ("/format", "pdf"), ("/language", "pt")] {
        let mut bad = body.clone();
        *bad.pointer_mut(pointer).unwrap() = json!(value);
        let answer = ask("b", &bad).await;
        assert_eq!(answer.refusal(), is(422, "invalid"), "{pointer}");
        assert_eq!(answer.json()["errors"][0]["pointer"], pointer);
    }
    archive.office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_fetched_by_a_link_while_it_is_kept() {
    let archive = Archive::open().await;
    archive.reserved(&[42]).await;
    let id = archive.ask("orders", "csv", "en").await;
    let shown = archive.show(id).await;
    assert_eq!((&shown["state"], &shown["download"]), (&json!("queued"), &json!(null)));
    archive.work().await;
    let file = archive.file(id).await;
    let answer = archive.member.get(&archive.api, &format!("/v1/admin/exports/{id}")).await;
    assert_eq!(answer.header("cache-control"), "no-store");
    let link = answer.json()["download"].as_str().unwrap().to_owned();
    assert!(link.contains("X-Amz-Expires=300"), "{link}");
    let fetched = browser().get(&link).send().await.unwrap();
    assert_eq!(fetched.status().as_u16(), 200);
    assert_eq!(fetched.bytes().await.unwrap(), file.bytes);
    let unsigned = browser().get(link.split('?').next().unwrap()).send().await.unwrap();
    assert_eq!(unsigned.status().as_u16(), 403);
    let listed = archive.member.get(&archive.api, "/v1/admin/exports").await.json();
    assert_eq!((&listed["exports"][0]["id"], &listed["exports"][0]["download"]), (&json!(id), &json!(null)));
    for (until, has_link) in [("now()", false), ("now() + interval '1 minute'", true)] {
        let proof = format!("update staff_sessions set fresh_until = {until}");
        change(&archive.office.database, &proof, 1).await;
        assert_eq!(archive.show(id).await["download"].is_string(), has_link, "a proof {until}");
    }
    change(&archive.office.database, "update exports set expires_at = now()", 1).await;
    assert_eq!(archive.show(id).await["download"], json!(null), "it is not kept any more");
    let logged = format!(
        "select count(*) from audit_log where action = 'read_export' and subject = 'export' and subject_id = '{id}'
            and staff_id = '{}' and detail like '%\"kind\":\"orders\"%'",
        archive.member.id
    );
    assert_eq!(count(&archive.office.database, &logged).await, 3, "each link, and no look without one");
    archive.office.database.finish_under_way().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_are_listed_newest_first() {
    let archive = Archive::open().await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(json!(archive.ask("orders", "csv", "en").await));
    }
    ids.reverse();
    let first = archive.member.get(&archive.api, "/v1/admin/exports?limit=2").await.json();
    let next = format!("/v1/admin/exports?limit=2&cursor={}", first["next_cursor"].as_str().unwrap());
    let second = archive.member.get(&archive.api, &next).await.json();
    let exports = [&first, &second].into_iter().flat_map(|page| page["exports"].as_array().unwrap());
    assert_eq!(exports.map(|export| export["id"].clone()).collect::<Vec<_>>(), ids);
    assert_eq!(second["next_cursor"], json!(null));
    archive.office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_has_few_exports_under_way() {
    let archive = Archive::open().await;
    for _ in 0..5 {
        archive.ask("orders", "csv", "en").await;
    }
    let body = json!({ "kind": "orders", "format": "csv", "language": "en" });
    let answer = archive.member.send(&archive.api, "POST", &archive.path(), &body).await;
    assert_eq!((answer.refusal(), answer.retry_after()), (is(429, "too-many-requests"), Some(60)));
    assert_eq!(count(&archive.office.database, "select count(*) from exports").await, 5);
    assert_eq!(count(&archive.office.database, "select count(*) from audit_log").await, 5, "what fails leaves nothing");
    archive.work().await;
    archive.ask("orders", "csv", "en").await;
    archive.office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_who_looks_after_money_takes_files_away() {
    let archive = Archive::open().await;
    let body = json!({ "kind": "orders", "format": "csv", "language": "en" });
    for role in [Role::Operator, Role::Support, Role::Viewer] {
        let member = archive.office.hire(role).await;
        let answer = member.send(&archive.api, "POST", &archive.path(), &body).await;
        assert_eq!(answer.refusal(), is(403, "forbidden"), "{}", role.word());
    }
    let sql = "update staff_sessions set fresh_until = now()";
    archive.office.database.owner().execute(sql, &[]).await.unwrap();
    let answer = archive.member.send(&archive.api, "POST", &archive.path(), &body).await;
    assert_eq!(answer.refusal(), is(403, "not-fresh"));
    assert!(answer.json()["detail"].as_str().unwrap().contains("POST /v1/staff/sessions/proofs"), "what helps");
    let unknown = archive.member.get(&archive.api, &format!("/v1/admin/exports/{}", Uuid::now_v7())).await;
    assert_eq!(unknown.refusal(), is(404, "not-found"));
    archive.office.database.finish().await;
}
