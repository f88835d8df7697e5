//! Tokens that must not be believed: each gets a 401, and all look the same.

use std::time::{SystemTime, UNIX_EPOCH};

use edge::auth::development;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};
use tests::http::{self, Buyer, ISSUER, ask, is};
use tests::login::Door;
use uuid::Uuid;

use super::PHONE;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Base64url without padding.
fn base64url(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().enumerate().fold(0_usize, |bits, (n, byte)| bits | usize::from(*byte) << (16 - 8 * n));
        (0..=chunk.len()).for_each(|n| text.push(char::from(ALPHABET[bits >> (18 - 6 * n) & 63])));
    }
    text
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// A good token's claims with some replaced; `null` takes one out.
fn claims(buyer: &Value, tenant_id: Uuid, changes: &Value) -> Value {
    let mut all = json!({ "iss": ISSUER, "aud": "buyer", "sub": buyer, "tenant": tenant_id, "exp": now() + 60 });
    for (name, value) in changes.as_object().unwrap() {
        all[name] = value.clone();
        if value.is_null() {
            all.as_object_mut().unwrap().remove(name);
        }
    }
    all
}

#[test]
fn base64url_is_that_of_the_standard() {
    assert_eq!(base64url(b"{\"alg\":\"none\"}"), "eyJhbGciOiJub25lIn0");
    assert_eq!((base64url(b""), base64url(&[255]), base64url(&[251, 255])), (String::new(), "_w".into(), "-_8".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_bad_token_is_believed_and_all_refusals_look_the_same() {
    let door = Door::open().await;
    let session = door.log_in(PHONE).await;
    let buyer = &session["buyer"];
    let with = |changes: Value| claims(buyer, door.tenant_id, &changes);
    let signed = |changes: Value| development::sign(&development::header(), &with(changes)).unwrap();
    let under = |header: Header| development::sign(&header, &with(json!({}))).unwrap();
    let unsigned = |header: &str, signature: &str| {
        let payload = base64url(with(json!({})).to_string().as_bytes());
        format!("{}.{payload}.{signature}", base64url(header.as_bytes()))
    };
    let good = signed(json!({}));
    let signature = good.rsplit('.').next().unwrap();
    let symmetric = Header { kid: Some(development::KID.into()), ..Header::new(Algorithm::HS256) };
    let by_public = |key: &[u8]| encode(&symmetric, &with(json!({})), &EncodingKey::from_secret(key).unwrap()).unwrap();
    let point: Value = serde_json::from_str(development::JWKS).unwrap();
    let mut crit = development::header();
    crit.crit = Some(vec!["exp".into()]);
    let mut bad = vec![
        unsigned(r#"{"alg":"none","kid":"development"}"#, ""),
        unsigned(r#"{"alg":"none","kid":"development"}"#, signature),
        unsigned(r#"{"alg":"ES256","kid":"development"}"#, ""),
        unsigned(r#"{"alg":"ES256","kid":"development"}"#, &"A".repeat(86)),
        by_public(development::JWKS.as_bytes()),
        by_public(point["keys"][0]["x"].as_str().unwrap().as_bytes()),
        by_public(point.to_string().as_bytes()),
        under(Header { kid: Some("unknown".into()), ..development::header() }),
        under(Header { kid: Some(String::new()), ..development::header() }),
        under(Header { kid: None, ..development::header() }),
        under(crit),
        good[..good.len() / 2].to_owned(),
        good[..good.len() - 1].to_owned(),
        format!("{good}{}", "A".repeat(1 << 20)),
        "A".repeat(1 << 20),
        session["refresh_token"].as_str().unwrap().to_owned(),
        session["device"].as_str().unwrap().to_owned(),
    ];
    for changes in [
        json!({ "iss": "another" }),
        json!({ "aud": "staff" }),
        json!({ "aud": null }),
        json!({ "tenant": null }),
        json!({ "tenant": "x" }),
        json!({ "sub": "x" }),
        json!({ "exp": null }),
        json!({ "exp": (now() + 60).to_string() }),
        json!({ "exp": 1e10 + 0.5 }),
        json!({ "exp": u64::MAX }),
        json!({ "exp": now() - 60 }),
        json!({ "nbf": now() + 120 }),
    ] {
        bad.push(signed(changes));
    }
    let status = http::order_status(door.database.app(1));
    let read = async |token: &str| {
        let request = ask("GET", "/v1/orders").header("authorization", format!("Bearer {token}"));
        status.send(request, "").await
    };
    assert_eq!(read(&good).await.status, 200, "the battery stands on a good token");
    assert_eq!(read(session["access_token"].as_str().unwrap()).await.status, 200);
    let mut shapes = std::collections::BTreeSet::new();
    for token in &bad {
        let answer = read(token).await;
        assert_eq!(answer.refusal(), is(401, "unauthorized"), "{}", &token[..token.len().min(300)]);
        let mut problem = answer.json();
        problem.as_object_mut().unwrap().remove("instance");
        shapes.insert(problem.to_string());
    }
    assert_eq!(shapes.len(), 1, "{shapes:?}");
    door.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_another_store_finds_nothing_here() {
    let door = Door::open().await;
    let mut client = door.database.another_owner().await;
    let product = tests::seed::product(door.tenant_id, 100).insert(&mut client).await;
    let session = door.log_in(PHONE).await;
    let id: Uuid = session["buyer"].as_str().unwrap().parse().unwrap();
    let buyer = Buyer { id, bearer: format!("Bearer {}", session["access_token"].as_str().unwrap()) };
    let orders = http::orders(door.database.app(1), door.queues.clone());
    let order = buyer.place(&orders, product.described.id, "first", r#"{"quantity":1}"#).await.accepted();
    let other = tests::seed::store(door.database.owner()).await;
    let stranger = Buyer::with_id(other, id);
    let status = http::order_status(door.database.app(1));
    assert_eq!(stranger.read(&status, order).await.refusal(), is(404, "not-found"));
    let placed = stranger.place(&orders, product.described.id, "first", r#"{"quantity":1}"#).await;
    assert_eq!(placed.refusal(), is(404, "not-found"));
    door.database.finish_under_way().await;
}
