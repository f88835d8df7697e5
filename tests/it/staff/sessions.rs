//! Sessions: refreshed, listed, ended.

use domain::roles::Role;
use serde_json::{Value, json};
use tests::http::{ask, is};
use tests::staff::Office;
use uuid::Uuid;

use super::{OWNER, bearer, forget_steps, joined};

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_token_is_good_once_and_lost_answers_are_forgiven() {
    let office = Office::open().await;
    let (_, first) = joined(&office, OWNER, Role::Owner).await;
    let second = office.refresh(&first["refresh_token"], &first["device"]).await.json();
    assert_ne!(second["refresh_token"], first["refresh_token"]);
    let again = office.refresh(&first["refresh_token"], &first["device"]).await.json();
    assert_eq!(again["refresh_token"], second["refresh_token"], "the same device, a moment later");
    let third = office.refresh(&second["refresh_token"], &first["device"]).await;
    assert_eq!(third.status, 200);
    let stolen = office.refresh(&first["refresh_token"], &json!(Uuid::now_v7())).await;
    assert_eq!(stolen.refusal(), is(401, "unauthorized"));
    let ended = office.refresh(&third.json()["refresh_token"], &first["device"]).await;
    assert_eq!(ended.refusal(), is(401, "unauthorized"), "an old token ends the session");
    let list = ask("GET", "/v1/staff/sessions").header("authorization", bearer(&second));
    assert_eq!(office.api.send(list, "").await.refusal(), is(401, "unauthorized"), "access tokens included");
    office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_one_kind_refreshes_no_session_of_the_other() {
    let office = Office::open().await;
    let (_, session) = joined(&office, OWNER, Role::Owner).await;
    let keys = tests::staff::keys();
    let id: Uuid = session["session"].as_str().unwrap().parse().unwrap();
    let buyers = keys.login.refresh_token(edge::login_keys::Refresh { session_id: id, generation: 1 });
    assert_eq!(office.refresh(&json!(buyers), &session["device"]).await.refusal(), is(401, "unauthorized"));
    for bad in ["x", "trs_", "trs_00"] {
        assert_eq!(office.refresh(&json!(bad), &session["device"]).await.refusal(), is(401, "unauthorized"), "{bad}");
    }
    assert_eq!(office.refresh(&session["refresh_token"], &Value::Null).await.status, 200);
    office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_listed_and_ended_by_their_owner_only() {
    let office = Office::open().await;
    let (secret, first) = joined(&office, OWNER, Role::Owner).await;
    forget_steps(&office).await;
    office.ask_link(OWNER).await;
    let second = office.sign_in(&office.mailbox.link(OWNER), &secret.password(tests::staff::now())).await.json();
    let other = office.hire(Role::Owner).await;
    let list = async |session: &Value| {
        let request = ask("GET", "/v1/staff/sessions").header("authorization", bearer(session));
        office.api.send(request, "").await
    };
    let listed = list(&second).await.json();
    let ids: Vec<&Value> = listed["sessions"].as_array().unwrap().iter().map(|session| &session["id"]).collect();
    assert_eq!(ids, [&second["session"], &first["session"]], "newest first, and nobody else's");
    let path = format!("/v1/staff/sessions/{}", first["session"].as_str().unwrap());
    assert_eq!(other.send(&office.api, "DELETE", &path, &json!({})).await.refusal(), is(404, "not-found"));
    let end = ask("DELETE", &path).header("authorization", bearer(&second));
    assert_eq!(office.api.send(end, "").await.status, 204);
    assert_eq!(list(&first).await.refusal(), is(401, "unauthorized"));
    let out = format!("Bearer {}", second["refresh_token"].as_str().unwrap());
    for _ in 0..2 {
        let out = ask("DELETE", "/v1/staff/sessions").header("authorization", &out);
        assert_eq!(office.api.send(out, "").await.status, 204, "whoever signs out twice is out");
    }
    assert_eq!(list(&second).await.refusal(), is(401, "unauthorized"));
    office.database.finish().await;
}
