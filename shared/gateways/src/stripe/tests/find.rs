//! Finding a payment by our reference.

use std::time::Duration;

use domain::limits::{CLOCKS_DIFFER, KEY_KEPT_FOR};
use time::OffsetDateTime;
use time::macros::datetime;

use super::*;

/// A day and a half after this nobody sends the key any more, and no page can be paid on.
const LONG_AGO: OffsetDateTime = datetime!(2020-01-01 00:00:00 UTC);

fn lately() -> OffsetDateTime {
    OffsetDateTime::now_utc() - Duration::from_secs(600)
}

#[tokio::test]
async fn an_attempt_is_found_by_search_by_list_or_as_an_open_session() {
    for place in ["/v1/payment_intents/search?", "/v1/payment_intents?", "/v1/checkout/sessions?", "nowhere"] {
        let server = TestServer::start(move |_, request| {
            let found = request.line.contains(place);
            Reply::ok(match request.line.split_once("/v1/").unwrap().1 {
                line if line.starts_with("payment_intents/pi_1") => intent("requires_capture").to_string(),
                line if line.starts_with("checkout/sessions/cs_") => session("open", Value::Null).to_string(),
                line if line.starts_with("checkout") && found => {
                    json!({ "data": [session("open", Value::Null)] }).to_string()
                }
                _ if found => json!({ "data": [intent("requires_capture")] }).to_string(),
                _ => json!({ "data": [], "has_more": false }).to_string(),
            })
        });
        let server = server.await;
        let found = client(&server).find(ATTEMPT, lately()).await.unwrap();
        let expected = match place {
            "nowhere" => None,
            "/v1/checkout/sessions?" => Some("cs_test_1".to_owned()),
            _ => Some("pi_1".to_owned()),
        };
        assert_eq!(found.map(|observed| observed.payment_id), expected, "{place}");
    }
}

#[tokio::test]
async fn of_several_payments_for_an_attempt_the_paid_one_is_found() {
    let server =
        TestServer::start(|_, request| {
            let one = |id: &str, status: &str| {
                let mut intent = intent(status);
                intent["id"] = json!(id);
                intent
            };
            Reply::ok(match request.line.contains("/search?") {
            true => json!({ "data": [one("pi_3", "canceled"), one("pi_2", "succeeded"), one("pi_1", "processing")] }),
            false => one("pi_2", "requires_capture"),
        }
        .to_string())
        });
    let server = server.await;
    let found = client(&server).find(ATTEMPT, lately()).await.unwrap().unwrap();
    assert_eq!(found.payment_id, "pi_2");
    assert!(server.received()[1].line.contains("/v1/payment_intents/pi_2?"));
}

#[tokio::test]
async fn not_found_is_said_only_of_lists_that_were_read() {
    for status in [404, 500] {
        let server = TestServer::start(move |_, request| match request.line.contains("search") {
            true => Reply::ok(json!({ "data": [] }).to_string()),
            false => error(status, "invalid_request_error", "x"),
        });
        let failure = client(&server.await).find(ATTEMPT, lately()).await.unwrap_err();
        assert!(matches!(failure, Failure::Unknown(_)), "{failure:?}");
    }
}

#[tokio::test]
async fn of_a_big_sale_only_what_is_too_much_to_look_through_is_left_open() {
    let other = json!({ "id": "pi_2", "amount": 1, "currency": "brl", "status": "succeeded", "metadata": {} });
    let server = TestServer::start(move |_, request| {
        Reply::ok(match request.line.contains("search") {
            true => json!({ "data": [] }).to_string(),
            false => json!({ "data": [other], "has_more": true }).to_string(),
        })
    });
    let server = server.await;
    let failure = client(&server).find(ATTEMPT, lately()).await.unwrap_err();
    assert!(matches!(failure, Failure::TooMany), "{failure:?}");
    let asked = server.received().len();
    // Nothing can have been made of it since the search knows everything, and no page of it can still be open.
    assert_eq!(client(&server).find(ATTEMPT, LONG_AGO).await.unwrap(), None);
    assert_eq!(server.received().len(), asked + 1);
}

#[tokio::test]
async fn pages_that_are_too_many_are_read_once() {
    let other = json!({ "id": "pi_2", "amount": 1, "currency": "brl", "status": "succeeded", "metadata": {} });
    let server = TestServer::start(move |_, request| {
        let has_search = request.header("authorization") != Some("Bearer sk_test_old");
        match request.line.contains("search") {
            true if has_search => Reply::ok(json!({ "data": [] }).to_string()),
            true => error(400, "invalid_request_error", "x"),
            false => Reply::ok(json!({ "data": [other], "has_more": true }).to_string()),
        }
    });
    let server = server.await;
    let gateways = server.gateways();
    let reads = async |key: &str, since: OffsetDateTime| {
        let before = server.received().len();
        let failure = gateways.client(&credentials(key)).unwrap().find(ATTEMPT, since).await.unwrap_err();
        assert!(matches!(failure, Failure::TooMany), "{failure:?}");
        server.received().len() - before
    };
    let (began, later) = (lately(), lately() + Duration::from_secs(60));
    assert_eq!(reads("sk_test_1", began).await, 4, "the search and three pages");
    assert_eq!(reads("sk_test_1", began).await, 1, "the search");
    assert_eq!(reads("sk_test_1", began - Duration::from_secs(60)).await, 1);
    assert_eq!(reads("sk_test_1", later).await, 4, "a shorter list");
    assert_eq!(reads("sk_test_1", later).await, 1);
    assert_eq!(reads("sk_test_2", began).await, 4, "another account's");
    let key_is_over = OffsetDateTime::now_utc() - KEY_KEPT_FOR - CLOCKS_DIFFER;
    assert_eq!(reads("sk_test_1", key_is_over).await, 4, "nothing else can tell any more");
    assert_eq!([reads("sk_test_old", began).await, reads("sk_test_old", began).await], [4, 4], "nor without a search");
}
