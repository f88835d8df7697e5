//! Refresh tokens are good once. A lost answer is given again, a stolen token ends the session.

use futures::future::join_all;
use serde_json::{Value, json};
use tests::http::{ask, is};
use tests::login::Door;
use tests::look::{change, count};

use super::PHONE;

#[tokio::test(flavor = "multi_thread")]
async fn each_token_leads_to_the_next() {
    let door = Door::open().await;
    let session = door.log_in(PHONE).await;
    let mut token = session["refresh_token"].clone();
    for _ in 0..5 {
        let answer = door.refresh(&token, &session["device"]).await;
        assert_eq!((answer.status, answer.header("cache-control")), (200, "no-store"), "{}", answer.text());
        assert_ne!(answer.json()["refresh_token"], token);
        assert_eq!(answer.json()["expires_in"], 600);
        token = answer.json()["refresh_token"].clone();
    }
    assert_eq!(count(&door.database, "select generation::int8 from sessions").await, 6);
    door.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_given_again_to_the_same_device() {
    let door = Door::open().await;
    let session = door.log_in(PHONE).await;
    let (token, device) = (&session["refresh_token"], &session["device"]);
    let answers = join_all((0..10).map(|_| door.refresh(token, device))).await;
    let successors: std::collections::BTreeSet<String> =
        answers.iter().map(|answer| answer.json()["refresh_token"].to_string()).collect();
    assert_eq!(successors.len(), 1, "two tabs get the same");
    change(&door.database, "update sessions set rotated_at = rotated_at - interval '25 s'", 1).await;
    let late = door.refresh(token, device).await;
    assert_eq!(late.json()["refresh_token"], answers[0].json()["refresh_token"]);
    assert_eq!(door.refresh(&late.json()["refresh_token"], device).await.status, 200);
    door.database.finish().await;
}

/// What a reuse is answered, and what the owner's newest token is worth afterwards.
async fn reuse(door: &Door, session: &Value, newest: &Value, device: &Value) {
    let refused = door.refresh(&session["refresh_token"], device).await;
    assert_eq!(refused.refusal(), is(401, "unauthorized"));
    assert_eq!(door.refresh(newest, &session["device"]).await.refusal(), is(401, "unauthorized"));
}

#[tokio::test(flavor = "multi_thread")]
async fn later_reuse_ends_the_session() {
    let door = Door::open().await;
    let other = door.log_in("+34600000002").await;
    for (case, (seconds, device)) in
        [(31, None), (0, Some(&other["device"])), (0, Some(&json!(null)))].iter().enumerate()
    {
        let session = door.log_in(&format!("+3460000020{case}")).await;
        let next = door.refresh(&session["refresh_token"], &session["device"]).await.json();
        let pass = format!(
            "update sessions set rotated_at = rotated_at - interval '{seconds} s'
            where ended_at is null and buyer_id = '{}'",
            session["buyer"].as_str().unwrap()
        );
        change(&door.database, &pass, 1).await;
        reuse(&door, &session, &next["refresh_token"], device.unwrap_or(&session["device"])).await;
    }
    // Two generations back is no lost answer, however young.
    let session = door.log_in("+34600000210").await;
    let next = door.refresh(&session["refresh_token"], &session["device"]).await.json();
    let newest = door.refresh(&next["refresh_token"], &session["device"]).await.json();
    reuse(&door, &session, &newest["refresh_token"], &session["device"]).await;
    assert_eq!(count(&door.database, "select count(*) from sessions where ended_by = 'reuse'").await, 4);
    assert_eq!(door.refresh(&other["refresh_token"], &other["device"]).await.status, 200, "nobody else's");
    door.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_end_when_they_are_idle_and_at_last_in_any_case() {
    let door = Door::open().await;
    let idle = door.log_in(PHONE).await;
    change(&door.database, "update sessions set expires_at = now()", 1).await;
    let refused = door.refresh(&idle["refresh_token"], &idle["device"]).await;
    assert_eq!(refused.refusal(), is(401, "unauthorized"));
    let old = door.log_in("+34600000002").await;
    let aged = "update sessions set created_at = created_at - interval '170 days' where expires_at > now()";
    change(&door.database, aged, 1).await;
    assert_eq!(door.refresh(&old["refresh_token"], &old["device"]).await.status, 200);
    let left = "select extract(epoch from max(expires_at) - now())::int8 / 3600 from sessions";
    assert!((238..=240).contains(&count(&door.database, left).await), "ten days");
    door.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_refresh_token_gets_the_same_401() {
    let door = Door::open().await;
    let session = door.log_in(PHONE).await;
    let text = |name: &str| session[name].as_str().unwrap().to_owned();
    let huge = format!("trr_{}", "0".repeat(1 << 20));
    let bad = [
        String::new(),
        "Bearer".into(),
        "Bearer ".into(),
        "Bearer trr_".into(),
        format!("Bearer {huge}"),
        format!("Bearer {}", text("access_token")),
        format!("Bearer {}", text("device")),
        format!("Bearer {}0", text("refresh_token")),
        format!("Bearer {}", &text("refresh_token")[..40]),
        format!("Basic {}", text("refresh_token")),
    ];
    for (method, path) in [("POST", "/v1/sessions/refresh"), ("DELETE", "/v1/sessions")] {
        for authorization in &bad {
            let request = ask(method, path).header("authorization", authorization);
            let answer = door.api.send(request.header("content-type", "application/json"), "{}").await;
            assert_eq!(
                answer.refusal(),
                is(401, "unauthorized"),
                "{method} {}",
                &authorization[..authorization.len().min(50)]
            );
        }
        let answer = door.api.send(ask(method, path).header("content-type", "application/json"), "{}").await;
        assert_eq!(answer.refusal(), is(401, "unauthorized"));
    }
    assert_eq!(door.refresh(&session["refresh_token"], &session["device"]).await.status, 200);
    door.database.finish().await;
}
