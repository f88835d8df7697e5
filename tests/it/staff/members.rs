//! Who works for a store: invited, changed, removed, helped.

use std::time::Duration;

use domain::limits::{LOCK_TIMEOUT, STAFF_MAILS_PER_STORE, STAFF_PER_STORE_MAX};
use domain::roles::Role;
use futures::future::join_all;
use serde_json::json;
use tests::http::{ask, is};
use tests::look::count;
use tests::staff::{Office, now};
use uuid::Uuid;

use super::{OWNER, bearer, forget_steps, joined};

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_invites_and_only_the_last_link_is_good() {
    let office = Office::open().await;
    let owner = office.hire(Role::Owner).await;
    let body = json!({ "email": "New@example.org", "role": "support", "language": "es" });
    let invite = async |key: &str, body: &serde_json::Value| {
        owner.send_under(&office.api, key, "POST", "/v1/admin/staff", body).await
    };
    let answer = invite("first", &body).await;
    assert_eq!((answer.status, answer.is_replay()), (201, false), "{}", answer.text());
    let again = invite("first", &body).await;
    assert_eq!((again.status, again.is_replay(), again.json()), (201, true, answer.json()));
    assert_eq!(
        invite("first", &json!({ "email": "new@example.org", "role": "owner" })).await.refusal(),
        is(422, "key-reused")
    );
    assert_eq!(office.mailbox.mails().len(), 1, "a repeated request mails nothing");
    assert_eq!(office.mailbox.mails()[0]["subject"], "Invitación a A store");
    let old = office.mailbox.link("new@example.org");
    let second = invite("second", &json!({ "email": "new@example.org", "role": "finance" })).await;
    assert_eq!(second.json(), answer.json(), "the same person");
    assert_eq!(office.post("/v1/staff/enrolments", &json!({ "link": old })).await.refusal(), is(422, "link-wrong"));
    let link = office.mailbox.link("new@example.org");
    let secret = office.enrol(&link).await;
    let session = office.sign_in(&link, &secret.password(now())).await;
    assert_eq!(session.json()["role"], "finance");
    assert_eq!(invite("third", &body).await.refusal(), is(409, "staff-exists"));
    let listed = owner.get(&office.api, "/v1/admin/staff?limit=1").await.json();
    assert_eq!(listed["staff"].as_array().unwrap().len(), 1);
    let next = format!("/v1/admin/staff?cursor={}", listed["next_cursor"].as_str().unwrap());
    let rest = owner.get(&office.api, &next).await.json();
    assert_eq!((&rest["staff"][0]["email"], &rest["next_cursor"]), (&json!("new@example.org"), &json!(null)));
    assert!(rest["staff"][0]["joined_at"].is_string());
    office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_store_invites_nobody_new_but_somebody_again() {
    let office = Office::open().await;
    let owner = office.hire(Role::Owner).await;
    let invite = async |email: &str| {
        let body = json!({ "email": email, "role": "viewer" });
        owner.send(&office.api, "POST", "/v1/admin/staff", &body).await
    };
    assert_eq!(invite("late@example.org").await.status, 201);
    let others = "insert into staff (id, tenant_id, email, role)
        select gen_random_uuid(), $1, n::text || '@example.org', 'viewer' from generate_series(3, $2::int8) as n";
    office.database.owner().execute(others, &[&office.tenant_id, &STAFF_PER_STORE_MAX]).await.unwrap();
    assert_eq!(invite("new@example.org").await.refusal(), is(422, "limit-exceeded"));
    assert_eq!(invite("late@example.org").await.status, 201, "whose mail was lost");
    office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_mails_so_many_links_to_whom_it_likes() {
    let office = Office::open().await;
    let owner = office.hire(Role::Owner).await;
    let (_, session) = joined(&office, OWNER, Role::Viewer).await;
    let pot = tests::staff::keys().login.subject("staff-mail", &[&office.tenant_id.to_string()]);
    let all_but_one = STAFF_MAILS_PER_STORE.one_per.as_secs_f64() * f64::from(STAFF_MAILS_PER_STORE.messages - 1);
    let sql = "insert into login_limits (subject, full_until) values ($1, now() + make_interval(secs => $2))";
    office.database.owner().execute(sql, &[&pot, &all_but_one]).await.unwrap();
    let recoveries = format!("/v1/admin/staff/{}/recoveries", session["staff"].as_str().unwrap());
    assert_eq!(owner.send(&office.api, "POST", &recoveries, &json!({})).await.status, 202);
    let body = json!({ "email": "new@example.org", "role": "viewer" });
    for (path, body) in [("/v1/admin/staff", &body), (&*recoveries, &json!({}))] {
        let answer = owner.send(&office.api, "POST", path, body).await;
        assert_eq!(answer.refusal(), is(429, "too-many-requests"), "{path}");
        let most = STAFF_MAILS_PER_STORE.one_per.as_secs() + 1;
        assert!(answer.retry_after().is_some_and(|wait| (1..=most).contains(&wait)), "{path}");
    }
    assert_eq!(office.mailbox.mails().len(), 1);
    assert_eq!(count(&office.database, "select count(*) from staff where email like 'new@%'").await, 0);
    office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_holds_from_the_next_request_on() {
    let office = Office::open().await;
    let owner = office.hire(Role::Owner).await;
    let member = office.hire(Role::Viewer).await;
    let path = format!("/v1/admin/staff/{}", member.id);
    let look = async || member.get(&office.api, "/v1/admin/staff").await;
    assert_eq!(look().await.refusal(), is(403, "forbidden"));
    assert_eq!(owner.send(&office.api, "PATCH", &path, &json!({ "role": "owner" })).await.status, 204);
    assert_eq!(look().await.status, 200, "with the token that they had");
    assert_eq!(owner.send(&office.api, "PATCH", &path, &json!({ "role": "support" })).await.status, 204);
    assert_eq!(look().await.refusal(), is(403, "forbidden"));
    for role in ["buyer", "", "Owner"] {
        let answer = owner.send(&office.api, "PATCH", &path, &json!({ "role": role })).await;
        assert_eq!(answer.refusal(), is(422, "invalid"), "{role}");
    }
    assert_eq!(owner.send(&office.api, "DELETE", &path, &json!({})).await.status, 204);
    assert_eq!(look().await.refusal(), is(401, "unauthorized"));
    assert_eq!(owner.send(&office.api, "DELETE", &path, &json!({})).await.refusal(), is(404, "not-found"));
    assert_eq!(count(&office.database, "select count(*) from staff where removed_at is null").await, 1);
    office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_removed_is_out_with_everything() {
    let office = Office::open().await;
    let owner = office.hire(Role::Owner).await;
    let (secret, session) = joined(&office, OWNER, Role::Owner).await;
    forget_steps(&office).await;
    office.ask_link(OWNER).await;
    let link = office.mailbox.link(OWNER);
    let path = format!("/v1/admin/staff/{}", session["staff"].as_str().unwrap());
    assert_eq!(owner.send(&office.api, "DELETE", &path, &json!({})).await.status, 204);
    assert_eq!(office.sign_in(&link, &secret.password(now())).await.refusal(), is(422, "link-wrong"));
    assert_eq!(office.refresh(&session["refresh_token"], &session["device"]).await.refusal(), is(401, "unauthorized"));
    let mails = office.mailbox.mails().len();
    assert_eq!(office.ask_link(OWNER).await.status, 202);
    assert_eq!(office.mailbox.mails().len(), mails);
    // Invited anew they are somebody new.
    let (_, anew) = joined(&office, OWNER, Role::Viewer).await;
    assert_ne!(anew["staff"], session["staff"]);
    office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_keeps_an_owner() {
    let office = Office::open().await;
    let first = office.hire(Role::Owner).await;
    let own = format!("/v1/admin/staff/{}", first.id);
    assert_eq!(first.send(&office.api, "DELETE", &own, &json!({})).await.refusal(), is(409, "last-owner"));
    let demoted = first.send(&office.api, "PATCH", &own, &json!({ "role": "viewer" })).await;
    assert_eq!(demoted.refusal(), is(409, "last-owner"));
    for _ in 0..5 {
        let second = office.hire(Role::Owner).await;
        let other = format!("/v1/admin/staff/{}", second.id);
        let body = json!({ "role": "viewer" });
        let at_once = [first.send(&office.api, "PATCH", &other, &body), second.send(&office.api, "PATCH", &own, &body)];
        let statuses: Vec<u16> = join_all(at_once).await.iter().map(|answer| answer.status).collect();
        assert_eq!(statuses.iter().filter(|status| **status == 204).count(), 1, "{statuses:?}");
        let owners = "select count(*) from staff where role = 'owner' and removed_at is null";
        assert_eq!(count(&office.database, owners).await, 1);
        let sql = "update staff set role = case when id = $1 then 'owner' else 'viewer' end";
        office.database.owner().execute(sql, &[&first.id]).await.unwrap();
    }
    office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_lost_their_passwords_is_helped_by_an_owner() {
    let office = Office::open().await;
    let owner = office.hire(Role::Owner).await;
    let (lost, session) = joined(&office, OWNER, Role::Operator).await;
    let staff = session["staff"].as_str().unwrap();
    let path = format!("/v1/admin/staff/{staff}/recoveries");
    let answer = owner.send_under(&office.api, "r", "POST", &path, &json!({})).await;
    assert_eq!((answer.status, answer.is_replay()), (202, false), "{}", answer.text());
    assert!(owner.send_under(&office.api, "r", "POST", &path, &json!({})).await.is_replay());
    assert_eq!(office.mailbox.mails().len(), 1);
    let list = || ask("GET", "/v1/staff/sessions").header("authorization", bearer(&session));
    assert_eq!(office.api.send(list(), "").await.status, 200, "nothing has changed yet");
    let link = office.mailbox.link(OWNER);
    let found = office.enrol(&link).await;
    forget_steps(&office).await;
    assert_eq!(office.sign_in(&link, &lost.password(now())).await.refusal(), is(422, "code-wrong"));
    let anew = office.sign_in(&link, &found.password(now())).await;
    assert_eq!((anew.status, &anew.json()["role"]), (201, &json!("operator")));
    assert_eq!(office.api.send(list(), "").await.refusal(), is(401, "unauthorized"), "earlier sessions end");
    forget_steps(&office).await;
    office.ask_link(OWNER).await;
    let link = office.mailbox.link(OWNER);
    assert_eq!(office.sign_in(&link, &lost.password(now())).await.refusal(), is(422, "code-wrong"));
    assert_eq!(office.sign_in(&link, &found.password(now())).await.status, 201);
    let nobody = format!("/v1/admin/staff/{}/recoveries", Uuid::now_v7());
    assert_eq!(owner.send(&office.api, "POST", &nobody, &json!({})).await.refusal(), is(404, "not-found"));
    office.database.finish().await;
}

/// Somebody of the functions who waits for another's lock.
const WAITING: &str = "select count(*) from pg_stat_activity
    where datname = current_database() and usename = 'tirada_app' and wait_event_type = 'Lock'";

#[tokio::test(flavor = "multi_thread")]
async fn a_recovery_ends_the_session_that_began_beside_it() {
    let office = Office::open().await;
    let owner = office.hire(Role::Owner).await;
    let (_, session) = joined(&office, OWNER, Role::Operator).await;
    let staff = session["staff"].as_str().unwrap();
    let path = format!("/v1/admin/staff/{staff}/recoveries");
    assert_eq!(owner.send(&office.api, "POST", &path, &json!({})).await.status, 202);
    let link = office.mailbox.link(OWNER);
    let found = office.enrol(&link).await;
    forget_steps(&office).await;
    // Somebody with the old phone signs in: their step is taken and their session stands, but they have not committed.
    let mut thief = office.database.another_owner().await;
    let tx = thief.transaction().await.unwrap();
    let id: Uuid = staff.parse().unwrap();
    tx.execute("update staff set totp_step = 1 where id = $1", &[&id]).await.unwrap();
    let sql = "insert into staff_sessions (id, tenant_id, staff_id, device_id, expires_at, fresh_until)
        values ($1, $2, $3, $1, now() + interval '1 hour', now() + interval '10 minutes')";
    let stolen = Uuid::now_v7();
    tx.execute(sql, &[&stolen, &office.tenant_id, &id]).await.unwrap();
    let commit = async {
        let waits = async {
            while count(&office.database, WAITING).await == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(LOCK_TIMEOUT, waits).await.expect("the recovery waits");
        tx.commit().await.unwrap();
    };
    let password = found.password(now());
    let (anew, ()) = futures::join!(office.sign_in(&link, &password), commit);
    assert_eq!(anew.status, 201, "{}", anew.text());
    let theirs = tests::staff::bearer(office.tenant_id, id, stolen);
    let list = ask("GET", "/v1/staff/sessions").header("authorization", theirs);
    assert_eq!(office.api.send(list, "").await.refusal(), is(401, "unauthorized"), "all earlier sessions end");
    let living = "select count(*) from staff_sessions s join staff t on t.id = s.staff_id
        where t.email = 'owner@example.org' and s.ended_at is null";
    assert_eq!(count(&office.database, living).await, 1);
    office.database.finish().await;
}
