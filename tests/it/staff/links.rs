//! Asking for a link: what nobody learns by it, and what it may cost.

use std::time::{Duration, Instant};

use domain::limits::STAFF_LINK_ANSWER_AFTER;
use domain::roles::Role;
use futures::future::join_all;
use serde_json::json;
use tests::http::is;
use tests::leaks;
use tests::login::request;
use tests::look::count;
use tests::staff::Office;

use super::{OWNER, forget_steps, invited, joined};

#[tokio::test(flavor = "multi_thread")]
async fn known_and_unknown_addresses_get_the_same_answer() {
    let office = Office::open().await;
    joined(&office, OWNER, Role::Owner).await;
    invited(&office, "invited@example.org", Role::Viewer).await;
    let shape = async |store: &str, email: &str| {
        let began = Instant::now();
        let body = json!({ "email": email });
        let answer = office.post(&format!("/v1/stores/{store}/staff-links"), &body).await;
        let took = began.elapsed();
        assert!(
            (STAFF_LINK_ANSWER_AFTER..STAFF_LINK_ANSWER_AFTER + Duration::from_secs(5)).contains(&took),
            "{took:?}"
        );
        let names: Vec<String> = answer.headers.keys().map(ToString::to_string).collect();
        (answer.status, answer.body, names)
    };
    let known = shape(&office.store, OWNER).await;
    assert_eq!(known.0, 202);
    let unknown = [
        (&*office.store, "nobody@example.org"),
        (&*office.store, "invited@example.org"),
        ("nowhere", OWNER),
        ("%00", OWNER),
    ];
    for (store, email) in unknown {
        assert_eq!(shape(store, email).await, known, "{store} {email}");
    }
    assert_eq!(office.mailbox.mails().len(), 1, "only who has joined gets a link");
    assert_eq!(count(&office.database, "select count(*) from staff_links where purpose = 'sign-in'").await, 1);
    office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_and_a_client_get_so_many_links() {
    let office = Office::open().await;
    joined(&office, OWNER, Role::Owner).await;
    let answers = join_all((0..7).map(|_| office.ask_link(OWNER))).await;
    let refused: Vec<_> = answers.iter().filter(|answer| answer.status != 202).collect();
    assert_eq!(refused.len(), 2, "five are in the pot");
    for answer in refused {
        assert_eq!(answer.refusal(), is(429, "too-many-requests"));
        // They run at once: the pot may have been used at a moment that is later than this one's.
        assert!(answer.retry_after().is_some_and(|wait| (1..=601).contains(&wait)));
    }
    assert_eq!(office.mailbox.mails().len(), 5);
    // Another address's pot is its own, the client's is shared; a forwarding header changes nothing.
    let path = format!("/v1/stores/{}/staff-links", office.store);
    let from = |address: &'static str, n: usize| {
        let body = json!({ "email": format!("{n}@example.org") });
        let forged = format!("203.0.113.{n}");
        let request = request("POST", &path, address, &[("x-forwarded-for", &forged)], &body);
        office.api.call(request)
    };
    let many = join_all((0..30).map(|n| from("198.51.100.1", n))).await;
    assert_eq!(many.iter().filter(|answer| answer.status == 202).count(), 20);
    assert_eq!(from("198.51.100.2", 40).await.status, 202);
    office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mails_say_it_in_the_readers_language_and_rows_hold_no_link() {
    let office = Office::open().await;
    joined(&office, OWNER, Role::Owner).await;
    forget_steps(&office).await;
    let path = format!("/v1/stores/{}/staff-links", office.store);
    for (language, subject) in
        [("es", "Entrar en A store"), ("pt-BR", "Entrar em A store"), ("en", "Sign in to A store")]
    {
        let answer = office.post(&path, &json!({ "email": OWNER, "language": language })).await;
        assert_eq!(answer.status, 202);
        let mails = office.mailbox.mails();
        assert_eq!(mails.last().unwrap()["subject"], subject);
    }
    let hashes = count(&office.database, "select count(distinct hash) from staff_links").await;
    assert_eq!(hashes, 4);
    assert_eq!(leaks::in_rows(office.database.owner()).await, Vec::<String>::new());
    for body in [json!({}), json!({ "email": "x" }), json!({ "email": OWNER, "language": "fr" }), json!({ "email": 1 })]
    {
        assert_eq!(office.post(&path, &body).await.refusal(), is(422, "invalid"), "{body}");
    }
    office.database.finish().await;
}
