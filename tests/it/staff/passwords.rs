//! One-time passwords: each is used once, and nobody guesses long.

use domain::roles::Role;
use futures::future::join_all;
use serde_json::json;
use tests::http::is;
use tests::staff::{Office, now};

use super::{OWNER, forget_steps, invited, joined};

#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_good_once() {
    let office = Office::open().await;
    let link = invited(&office, OWNER, Role::Owner).await;
    let secret = office.enrol(&link).await;
    let (at, mut links) = (now(), Vec::new());
    assert_eq!(office.sign_in(&link, &secret.password(at)).await.status, 201);
    for _ in 0..2 {
        assert_eq!(office.ask_link(OWNER).await.status, 202);
        links.push(office.mailbox.link(OWNER));
    }
    assert_eq!(office.sign_in(&links[0], &secret.password(at)).await.refusal(), is(422, "code-wrong"), "used");
    assert_eq!(office.sign_in(&links[0], &secret.password(at - 30)).await.refusal(), is(422, "code-wrong"), "older");
    // A phone whose clock is a little ahead.
    let next = secret.password(at + 30);
    let both = join_all(links.iter().map(|link| office.sign_in(link, &next))).await;
    let mut statuses: Vec<u16> = both.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 422], "one password, two links, one session");
    office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_bears_five_tries() {
    let office = Office::open().await;
    let link = invited(&office, OWNER, Role::Owner).await;
    let secret = office.enrol(&link).await;
    let wrong = secret.password(now() + 3_600);
    for _ in 0..5 {
        assert_eq!(office.sign_in(&link, &wrong).await.refusal(), is(422, "code-wrong"));
    }
    let right = office.sign_in(&link, &secret.password(now())).await;
    assert_eq!(right.refusal(), is(409, "too-many-attempts"));
    office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_proves_again_is_fresh_and_who_guesses_is_not() {
    let office = Office::open().await;
    let member = office.hire(Role::Owner).await;
    let stale = "update staff_sessions set fresh_until = now() - interval '1 second'";
    office.database.owner().execute(stale, &[]).await.unwrap();
    let path = format!("/v1/admin/staff/{}", member.id);
    let demote = async || member.send(&office.api, "PATCH", &path, &json!({ "role": "viewer" })).await.refusal();
    let prove = async |password: String| {
        let body = json!({ "one_time_password": password });
        member.send(&office.api, "POST", "/v1/staff/sessions/proofs", &body).await
    };
    assert_eq!(demote().await, is(403, "not-fresh"));
    let wrong = member.secret.password(now() + 3_600);
    for _ in 0..4 {
        assert_eq!(prove(wrong.clone()).await.refusal(), is(422, "code-wrong"));
    }
    let right = member.secret.password(now());
    assert_eq!(prove(right.clone()).await.status, 204);
    assert_eq!(demote().await, is(409, "last-owner"), "it is tried");
    assert_eq!(prove(right).await.refusal(), is(422, "code-wrong"), "used");
    for _ in 0..4 {
        assert_eq!(prove(wrong.clone()).await.refusal(), is(422, "code-wrong"));
    }
    forget_steps(&office).await;
    let late = prove(member.secret.password(now())).await;
    assert_eq!(late.refusal(), is(409, "too-many-attempts"), "five in a row");
    office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_sealed_for_one_person() {
    let office = Office::open().await;
    let (secret, session) = joined(&office, OWNER, Role::Owner).await;
    let other = office.hire(Role::Viewer).await;
    let owner = office.database.owner();
    // Somebody who can write rows copies their own secret to the owner.
    let sql = "update staff set totp_step = 0, totp = (select totp from staff where id = $1) where email = $2";
    owner.execute(sql, &[&other.id, &OWNER]).await.unwrap();
    office.ask_link(OWNER).await;
    let link = office.mailbox.link(OWNER);
    let answer = office.sign_in(&link, &other.secret.password(now())).await;
    assert_eq!(answer.refusal(), is(500, "internal"), "it does not open");
    let rows = owner.query_one("select totp from staff where id = $1", &[&other.id]).await.unwrap();
    let sealed: Vec<u8> = rows.get(0);
    assert!(!sealed.windows(20).any(|part| part == other.secret.bytes()));
    assert!(session["access_token"].is_string() && secret.bytes() != other.secret.bytes());
    office.database.finish().await;
}
