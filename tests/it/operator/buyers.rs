//! What an operator does for a buyer who has lost a phone.

use serde_json::json;
use tests::login::Door;
use tests::look::count;

use super::Terminal;

const LOST: &str = "+34600000001";
const OTHER: &str = "+34600000002";

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_ends_the_sessions_of_a_lost_phone() {
    let door = Door::open().await;
    let terminal = Terminal { database_url: door.database.app_location(), variables: Vec::new() };
    let logout = ["buyer", "logout", "--store", &door.store, "--phone", LOST];
    let (code, text) = terminal.refused(&logout).await;
    assert!(code == 3 && text.contains("no buyer") && !text.contains(LOST), "{text}");
    let (first, second, other) = (door.log_in(LOST).await, door.log_in(LOST).await, door.log_in(OTHER).await);
    assert_eq!(terminal.done(&logout).await["ended"], json!(2));
    for session in [&first, &second] {
        assert_eq!(door.refresh(&session["refresh_token"], &session["device"]).await.status, 401);
    }
    assert_eq!(door.refresh(&other["refresh_token"], &other["device"]).await.status, 200, "somebody else goes on");
    assert_eq!(terminal.done(&logout).await["ended"], json!(0), "again, there is nothing to end");
    let lines = "select count(*) from audit_log where action = 'log_out_buyer' and staff_id is null";
    assert_eq!(count(&door.database, lines).await, 2);
    let again = door.log_in(LOST).await;
    assert_eq!(again["buyer"], first["buyer"], "the same buyer, with a new code");
    assert_eq!(door.refresh(&again["refresh_token"], &again["device"]).await.status, 200);
    door.database.finish().await;
}
