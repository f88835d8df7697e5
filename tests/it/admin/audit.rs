//! The audit log: what was done is there once, what was not is not, and nobody changes it.

use domain::roles::Role;
use serde_json::{Value, json};
use tests::http::is;
use tests::look::count;
use tests::seed::product;
use tests::staff::Office;
use uuid::Uuid;

#[tokio::test(flavor = "multi_thread")]
async fn every_act_is_recorded_with_who_what_and_why() {
    let office = Office::open().await;
    let member = office.hire(Role::Owner).await;
    let sold = product(office.tenant_id, 10).insert(&mut office.database.another_owner().await).await;
    let id = sold.described.id;
    let because = json!({ "intake": "paused", "reason": "moved to tomorrow" });
    let path = format!("/v1/admin/products/{id}/intake");
    assert_eq!(member.send(&office.admin, "PUT", &path, &because).await.status, 204);
    let nothing = format!("/v1/admin/products/{}/intake", Uuid::now_v7());
    assert_eq!(member.send(&office.admin, "PUT", &nothing, &because).await.refusal(), is(404, "not-found"));
    let blocks = format!("/v1/admin/products/{id}/blocks");
    assert_eq!(
        member.send(&office.admin, "POST", &blocks, &json!({ "numbers": [3], "reason": "jury" })).await.status,
        204
    );
    let log = async |query: &str| member.get(&office.admin, &format!("/v1/admin/audit{query}")).await.json();
    let all = log("").await;
    let [block, pause] = all["entries"].as_array().unwrap().as_slice() else { panic!("{all}") };
    assert_eq!((&block["action"], &block["detail"]), (&json!("block_numbers"), &json!({ "numbers": [3] })));
    for (member_of, value) in [
        ("action", json!("set_product_intake")),
        ("staff", json!(member.id)),
        ("subject", json!("product")),
        ("subject_id", json!(id)),
        ("detail", json!({ "intake": "paused" })),
        ("reason", json!("moved to tomorrow")),
    ] {
        assert_eq!(pause[member_of], value);
    }
    let first = log("?limit=1").await;
    let next = log(&format!("?limit=1&cursor={}", first["next_cursor"].as_str().unwrap())).await;
    assert_eq!((&first["entries"][0], &next["entries"][0], &next["next_cursor"]), (block, pause, &Value::Null));
    office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_rewrites_it() {
    let office = Office::open().await;
    let member = office.hire(Role::Owner).await;
    let pause = json!({ "intake": "paused", "reason": "x" });
    assert_eq!(member.send(&office.admin, "PUT", "/v1/admin/store/intake", &pause).await.status, 204);
    let app = office.database.app_client().await;
    for (sql, says) in [
        ("update audit_log set reason = 'y'", "append-only"),
        ("delete from audit_log", "append-only"),
        ("truncate audit_log", "append-only"),
    ] {
        let error = office.database.owner().execute(sql, &[]).await.unwrap_err();
        assert!(error.as_db_error().unwrap().message().contains(says), "{sql}: {error:?}");
        let error = app.execute(sql, &[]).await.unwrap_err();
        assert!(error.as_db_error().unwrap().message().contains("permission denied"), "{sql}: {error:?}");
    }
    assert_eq!(count(&office.database, "select count(*) from audit_log where reason = 'x'").await, 1);
    office.database.finish().await;
}
