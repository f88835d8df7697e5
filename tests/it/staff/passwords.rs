//! One-time passwords: each is used once, and nobody guesses long.

use domain::limits::WRONG_PASSWORDS_PER_MEMBER;
use domain::roles::Role;
use edge::totp::TotpSecret;
use futures::future::join_all;
use serde_json::json;
use tests::http::{ask, is};
use tests::look::count;
use tests::staff::{Member, Office, now};
use uuid::Uuid;

use super::{OWNER, bearer, forget_steps, invited, joined};

const PROOFS: &str = "/v1/staff/sessions/proofs";

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
async fn passwords_of_one_member_are_wrong_so_often_whatever_they_come_with() {
    let office = Office::open().await;
    let (secret, session) = joined(&office, OWNER, Role::Owner).await;
    let other = office.hire(Role::Viewer).await;
    let noted =
        async || count(&office.database, "select count(*) from audit_log where action = 'wrong_passwords'").await;
    let proofs = "/v1/staff/sessions/proofs";
    let prove = async |bearer: &str, password: &str| {
        let request = ask("POST", proofs).header("authorization", bearer).header("content-type", "application/json");
        office.api.send(request, json!({ "one_time_password": password }).to_string()).await
    };
    let bearer = bearer(&session);
    let wrong = secret.password(now() + 3_600);
    let mut links = Vec::new();
    for _ in 0..3 {
        office.ask_link(OWNER).await;
        links.push(office.mailbox.link(OWNER));
    }
    // At once, with one link; then in a session, and with another link.
    let at_once = join_all((0..8).map(|_| office.sign_in(&links[0], &wrong))).await;
    assert_eq!(at_once.iter().filter(|answer| answer.refusal() == is(422, "code-wrong")).count(), 5);
    for _ in 0..3 {
        assert_eq!(prove(&bearer, &wrong).await.refusal(), is(422, "code-wrong"));
    }
    forget_steps(&office).await;
    assert_eq!(prove(&bearer, &secret.password(now())).await.status, 204, "the right one is not counted");
    assert_eq!(office.sign_in(&links[1], &wrong).await.refusal(), is(422, "code-wrong"));
    assert_eq!(noted().await, 0);
    assert_eq!(office.sign_in(&links[1], &wrong).await.refusal(), is(422, "code-wrong"), "the tenth");
    assert_eq!(noted().await, 1);

    forget_steps(&office).await;
    let right = secret.password(now());
    for _ in 0..8 {
        for limited in [office.sign_in(&links[2], &right).await, prove(&bearer, &right).await] {
            assert_eq!(limited.refusal(), is(429, "too-many-requests"));
            let most = WRONG_PASSWORDS_PER_MEMBER.one_per.as_secs() + 1;
            assert!(limited.retry_after().is_some_and(|wait| (1..=most).contains(&wait)), "{}", limited.text());
        }
    }
    assert_eq!(noted().await, 1, "once");
    let list = ask("GET", "/v1/staff/sessions").header("authorization", &bearer);
    assert_eq!(office.api.send(list, "").await.status, 200, "who is in stays in");
    assert_eq!(prove(&other.bearer, &other.secret.password(now())).await.status, 204, "others are not concerned");

    let pass = "update login_limits set full_until = full_until - interval '1 hour'";
    office.database.owner().execute(pass, &[]).await.unwrap();
    let back = office.sign_in(&links[2], &secret.password(now())).await;
    assert_eq!(back.status, 201, "no try of the link was used up meanwhile: {}", back.text());
    forget_steps(&office).await;
    assert_eq!(prove(&bearer, &secret.password(now())).await.status, 204, "and the right one left its place");
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
        member.send(&office.api, "POST", PROOFS, &body).await
    };
    assert_eq!(demote().await, is(403, "not-fresh"));
    let wrong = member.secret.password(now() + 3_600);
    for _ in 0..4 {
        assert_eq!(prove(wrong.clone()).await.refusal(), is(422, "code-wrong"));
    }
    let right = member.secret.password(now());
    assert_eq!(prove(right).await.status, 204);
    assert_eq!(demote().await, is(409, "last-owner"), "it is tried");
    for _ in 0..5 {
        assert_eq!(prove(wrong.clone()).await.refusal(), is(422, "code-wrong"));
    }
    forget_steps(&office).await;
    let late = prove(member.secret.password(now())).await;
    assert_eq!(late.refusal(), is(409, "too-many-attempts"), "five in a row");
    office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_repeats_a_proof_gets_the_same_answer_and_uses_nothing_up() {
    let office = Office::open().await;
    let member = office.hire(Role::Owner).await;
    let owner = office.database.owner();
    let elsewhere = another_session(&office, &member).await;
    let stale = "update staff_sessions set fresh_until = now() - interval '1 second'";
    owner.execute(stale, &[]).await.unwrap();
    let right = json!({ "one_time_password": member.secret.password(now()) });
    let at_once = join_all((0..7).map(|_| member.send(&office.api, "POST", PROOFS, &right))).await;
    assert!(at_once.iter().all(|answer| answer.status == 204), "more than there are tries");
    let fresh = "select count(*) from staff_sessions where fresh_until > now() and tries = 0";
    assert_eq!(count(&office.database, fresh).await, 1, "one session");
    let wrong = json!({ "one_time_password": member.secret.password(now() + 3_600) });
    assert_eq!(member.send(&office.api, "POST", PROOFS, &wrong).await.refusal(), is(422, "code-wrong"));
    owner.execute(stale, &[]).await.unwrap();
    assert_eq!(member.send(&office.api, "POST", PROOFS, &right).await.status, 204);
    let tried = "select count(*) from staff_sessions where fresh_until < now() and tries = 1";
    assert_eq!(count(&office.database, tried).await, 1, "it proves nothing anew, and no try is used up or given back");
    // Who has looked over their shoulder.
    for _ in 0..5 {
        assert_eq!(elsewhere.send(&office.api, "POST", PROOFS, &right).await.refusal(), is(422, "code-wrong"));
    }
    let late = elsewhere.send(&office.api, "POST", PROOFS, &right).await;
    assert_eq!(late.refusal(), is(409, "too-many-attempts"), "each has counted");
    office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_password_of_signing_in_is_a_repetition_in_that_session_only() {
    let office = Office::open().await;
    let link = invited(&office, OWNER, Role::Owner).await;
    let secret = office.enrol(&link).await;
    let password = secret.password(now());
    let session = office.sign_in(&link, &password).await.json();
    let id = |name: &str| -> Uuid { session[name].as_str().unwrap().parse().unwrap() };
    let (id, session_id, tenant_id) = (id("staff"), id("session"), office.tenant_id);
    let member = Member { id, tenant_id, session_id, bearer: tests::staff::bearer(tenant_id, id, session_id), secret };
    let elsewhere = another_session(&office, &member).await;
    let body = json!({ "one_time_password": password });
    for _ in 0..6 {
        assert_eq!(member.send(&office.api, "POST", PROOFS, &body).await.status, 204);
    }
    assert_eq!(elsewhere.send(&office.api, "POST", PROOFS, &body).await.refusal(), is(422, "code-wrong"));
    office.database.finish().await;
}

/// Another session of the same person.
async fn another_session(office: &Office, member: &Member) -> Member {
    let session_id = Uuid::now_v7();
    let sql = "insert into staff_sessions (id, tenant_id, staff_id, device_id, expires_at, fresh_until)
        values ($1, $2, $3, $4, now() + interval '1 hour', now())";
    let owner = office.database.owner();
    owner.execute(sql, &[&session_id, &member.tenant_id, &member.id, &Uuid::now_v7()]).await.unwrap();
    let secret = TotpSecret::from_bytes(member.secret.bytes().to_vec());
    let bearer = tests::staff::bearer(member.tenant_id, member.id, session_id);
    Member { id: member.id, tenant_id: member.tenant_id, session_id, bearer, secret }
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
