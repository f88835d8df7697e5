//! From the phone to an order, and out again.

use std::time::Duration;

use serde_json::json;
use tests::http::{self, Buyer, ask, is};
use tests::login::{Door, keys, request};
use tests::look::count;
use tests::seed;
use uuid::Uuid;

use super::PHONE;

#[tokio::test(flavor = "multi_thread")]
async fn a_person_logs_in_orders_and_logs_out() {
    let door = Door::open().await;
    let product = seed::product(door.tenant_id, 100).insert(&mut door.database.another_owner().await).await;
    let answer = door.ask(&json!({ "phone": PHONE })).await;
    assert_eq!((answer.status, answer.header("cache-control")), (202, "no-store"));
    assert_eq!(answer.json()["expires_in"], 300);
    let asking = &answer.json()["asking_session"];
    door.send().await;
    let [(phone, text)] = door.phones.messages().try_into().unwrap();
    assert_eq!(phone, PHONE);
    assert!(text.contains(" es tu clave para A store. "), "{text}");
    let answer = door.give(&json!({ "asking_session": asking, "code": door.phones.code(PHONE) })).await;
    assert_eq!((answer.status, answer.header("cache-control")), (201, "no-store"), "{}", answer.text());
    let session = answer.json();
    assert_eq!((&session["token_type"], &session["expires_in"]), (&json!("Bearer"), &json!(600)));

    let buyer = Buyer {
        id: session["buyer"].as_str().unwrap().parse().unwrap(),
        bearer: format!("Bearer {}", session["access_token"].as_str().unwrap()),
    };
    let orders = http::orders(door.database.app(1), door.queues.clone());
    let order = buyer.place(&orders, product.described.id, "first", r#"{"quantity":1}"#).await.accepted();
    let status = http::order_status(door.database.app(1));
    assert_eq!(buyer.read(&status, order).await.json()["id"], json!(order));

    let bearer = format!("Bearer {}", session["refresh_token"].as_str().unwrap());
    let out = async || {
        let request = ask("DELETE", "/v1/sessions").header("authorization", &bearer);
        door.api.send(request, "").await.status
    };
    assert_eq!((out().await, out().await), (204, 204), "whoever logs out twice is out");
    let refused = door.refresh(&session["refresh_token"], &session["device"]).await;
    assert_eq!(refused.refusal(), is(401, "unauthorized"));
    door.database.finish_under_way().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_is_one_buyer_per_store() {
    let door = Door::open().await;
    let first = door.log_in(PHONE).await;
    let again = door.log_in(PHONE).await;
    assert_eq!(first["buyer"], again["buyer"]);
    assert_ne!(first["refresh_token"], again["refresh_token"]);
    let other = door.log_in("+34600000002").await;
    assert_ne!(first["buyer"], other["buyer"]);
    let elsewhere = Uuid::now_v7();
    store::catalog::insert_store(door.database.owner(), elsewhere, "elsewhere", "Elsewhere").await.unwrap();
    let path = "/v1/stores/elsewhere/login-codes";
    let answer = door.api.call(request("POST", path, "192.0.2.1", &[], &json!({ "phone": PHONE }))).await;
    let asking = answer.json()["asking_session"].clone();
    door.send().await;
    let body = json!({ "asking_session": asking, "code": door.phones.code(PHONE) });
    assert_eq!(door.give(&body).await.refusal(), is(422, "code-wrong"), "an asking session belongs to its store");
    let answer = door.api.call(request("POST", "/v1/stores/elsewhere/sessions", "192.0.2.1", &[], &body)).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    assert_ne!(answer.json()["buyer"], first["buyer"]);
    assert_eq!(count(&door.database, "select count(*) from buyers").await, 3);
    door.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn known_and_unknown_phones_get_the_same_answer() {
    let door = Door::open().await;
    door.log_in(PHONE).await;
    let shape = async |phone: &str| {
        let answer = door.ask(&json!({ "phone": phone })).await;
        let mut body = answer.json();
        let id = body["asking_session"].take();
        assert_eq!(id.as_str().unwrap().parse::<Uuid>().unwrap().get_version_num(), 4, "it does not say when");
        let names: Vec<String> = answer.headers.keys().map(ToString::to_string).collect();
        (answer.status, body, names)
    };
    assert_eq!(shape(PHONE).await, shape("+34600000002").await);
    door.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_public_keys_are_for_everybody_and_cacheable() {
    let door = Door::open().await;
    let answer = door.api.get("/.well-known/jwks.json").await;
    assert_eq!((answer.status, answer.header("cache-control")), (200, "public, max-age=300"));
    let keys = answer.json();
    assert_eq!(keys["keys"].as_array().unwrap().len(), 1);
    assert_eq!((&keys["keys"][0]["kid"], &keys["keys"][0]["d"]), (&json!("development"), &json!(null)));
    let unchanged =
        door.api.send(ask("GET", "/.well-known/jwks.json").header("if-none-match", answer.header("etag")), "").await;
    assert_eq!(unchanged.status, 304);
    door.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_cannot_be_meant_are_refused() {
    let door = Door::open().await;
    for body in [
        json!({}),
        json!({ "phone": "600000001" }),
        json!({ "phone": "+34 600 000 001" }),
        json!({ "phone": 34_600_000_001_i64 }),
        json!({ "phone": PHONE, "language": "fr" }),
        json!({ "phone": PHONE, "asking_session": "x" }),
        json!({ "phone": PHONE, "more": 1 }),
    ] {
        assert_eq!(door.ask(&body).await.refusal(), is(422, "invalid"), "{body}");
    }
    for phone in ["+12025550123", "+882123456789", "+35312345678"] {
        assert_eq!(door.ask(&json!({ "phone": phone })).await.refusal(), is(422, "country-not-served"), "{phone}");
    }
    for code in ["", "12345", "1234567", "12345a", " 12345", "１２３４５６"] {
        let body = json!({ "asking_session": Uuid::now_v7(), "code": code });
        assert_eq!(door.give(&body).await.refusal(), is(422, "invalid"), "{code}");
    }
    for store in ["nowhere", "A%20store", "%00", "-".repeat(41).as_str()] {
        let path = format!("/v1/stores/{store}/login-codes");
        let answer = door.api.call(request("POST", &path, "192.0.2.1", &[], &json!({ "phone": PHONE }))).await;
        assert_eq!(answer.refusal(), is(404, "not-found"), "{store}");
        let path = format!("/v1/stores/{store}/sessions");
        let body = json!({ "asking_session": Uuid::now_v7(), "code": "000000" });
        let answer = door.api.call(request("POST", &path, "192.0.2.1", &[], &body)).await;
        assert_eq!(answer.refusal(), is(422, "code-wrong"), "{store}");
    }
    assert_eq!(count(&door.database, "select count(*) from login_codes").await, 0);
    assert_eq!(count(&door.database, "select count(*) from login_limits").await, 0);
    door.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_keeps_its_name_and_is_known_for_its_phone_only() {
    let door = Door::open().await;
    let session = door.log_in(PHONE).await;
    let keys = keys().login;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let device = |session: &serde_json::Value| keys.read_device(session["device"].as_str().unwrap(), now).unwrap();
    let asking = door.asking("+34600000002").await;
    door.send().await;
    let body =
        json!({ "asking_session": asking, "code": door.phones.code("+34600000002"), "device": session["device"] });
    let other = door.give(&body).await.json();
    assert_eq!(device(&session).id, device(&other).id, "one device, two buyers");
    let phone = domain::login::Phone::parse(PHONE).unwrap();
    assert!(keys.is_known(&device(&session), &door.store, &phone));
    assert!(!keys.is_known(&device(&other), &door.store, &phone));
    let ages = now + Duration::from_secs(401 * 24 * 3_600).as_secs();
    assert_eq!(keys.read_device(session["device"].as_str().unwrap(), ages), None);
    door.database.finish().await;
}
