//! Where a store's login codes may be sent.

use serde_json::json;
use tests::http::is;
use tests::login::Door;

use super::Terminal;

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
