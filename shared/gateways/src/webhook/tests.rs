use http::{HeaderMap, HeaderValue};
use proptest::prelude::*;
use time::macros::datetime;

use super::*;
use crate::{MercadoPagoCredentials, StripeCredentials};

const NOW: OffsetDateTime = datetime!(2023-11-14 22:13:20 UTC);
const EVENT: &str = r#"{"id":"evt_1","type":"payment_intent.succeeded",
    "data":{"object":{"object":"payment_intent","id":"pi_1"}}}"#;
const NOTIFICATION: &str = r#"{"id":112233445566,"type":"payment","action":"payment.updated","data":{"id":"999"}}"#;

fn secret(text: &str) -> SecretString {
    SecretString::from(text)
}

fn stripe(secrets: &[&str]) -> Credentials {
    let webhook_secrets = secrets.iter().copied().map(secret).collect();
    Credentials::Stripe(StripeCredentials { secret_key: secret("sk_test"), webhook_secrets })
}

fn mercado_pago(secrets: &[&str]) -> Credentials {
    let webhook_secrets = secrets.iter().copied().map(secret).collect();
    Credentials::MercadoPago(MercadoPagoCredentials { access_token: secret("APP_USR"), webhook_secrets })
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_str(value).unwrap())).collect()
}

fn verify_stripe(account: &Credentials, header: &str, body: &[u8]) -> Result<WebhookEvent, WebhookError> {
    let headers = headers(&[("stripe-signature", header)]);
    verify(account, &WebhookRequest { headers: &headers, query: "", body, now: NOW })
}

fn verify_pago(header: &str, request_id: Option<&str>, query: &str) -> Result<WebhookEvent, WebhookError> {
    let mut pairs = vec![("x-signature", header)];
    pairs.extend(request_id.map(|id| ("x-request-id", id)));
    let headers = headers(&pairs);
    let request = WebhookRequest { headers: &headers, query, body: NOTIFICATION.as_bytes(), now: NOW };
    verify(&mercado_pago(&["other", "secret"]), &request)
}

