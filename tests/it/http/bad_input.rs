//! Requests that are broken, hostile or both: a problem with the right status, and nothing written.

use axum::body::Body;
use rand::RngExt;
use rand::rngs::StdRng;
use tests::http::{Answer, ask, is};
use tests::writes::Writes;
use tests::{look, randomness};

use super::Shop;

async fn post(shop: &Shop, body: impl Into<Body>) -> Answer {
    shop.buyer().place(&shop.orders, shop.product_id(), "k", body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies() {
    let shop = Shop::open().await;
    let writes = Writes::watch(&shop.database).await;
    let deep = |opening: &str, depth: usize| opening.repeat(depth);
    let many = |count: usize| format!(r#"{{"numbers":[{}]}}"#, vec!["1"; count].join(","));
    let bodies: Vec<(&str, Vec<u8>, u16, &str)> = vec![
        ("nothing", b"".into(), 400, "invalid"),
        ("cut off", br#"{"quantity":1"#.into(), 400, "invalid"),
        ("two documents", br#"{"quantity":1}{"quantity":1}"#.into(), 400, "invalid"),
        ("not JSON", b"quantity=1".into(), 400, "invalid"),
        ("not UTF-8", b"{\"fallback\":\"\xff\xfe\",\"quantity\":1}".into(), 400, "invalid"),
        ("UTF-16", "{\"quantity\":1}".encode_utf16().flat_map(u16::to_le_bytes).collect(), 400, "invalid"),
        ("a byte order mark", b"\xef\xbb\xbf{\"quantity\":1}".into(), 400, "invalid"),
        ("a comment", br#"{"quantity":1} // please"#.into(), 400, "invalid"),
        ("a trailing comma", br#"{"quantity":1,}"#.into(), 400, "invalid"),
        ("NaN", br#"{"quantity":NaN}"#.into(), 400, "invalid"),
        ("deep arrays", format!(r#"{{"numbers":{}"#, deep("[", 8_000)).into(), 422, "invalid"),
        ("deep objects", deep(r#"{"numbers":"#, 1_000).into(), 422, "invalid"),
        ("deep and unknown", format!(r#"{{"x":{}"#, deep("[", 8_000)).into(), 422, "invalid"),
        ("a key twice", br#"{"quantity":1,"quantity":1}"#.into(), 422, "invalid"),
        ("numbers twice", br#"{"numbers":[1],"numbers":[2]}"#.into(), 422, "invalid"),
        ("an array for an object", br#"[[1],2,"drop"]"#.into(), 422, "invalid"),
        ("a fallback that is no word", br#"{"fallback":{"replace":null},"quantity":1}"#.into(), 422, "invalid"),
        ("an unknown field", br#"{"quantity":1,"price":0}"#.into(), 422, "invalid"),
        ("an array", b"[1,2]".into(), 422, "invalid"),
        ("null", b"null".into(), 422, "invalid"),
        ("a null field", br#"{"numbers":null}"#.into(), 422, "invalid"),
        ("nothing asked", b"{}".into(), 422, "invalid"),
        ("zero asked", br#"{"numbers":[],"quantity":0}"#.into(), 422, "invalid"),
        ("less than nothing", br#"{"quantity":-1}"#.into(), 422, "invalid"),
        ("a negative number", br#"{"numbers":[-7]}"#.into(), 422, "invalid"),
        ("101 numbers", br#"{"quantity":101}"#.into(), 422, "invalid"),
        ("an overflowing sum", br#"{"numbers":[1],"quantity":2147483647}"#.into(), 422, "invalid"),
        ("too large for 32 bits", br#"{"numbers":[2147483648]}"#.into(), 422, "invalid"),
        ("a fraction", br#"{"quantity":1.5}"#.into(), 422, "invalid"),
        ("an exponent", br#"{"quantity":1e2}"#.into(), 422, "invalid"),
        ("infinite", br#"{"quantity":1e999}"#.into(), 400, "invalid"),
        ("text for a number", br#"{"quantity":"1"}"#.into(), 422, "invalid"),
        ("another fallback", br#"{"quantity":1,"fallback":"Reject"}"#.into(), 422, "invalid"),
        ("a number named twice", br#"{"numbers":[7,8,7]}"#.into(), 422, "invalid"),
        ("5,000 numbers", many(5_000).into(), 422, "invalid"),
        ("a million numbers", many(1_000_000).into(), 413, "too-large"),
        ("10 MB", format!(r#"{{"quantity":1}}{}"#, " ".repeat(10_000_000)).into(), 413, "too-large"),
    ];
    for (name, body, status, code) in bodies {
        assert_eq!(post(&shop, body).await.refusal(), is(status, code), "{name}");
    }
    let twice = post(&shop, r#"{"numbers":[7,8,7]}"#).await.json();
    assert_eq!(
        (&twice["errors"][0]["pointer"], &twice["errors"][0]["detail"]),
        (&"/numbers".into(), &"7 is named twice".into())
    );
    assert_eq!(writes.take().await, Vec::<Vec<String>>::new());
    shop.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_and_paths() {
    let shop = Shop::open().await;
    let writes = Writes::watch(&shop.database).await;
    let path = format!("/v1/products/{}/orders", shop.product_id());
    let good = || shop.buyer().ask("POST", &path).header("idempotency-key", "k");
    let body = r#"{"quantity":1}"#;
    for media_type in
        ["text/plain", "text/json", "application/x-www-form-urlencoded", "application/json; charset=utf-16"]
    {
        let answer = shop.orders.send(good().header("content-type", media_type), body).await;
        assert_eq!(answer.refusal(), is(415, "unsupported-media-type"), "{media_type}");
    }
    assert_eq!(shop.orders.send(good(), body).await.refusal(), is(415, "unsupported-media-type"));
    let json = || good().header("content-type", "application/json");
    for length in ["10485760", "4294967296"] {
        let answer = shop.orders.send(json().header("content-length", length), body).await;
        assert_eq!(answer.refusal(), is(413, "too-large"), "{length}");
    }
    let huge = "x".repeat(1_000_000);
    let long_key = shop.buyer().ask("POST", &path).header("content-type", "application/json");
    assert_eq!(shop.orders.send(long_key.header("idempotency-key", &huge), body).await.refusal(), is(400, "invalid"));
    let long_token = ask("POST", &path).header("authorization", format!("Bearer {huge}"));
    assert_eq!(shop.orders.send(long_token, body).await.refusal(), is(401, "unauthorized"));
    let opaque = shop.buyer().ask("POST", &path).header("content-type", "application/json");
    assert_eq!(
        shop.orders.send(opaque.header("idempotency-key", &b"\xff"[..]), body).await.refusal(),
        is(400, "invalid")
    );

    for path in
        ["/v1/products/7/orders", "/v1/products/%00/orders", "/v1/products/%ff/orders", "/v1/products//orders", "/"]
    {
        let request = shop.buyer().ask("POST", path).header("idempotency-key", "k");
        let answer = shop.orders.send(request.header("content-type", "application/json"), body).await;
        assert_eq!(answer.refusal(), is(404, "not-found"), "{path}");
    }
    for method in ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        assert_eq!(
            shop.orders.send(shop.buyer().ask(method, &path), "").await.refusal(),
            is(405, "method-not-allowed")
        );
    }
    assert_eq!(writes.take().await, Vec::<Vec<String>>::new());
    // A header that we do not read may be as large as the gateway lets it be.
    let unread = shop.orders.send(json().header("x-anything", &huge), body).await;
    unread.accepted();
    shop.finish().await;
}

/// A good body with a few bytes changed, removed, repeated or added.
fn mangled(rng: &mut StdRng) -> Vec<u8> {
    let mut body = br#"{"numbers":[7,77],"quantity":1,"fallback":"replace"}"#.to_vec();
    for _ in 0..rng.random_range(1..4) {
        let at = rng.random_range(0..body.len());
        match rng.random_range(0..8) {
            0 => body[at] = rng.random(),
            1 => _ = body.remove(at),
            2 => body.insert(at, *b"{}[]\",:0-9e\\ \0".get(rng.random_range(0..14)).unwrap()),
            3 => body.extend_from_within(at..),
            _ if body[at].is_ascii_digit() => body[at] = rng.random_range(b'0'..=b'9'),
            _ => {}
        }
    }
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn mangled_bodies_are_accepted_or_refused_and_never_a_fault() {
    let shop = Shop::open().await;
    let mut rng = randomness::stream(randomness::seed(), 0);
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..1_500 {
        let body = mangled(&mut rng);
        let answer = post(&shop, body.clone()).await;
        if answer.status == 202 {
            answer.accepted();
            accepted += 1;
        } else {
            let (status, code) = answer.refusal();
            assert!(matches!(status, 400 | 422), "{status} {code}: {}", String::from_utf8_lossy(&body));
            refused += 1;
        }
    }
    assert!(accepted > 10 && refused > 1_000, "{accepted} accepted, {refused} refused");
    assert_eq!(look::count(&shop.database, "select count(*) from orders").await, accepted);
    shop.finish().await;
}
