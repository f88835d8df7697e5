//! How a store works, as its staff see and change it.

use domain::roles::Role;
use serde_json::json;
use tests::http::is;
use tests::look::{change, count};
use tests::seed;
use tests::staff::Office;

const PATH: &str = "/v1/admin/store";

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_changes_what_the_store_is_called_and_what_it_tells() {
    let office = Office::open().await;
    let elsewhere = seed::store(office.database.owner()).await;
    let (owner, viewer) = (office.hire(Role::Owner).await, office.hire(Role::Viewer).await);
    let shown = viewer.get(&office.admin, PATH).await.json();
    assert_eq!((&shown["store"], &shown["intake"]), (&json!(office.store), &json!("open")));
    assert_eq!(shown["notices"], json!(["reserved", "paid", "rejected", "expired", "refunded"]));
    assert_eq!(shown["countries"], json!(["34", "351", "55"]));
    let before = "select count(*) from tenants where name = 'La Gran Rifa'";
    assert_eq!(count(&office.database, before).await, 0);
    let named = owner.send(&office.admin, "PATCH", PATH, &json!({ "name": "La Gran Rifa" })).await.json();
    assert_eq!((&named["name"], &named["notices"]), (&json!("La Gran Rifa"), &shown["notices"]), "the rest stays");
    let tells = json!({ "notices": ["refunded", "paid"] });
    let told = owner.send(&office.admin, "PATCH", PATH, &tells).await.json();
    assert_eq!((&told["name"], &told["notices"]), (&json!("La Gran Rifa"), &json!(["paid", "refunded"])));
    let nothing = owner.send(&office.admin, "PATCH", PATH, &json!({ "notices": [] })).await.json();
    assert_eq!(nothing["notices"], json!([]));
    assert_eq!(viewer.get(&office.admin, PATH).await.json(), nothing);
    let theirs = "update tenants set notices = notices where id = $1 and name <> 'La Gran Rifa'
        and cardinality(notices) = 5";
    assert_eq!(office.database.owner().execute(theirs, &[&elsewhere]).await.unwrap(), 1, "another store's stays");
    let lines = "select count(*) from audit_log where action = 'edit_store' and detail is not null";
    assert_eq!(count(&office.database, lines).await, 3);
    office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_gets_another_name_only_by_who_has_just_proved_who_they_are() {
    let office = Office::open().await;
    let owner = office.hire(Role::Owner).await;
    let proof = async |until: &str| {
        let sql = format!("update staff_sessions set fresh_until = {until}");
        office.database.owner().execute(&sql, &[]).await.unwrap();
    };
    let rename = async |body: serde_json::Value| owner.send(&office.admin, "PATCH", PATH, &body).await;
    proof("now()").await;
    for body in [json!({ "name": "Another store" }), json!({ "name": "A Store", "notices": ["paid"] })] {
        assert_eq!(rename(body).await.refusal(), is(403, "not-fresh"));
    }
    let same = rename(json!({ "name": "A store", "notices": ["paid"] })).await;
    assert_eq!((same.status, &same.json()["notices"]), (200, &json!(["paid"])), "the name stays as it is");
    proof("now() + interval '1 minute'").await;
    assert_eq!(rename(json!({ "name": "Another store" })).await.json()["name"], "Another store");
    office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_changes_nothing() {
    let office = Office::open().await;
    let owner = office.hire(Role::Owner).await;
    change(&office.database, "update tenants set intake = 'paused', intake_reason = 'moved to tomorrow'", 1).await;
    let shown = owner.get(&office.admin, PATH).await.json();
    assert_eq!((&shown["intake"], &shown["intake_reason"]), (&json!("paused"), &json!("moved to tomorrow")));
    let long = "a".repeat(61);
    for body in [
        json!({ "name": "" }),
        json!({ "name": long }),
        json!({ "name": "two\nlines" }),
        json!({ "name": "nul\u{0}" }),
        json!({ "name": "  " }),
        json!({ "name": "\u{200b}" }),
        json!({ "name": "\u{202e}afiR" }),
        json!({ "name": "your bank: log in at evil.example" }),
        json!({ "name": "HTTPS://evil" }),
        json!({ "name": 7 }),
        json!({ "name": "A store", "notices": ["paid", "weather"] }),
        json!({ "name": "A store", "notices": ["paid", "refunded", "paid"] }),
        json!({ "name": "A store", "notices": ["reserved", "paid", "rejected", "expired", "refunded", "paid"] }),
        json!({ "name": "A store", "intake": "open" }),
        json!({ "name": "A store", "countries": ["34"] }),
        json!([]),
    ] {
        let refused = owner.send(&office.admin, "PATCH", PATH, &body).await;
        assert_eq!(refused.refusal(), is(422, "invalid"), "{body}");
    }
    assert_eq!(owner.get(&office.admin, PATH).await.json(), shown);
    assert_eq!(count(&office.database, "select count(*) from audit_log").await, 0);
    office.database.finish().await;
}
