//! Stores are opened, and where their login codes may be sent.

use serde_json::json;
use tests::http::is;
use tests::login::Door;
use tests::look::count;
use tests::staff::Office;

use super::Terminal;

#[tokio::test(flavor = "multi_thread")]
async fn a_store_is_opened_once_and_its_owner_comes_in() {
    let office = Office::open().await;
    let terminal = Terminal { database_url: office.database.app_location(), variables: Vec::new() };
    let open = ["store", "open", "--store", "gran-rifa-2027", "--name", "La Gran Rifa"];
    assert_eq!(terminal.done(&open).await, json!({ "store": "gran-rifa-2027", "name": "La Gran Rifa" }));
    let again = ["store", "open", "--store", "gran-rifa-2027", "--name", "Another"];
    let (code, text) = terminal.refused(&again).await;
    assert!(code == 3 && text.contains("there is a store"), "{text}");
    let rows = "select count(*) from tenants where slug = 'gran-rifa-2027' and name = 'La Gran Rifa'";
    assert_eq!(count(&office.database, rows).await, 1, "what is there stays as it is");
    let lines = "select count(*) from audit_log where action = 'open_store' and staff_id is null and subject = 'store'
        and subject_id = tenant_id";
    assert_eq!(count(&office.database, lines).await, 1);
    let long = "a".repeat(61);
    for (slug, name) in [
        ("Gran-Rifa", "A"),
        ("", "A"),
        ("rifa", ""),
        ("rifa", "A\nB"),
        ("rifa", "\u{200b}"),
        ("rifa", "see evil.example"),
        ("rifa", long.as_str()),
    ] {
        let (code, text) = terminal.refused(&["store", "open", "--store", slug, "--name", name]).await;
        assert!(code == 3 && text.contains("1 to "), "{slug:?} {name:?}: {text}");
    }
    let invite = ["staff", "invite", "--store", "gran-rifa-2027", "--email", "first@example.org", "--role", "owner"];
    assert!(terminal.done(&invite).await["link"].is_string());
    office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_serves_the_countries_that_it_names() {
    let door = Door::open().await;
    let terminal = Terminal { database_url: door.database.app_location(), variables: Vec::new() };
    let shown = terminal.done(&["store", "countries", "--store", &door.store]).await;
    assert_eq!(shown["serves"], json!(["34", "351", "55"]));
    let saved = terminal.done(&["store", "countries", "--store", &door.store, "--serve", "55,44,55"]).await;
    assert_eq!(saved["serves"], json!(["44", "55"]));
    let spanish = door.ask(&json!({ "phone": "+34600000001" })).await;
    assert_eq!(spanish.refusal(), is(422, "country-not-served"));
    assert_eq!(door.ask(&json!({ "phone": "+447700900001" })).await.status, 202);
    for bad in ["0", "4", "+44", "4420", "44,x"] {
        let (code, text) = terminal.refused(&["store", "countries", "--store", &door.store, "--serve", bad]).await;
        assert!(code == 3 && text.contains("is no country calling code"), "{bad}: {text}");
    }
    let (code, _) = terminal.refused(&["store", "countries", "--store", "nowhere"]).await;
    assert_eq!(code, 3);
    door.database.finish().await;
}