/// Values computed with another implementation of HMAC.
#[test]
fn known_signatures() {
    let at = datetime!(2023-11-14 22:13:20 UTC);
    let stripe = sign_stripe(&secret("whsec_test_secret"), at, br#"{"id":"evt_1","object":"event"}"#);
    assert_eq!(stripe, "t=1700000000,v1=0c8670ed117751cc551a20e35839447075c42800ea3cf3e8a2fbda99cd1e6edd");
    let at = datetime!(2024-01-10 16:26:50 UTC);
    let pago = sign_mercado_pago(&secret("secret"), at, Some("123456"), Some("abc-def"));
    assert_eq!(pago, "ts=1704904010,v1=21040651c82c2f9a9d0d71003f8d25735fee6e907388844635abde6c7e5709ec");
}

#[test]
fn a_well_signed_event_is_read() {
    let header = sign_stripe(&secret("whsec_1"), NOW, EVENT.as_bytes());
    let event = verify_stripe(&stripe(&["whsec_2", "whsec_1"]), &header, EVENT.as_bytes()).unwrap();
    assert_eq!(event.event_id, "evt_1");
    assert_eq!(event.kind, "payment_intent.succeeded");
    assert_eq!(event.payment_id.as_deref(), Some("pi_1"));
    let other = verify_stripe(&stripe(&["whsec_2"]), &header, EVENT.as_bytes());
    assert_eq!(other, Err(WebhookError::BadSignature), "another store's secret");
}

#[test]
fn any_of_several_signatures_may_match() {
    let account = stripe(&["whsec_1"]);
    let good = sign_stripe(&secret("whsec_1"), NOW, EVENT.as_bytes());
    let (time, v1) = good.split_once(',').unwrap();
    let bad = format!("v1={}", "0".repeat(64));
    for header in [
        format!("{time},{bad},{v1}"),
        format!("{time},{v1},{bad}"),
        format!("{v1},{time}"),
        format!("{time}, v0=123, {v1}, scheme=x"),
        format!("{time},v1=,v1=zz,{v1}"),
    ] {
        assert!(verify_stripe(&account, &header, EVENT.as_bytes()).is_ok(), "{header}");
    }
    for header in [bad.clone(), format!("{time},{bad}"), v1.to_owned(), time.to_owned(), String::new()] {
        assert_eq!(verify_stripe(&account, &header, EVENT.as_bytes()), Err(WebhookError::BadSignature), "{header}");
    }
    let many = format!("{time}{},{v1}", format!(",{bad}").repeat(SIGNATURES_MAX));
    assert_eq!(verify_stripe(&account, &many, EVENT.as_bytes()), Err(WebhookError::BadSignature));
}

#[test]
fn every_flipped_bit_is_noticed() {
    let account = stripe(&["whsec_1"]);
    let header = sign_stripe(&secret("whsec_1"), NOW, EVENT.as_bytes());
    for position in 0..EVENT.len() * 8 {
        let mut body = EVENT.as_bytes().to_vec();
        body[position / 8] ^= 1 << (position % 8);
        assert_eq!(verify_stripe(&account, &header, &body), Err(WebhookError::BadSignature), "bit {position}");
    }
    let hex = header.rfind('=').unwrap() + 1;
    for position in hex..header.len() {
        let mut bytes = header.clone().into_bytes();
        bytes[position] = if bytes[position] == b'0' { b'1' } else { b'0' };
        let flipped = String::from_utf8(bytes).unwrap();
        assert_eq!(verify_stripe(&account, &flipped, EVENT.as_bytes()), Err(WebhookError::BadSignature), "{position}");
    }
}

#[test]
fn stale_times_are_refused_in_both_directions() {
    let account = stripe(&["whsec_1"]);
    for (seconds, expected) in [(-301, false), (-300, true), (300, true), (301, false)] {
        let header = sign_stripe(&secret("whsec_1"), NOW + Duration::seconds(seconds), EVENT.as_bytes());
        let result = verify_stripe(&account, &header, EVENT.as_bytes());
        assert_eq!(result.is_ok(), expected, "{seconds}");
        assert!(expected || result == Err(WebhookError::Stale));
    }
    let unsigned = format!("t=1,v1={}", "0".repeat(64));
    assert_eq!(verify_stripe(&account, &unsigned, EVENT.as_bytes()), Err(WebhookError::BadSignature));
}

#[test]
fn events_name_their_payment() {
    let account = stripe(&["whsec_1"]);
    let ask = |object: &str| {
        let body = format!(r#"{{"id":"evt_1","type":"a.b","data":{{"object":{object}}}}}"#);
        let header = sign_stripe(&secret("whsec_1"), NOW, body.as_bytes());
        verify_stripe(&account, &header, body.as_bytes()).map(|event| event.payment_id)
    };
    for (object, expected) in [
        (r#"{"object":"checkout.session","id":"cs_test_1","payment_intent":"pi_1"}"#, Some("cs_test_1")),
        (r#"{"object":"charge","id":"ch_1","payment_intent":"pi_1"}"#, Some("pi_1")),
        (r#"{"object":"refund","id":"re_1","payment_intent":{"id":"pi_1","amount":1}}"#, Some("pi_1")),
        (r#"{"object":"dispute","id":"du_1","payment_intent":"pi_1"}"#, Some("pi_1")),
        (r#"{"object":"charge","id":"ch_1","payment_intent":null}"#, None),
        (r#"{"object":"customer","id":"cus_1"}"#, None),
        (r#"{"object":"payment_intent","id":"../../refunds"}"#, None),
        ("{}", None),
    ] {
        assert_eq!(ask(object).unwrap().as_deref(), expected, "{object}");
    }
    assert_eq!(ask("[]"), Err(WebhookError::Unreadable));
}

#[test]
fn events_are_bounded() {
    let account = stripe(&["whsec_1"]);
    let ask = |body: &str| {
        let header = sign_stripe(&secret("whsec_1"), NOW, body.as_bytes());
        verify_stripe(&account, &header, body.as_bytes())
    };
    let event = |id: &str, kind: &str| format!(r#"{{"id":"{id}","type":"{kind}","data":{{"object":{{}}}}}}"#);
    assert!(ask(&event(&"x".repeat(255), &"x".repeat(100))).is_ok());
    for body in [event(&"x".repeat(256), "k"), event("", "k"), event("e", &"x".repeat(101)), event("\\u0000", "k")] {
        assert_eq!(ask(&body), Err(WebhookError::Unreadable));
    }
    assert!(ask(&format!("{EVENT}{}", " ".repeat(WEBHOOK_BYTES_MAX - EVENT.len()))).is_ok());
    assert_eq!(ask(&" ".repeat(WEBHOOK_BYTES_MAX + 1)), Err(WebhookError::Unreadable));
    assert_eq!(ask("not json"), Err(WebhookError::Unreadable));
}

#[test]
fn unsigned_requests_are_missing_a_signature() {
    let headers = HeaderMap::new();
    for account in [stripe(&["a"]), mercado_pago(&["a"]), Credentials::Manual] {
        let request = WebhookRequest { headers: &headers, query: "data.id=1", body: EVENT.as_bytes(), now: NOW };
        assert_eq!(verify(&account, &request), Err(WebhookError::Missing));
    }
}

#[test]
fn notifications_are_signed_over_the_query() {
    let header = sign_mercado_pago(&secret("secret"), NOW, Some("1234567890"), Some("req-1"));
    let event = verify_pago(&header, Some("req-1"), "data.id=1234567890&type=payment").unwrap();
    assert_eq!(event.event_id, "112233445566");
    assert_eq!(event.kind, "payment.updated");
    assert_eq!(event.payment_id.as_deref(), Some("1234567890"), "not the one of the unsigned body");
    for (request_id, query) in [
        (Some("req-2"), "data.id=1234567890"),
        (None, "data.id=1234567890"),
        (Some("req-1"), "data.id=1234567891"),
        (Some("req-1"), ""),
    ] {
        assert_eq!(verify_pago(&header, request_id, query), Err(WebhookError::BadSignature), "{request_id:?} {query}");
    }
}

#[test]
fn absent_pairs_are_left_out() {
    for (data_id, request_id) in [(None, Some("req-1")), (Some("1"), None), (None, None)] {
        let header = sign_mercado_pago(&secret("secret"), NOW, data_id, request_id);
        let query = data_id.map(|id| format!("type=payment&data.id={id}")).unwrap_or_default();
        let event = verify_pago(&header, request_id, &query).unwrap();
        assert_eq!(event.payment_id.as_deref(), data_id);
    }
    let header = sign_mercado_pago(&secret("secret"), NOW, None, None);
    assert!(verify_pago(&header, Some(" "), "data.id=").is_ok(), "empty is absent");
}

#[test]
fn ids_are_tried_as_received_and_in_lower_case() {
    for (signed, sent, is_valid) in [
        ("AbC-1", "AbC-1", true),
        ("abc-1", "AbC-1", true),
        ("AbC-1", "%41bC-1", true),
        ("AbC-1", "abc-1", false),
        ("ABC-1", "AbC-1", false),
    ] {
        let header = sign_mercado_pago(&secret("secret"), NOW, Some(signed), Some("req-1"));
        let result = verify_pago(&header, Some("req-1"), &format!("data.id={sent}"));
        assert_eq!(result.is_ok(), is_valid, "{signed} {sent}");
    }
}

#[test]
fn times_are_in_seconds_or_milliseconds() {
    let sign = |ts: i64| {
        let message = manifest_of("1", ts);
        format!("ts={ts},v1={}", signature(&secret("secret"), &[message.as_bytes()]))
    };
    let now = NOW.unix_timestamp();
    for (ts, expected) in [
        (now, Ok(())),
        (now * 1_000 + 999, Ok(())),
        ((now - 300) * 1_000, Ok(())),
        ((now - 301) * 1_000, Err(WebhookError::Stale)),
        (now - 301, Err(WebhookError::Stale)),
        (now * 1_000_000, Err(WebhookError::Stale)),
    ] {
        assert_eq!(verify_pago(&sign(ts), None, "data.id=1").map(|_| ()), expected, "{ts}");
    }
}

fn manifest_of(data_id: &str, ts: i64) -> String {
    format!("id:{data_id};ts:{ts};")
}

#[test]
fn other_topics_verify_and_name_no_payment() {
    let headers = headers(&[("x-signature", &sign_mercado_pago(&secret("secret"), NOW, Some("7"), None))]);
    let body = br#"{"id":"n-1","type":"plan"}"#;
    let request = WebhookRequest { headers: &headers, query: "data.id=7", body, now: NOW };
    let event = verify(&mercado_pago(&["secret"]), &request).unwrap();
    assert_eq!(event, WebhookEvent { event_id: "n-1".into(), kind: "plan".into(), payment_id: None });
}

proptest! {
    #[test]
    fn raw_bytes_never_panic(
        header in proptest::collection::vec(any::<u8>(), 0..200),
        query in ".{0,100}",
        body in proptest::collection::vec(any::<u8>(), 0..500),
    ) {
        let Ok(value) = HeaderValue::from_bytes(&header) else { return Ok(()) };
        let mut headers = HeaderMap::new();
        for name in ["stripe-signature", "x-signature", "x-request-id"] {
            headers.insert(name, value.clone());
        }
        let request = WebhookRequest { headers: &headers, query: &query, body: &body, now: NOW };
        prop_assert!(verify(&stripe(&["a"]), &request).is_err());
        prop_assert!(verify(&mercado_pago(&["a"]), &request).is_err());
    }

    #[test]
    fn well_signed_bytes_never_panic(
        body in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..500),
            (r#"[a-z\\u0]{0,9}|[0-9]{1,25}"#, r#"[\[\]{}a-z0-9":,]{0,60}"#).prop_map(|(id, object)| {
                format!(r#"{{"id":"{id}","type":"a","data":{{"object":{object}}}}}"#).into_bytes()
            }),
        ],
        query in "(data\\.id|type|%|=|&|payment|[a-zA-Z0-9%]){0,20}",
    ) {
        let signed = headers(&[("stripe-signature", &sign_stripe(&secret("a"), NOW, &body))]);
        let request = WebhookRequest { headers: &signed, query: &query, body: &body, now: NOW };
        let event = verify(&stripe(&["a"]), &request);
        prop_assert!(event.is_ok() || event == Err(WebhookError::Unreadable));
        let data_id = form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == "data.id");
        let data_id = data_id.map(|(_, id)| id.trim().to_owned()).filter(|id| !id.is_empty());
        let signature = sign_mercado_pago(&secret("a"), NOW, data_id.as_deref(), None);
        let signed = headers(&[("x-signature", &signature)]);
        let request = WebhookRequest { headers: &signed, query: &query, body: &body, now: NOW };
        let event = verify(&mercado_pago(&["a"]), &request);
        prop_assert!(event.is_ok() || event == Err(WebhookError::Unreadable));
    }
}
