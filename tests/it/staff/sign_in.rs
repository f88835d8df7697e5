//! From the invitation to a session, and in again.

use domain::roles::Role;
use futures::future::join_all;
use serde_json::json;
use tests::http::{ask, is};
use tests::look::count;
use tests::staff::{Office, now};

use super::{OWNER, bearer, forget_steps, invited, joined};

#[tokio::test(flavor = "multi_thread")]
async fn somebody_who_is_invited_joins_and_comes_back() {
    let office = Office::open().await;
    let link = invited(&office, OWNER, Role::Owner).await;
    let shown = office.post("/v1/staff/enrolments", &json!({ "link": link })).await;
    assert_eq!((shown.status, shown.header("cache-control")), (200, "no-store"));
    let shown = shown.json();
    assert_eq!((&shown["email"], &shown["store"]), (&json!(OWNER), &json!("A store")));
    let address = shown["address"].as_str().unwrap();
    assert!(address.starts_with("otpauth://totp/A%20store:owner%40example.org?secret="), "{address}");
    let again = office.post("/v1/staff/enrolments", &json!({ "link": link })).await.json();
    assert_eq!(again["secret"], shown["secret"], "a page that is loaded twice shows the same");
    let secret = office.enrol(&link).await;

    let answer = office.sign_in(&link, &secret.password(now())).await;
    assert_eq!((answer.status, answer.header("cache-control")), (201, "no-store"), "{}", answer.text());
    let session = answer.json();
    assert_eq!((&session["role"], &session["expires_in"]), (&json!("owner"), &json!(600)));
    let list = ask("GET", "/v1/staff/sessions").header("authorization", bearer(&session));
    let list = office.api.send(list, "").await.json();
    assert_eq!((&list["sessions"][0]["id"], &list["sessions"][0]["is_this"]), (&session["session"], &json!(true)));

    forget_steps(&office).await;
    let used = office.sign_in(&link, &secret.password(now())).await;
    assert_eq!(used.refusal(), is(422, "link-wrong"), "a link is good once");
    assert_eq!(office.post("/v1/staff/enrolments", &json!({ "link": link })).await.refusal(), is(422, "link-wrong"));
    assert_eq!(office.ask_link("Owner@Example.org").await.status, 202, "addresses have no case");
    let link = office.mailbox.link(OWNER);
    let second = office.sign_in(&link, &secret.password(now())).await;
    assert_eq!(second.status, 201, "{}", second.text());
    assert_eq!(second.json()["staff"], session["staff"]);
    let enrol = office.post("/v1/staff/enrolments", &json!({ "link": link })).await;
    assert_eq!(enrol.refusal(), is(422, "link-wrong"), "a link to sign in shows no secret");
    office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_alone_lets_nobody_in_and_neither_does_a_password() {
    let office = Office::open().await;
    let (secret, _) = joined(&office, OWNER, Role::Owner).await;
    forget_steps(&office).await;
    office.ask_link(OWNER).await;
    let link = office.mailbox.link(OWNER);
    let wrong = if secret.password(now()) == "000000" { "000001" } else { "000000" };
    assert_eq!(office.sign_in(&link, wrong).await.refusal(), is(422, "code-wrong"));
    let other = format!("{}{}", &link[..link.len() - 1], if link.ends_with('0') { '1' } else { '0' });
    assert_eq!(office.sign_in(&other, &secret.password(now())).await.refusal(), is(422, "link-wrong"));
    for bad in ["", "12345", "1234567", "12345a"] {
        assert_eq!(office.sign_in(&link, bad).await.refusal(), is(422, "invalid"), "{bad}");
    }
    // An invitation whose secret nobody was shown has no password.
    let unopened = invited(&office, "second@example.org", Role::Viewer).await;
    assert_eq!(office.sign_in(&unopened, "000000").await.refusal(), is(422, "code-wrong"));
    assert_eq!(count(&office.database, "select count(*) from staff_sessions").await, 1);
    office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_exchanges_at_once_give_one_session() {
    let office = Office::open().await;
    let link = invited(&office, OWNER, Role::Owner).await;
    let password = office.enrol(&link).await.password(now());
    let answers = join_all((0..20).map(|_| office.sign_in(&link, &password))).await;
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1, "{statuses:?}");
    assert!(statuses.iter().all(|status| matches!(status, 201 | 409 | 422 | 503)), "{statuses:?}");
    assert_eq!(count(&office.database, "select count(*) from staff_sessions").await, 1);
    office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn links_grow_old() {
    let office = Office::open().await;
    let (secret, _) = joined(&office, OWNER, Role::Owner).await;
    forget_steps(&office).await;
    office.ask_link(OWNER).await;
    let link = office.mailbox.link(OWNER);
    let mut owner = office.database.another_owner().await;
    tests::simulator::time::pass(&mut owner, std::time::Duration::from_secs(901)).await;
    assert_eq!(office.sign_in(&link, &secret.password(now())).await.refusal(), is(422, "link-wrong"));
    office.database.finish().await;
}
