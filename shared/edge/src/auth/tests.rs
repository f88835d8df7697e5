use std::time::Duration;

use jsonwebtoken::{EncodingKey, Header, encode, get_current_timestamp};
use serde_json::{Value, json};

use super::*;

const ISSUER: &str = "tirada";
const HOUR: Duration = Duration::from_secs(3_600);

fn keys() -> TokenKeys {
    TokenKeys::from_jwks(development::JWKS, ISSUER, Stage::Local).unwrap()
}

fn verify(token: &str) -> Result<Buyer, Reason> {
    keys().verify_buyer(Some(&format!("Bearer {token}")))
}

fn claims() -> Value {
    json!({
        "iss": ISSUER, "aud": "buyer", "sub": Uuid::from_u128(1), "tenant": Uuid::from_u128(2),
        "exp": get_current_timestamp() + 60,
    })
}

/// A token with some claims replaced; `null` takes one out.
fn with(changes: Value) -> String {
    let mut all = claims();
    for (name, value) in changes.as_object().unwrap() {
        all[name] = value.clone();
        if value.is_null() {
            all.as_object_mut().unwrap().remove(name);
        }
    }
    development::sign(&development::header(), &all).unwrap()
}

/// A token with a header of its own, signed by the development key over exactly these bytes.
fn with_header(header: &str) -> String {
    let template = with(json!({}));
    let payload = template.split('.').nth(1).unwrap();
    let message = format!("{}.{payload}", url_base64(header.as_bytes()));
    let key = EncodingKey::from_ec_der(&pem_der());
    let signature = jsonwebtoken::crypto::sign(message.as_bytes(), &key, Algorithm::ES256).unwrap();
    format!("{message}.{signature}")
}

fn pem_der() -> Vec<u8> {
    let body: String = development::SIGNING_KEY.lines().filter(|line| !line.starts_with("--")).collect();
    aws_smithy_types::base64::decode(body).unwrap()
}

fn url_base64(bytes: &[u8]) -> String {
    aws_smithy_types::base64::encode(bytes).replace('+', "-").replace('/', "_").trim_end_matches('=').to_owned()
}

#[test]
fn a_good_token_names_its_buyer() {
    let token = development::sign_buyer(Uuid::from_u128(2), Uuid::from_u128(1), ISSUER, HOUR).unwrap();
    let buyer = Buyer { buyer_id: Uuid::from_u128(1), tenant_id: Uuid::from_u128(2) };
    assert_eq!(verify(&token), Ok(buyer));
    assert_eq!(keys().verify_buyer(Some(&format!("bearer {token}"))), Ok(buyer));
    assert_eq!(verify(&with_header(r#"{"alg":"ES256","kid":"development"}"#)), Ok(buyer));
    assert_eq!(verify(&with(json!({"nbf": get_current_timestamp() + 10}))), Ok(buyer), "within the leeway");
    assert_eq!(verify(&with(json!({"exp": get_current_timestamp() - 10}))), Ok(buyer), "within the leeway");
    assert!(token.len() < 450, "{} bytes", token.len());
}

#[test]
fn claims_that_are_missing_wrong_or_of_another_type_are_refused() {
    let now = get_current_timestamp();
    let far = i64::MAX;
    for changes in [
        json!({"iss": null}),
        json!({"iss": "other"}),
        json!({"iss": ["tirada"]}),
        json!({"aud": null}),
        json!({"aud": "staff"}),
        json!({"aud": ["buyer"]}),
        json!({"sub": null}),
        json!({"sub": "joe"}),
        json!({"tenant": null}),
        json!({"tenant": 7}),
        json!({"exp": null}),
        json!({"exp": (now + 60).to_string()}),
        json!({"exp": 1e10 + 0.5}),
        json!({"exp": 1e300}),
        json!({"exp": u64::MAX}),
        json!({"exp": far}),
        json!({"exp": -1}),
        json!({"exp": 0}),
        json!({"exp": now - 31}),
        json!({"exp": now + 8 * 24 * 3_600}),
        json!({"nbf": now + 60}),
        json!({"nbf": "soon"}),
        json!({"nbf": u64::MAX}),
    ] {
        assert_eq!(verify(&with(changes.clone())), Err(Reason::Unauthorized), "{changes}");
    }
}

#[test]
fn headers_choose_nothing() {
    for header in [
        r#"{"alg":"none","kid":"development"}"#,
        r#"{"alg":"None","kid":"development"}"#,
        r#"{"alg":"ES384","kid":"development"}"#,
        r#"{"alg":"RS256","kid":"development"}"#,
        r#"{"kid":"development"}"#,
        r#"{"alg":"ES256"}"#,
        r#"{"alg":"ES256","kid":""}"#,
        r#"{"alg":"ES256","kid":"other"}"#,
        r#"{"alg":"ES256","kid":["development"]}"#,
        r#"{"alg":"ES256","kid":"development","kid":"development"}"#,
        r#"{"alg":"ES256","kid":"development","crit":["exp"]}"#,
        r#"{"alg":"ES256","kid":"development","crit":["b64"],"b64":true}"#,
        r#"{"alg":"ES256","kid":"development","crit":[]}"#,
        r#"{"alg":"ES256","kid":"development","crit":"x"}"#,
        r#"{"alg":"ES256","kid":"development","b64":false}"#,
        "null",
        "",
    ] {
        assert_eq!(verify(&with_header(header)), Err(Reason::Unauthorized), "{header}");
    }
}

#[test]
fn the_public_key_is_no_secret_to_sign_with() {
    let jwk: Value = serde_json::from_str(development::JWKS).unwrap();
    let point =
        DecodingKey::from_ec_components(jwk["keys"][0]["x"].as_str().unwrap(), jwk["keys"][0]["y"].as_str().unwrap())
            .unwrap();
    let header = Header { kid: Some(development::KID.into()), ..Header::new(Algorithm::HS256) };
    for secret in [point.try_get_as_bytes().unwrap(), development::JWKS.as_bytes()] {
        let token = encode(&header, &claims(), &EncodingKey::from_secret(secret).unwrap()).unwrap();
        assert_eq!(verify(&token), Err(Reason::Unauthorized));
    }
}

#[test]
fn mangled_tokens_are_refused_without_a_panic() {
    let good = with(json!({}));
    for end in 0..good.len() {
        assert_eq!(verify(&good[..end]), Err(Reason::Unauthorized), "cut at {end}");
    }
    let mut flipped = good.clone().into_bytes();
    let middle = good.rfind('.').unwrap() + 20;
    flipped[middle] = if flipped[middle] == b'A' { b'B' } else { b'A' };
    let unsigned = format!("{}.", good.rsplit_once('.').unwrap().0);
    let huge = format!("{good}{}", "A".repeat(1 << 20));
    for bad in ["", ".", "..", "...", "é.é.é", &unsigned, &huge, &String::from_utf8(flipped).unwrap()] {
        assert_eq!(verify(bad), Err(Reason::Unauthorized));
    }
    for header in [None, Some(""), Some("Bearer"), Some("Bearer "), Some("Basic abc"), Some(good.as_str())] {
        assert_eq!(keys().verify_buyer(header), Err(Reason::Unauthorized));
    }
    // How API Gateway joins a header sent twice.
    assert_eq!(keys().verify_buyer(Some(&format!("Bearer {good},Bearer {good}"))), Err(Reason::Unauthorized));
}

fn refused(keys: &Value, stage: Stage) -> String {
    TokenKeys::from_jwks(&json!({ "keys": keys }).to_string(), ISSUER, stage).unwrap_err().to_string()
}

#[test]
fn key_sets_are_read_strictly() {
    let good: Value = serde_json::from_str::<Value>(development::JWKS).unwrap()["keys"][0].clone();
    let changed = |name: &str, value: Value| {
        let mut jwk = good.clone();
        jwk[name] = value;
        jwk
    };
    assert!(refused(&json!([good, good]), Stage::Local).contains("twice"));
    assert!(refused(&json!([changed("d", json!("AAAA"))]), Stage::Local).contains("private"));
    for (name, value) in [("kty", "RSA"), ("crv", "P-384"), ("alg", "ES384"), ("use", "enc")] {
        assert!(refused(&json!([changed(name, json!(value))]), Stage::Local).contains("ES256"), "{name}");
    }
    assert!(refused(&json!([changed("x", json!("AAAA"))]), Stage::Local).contains("length"));
    assert!(refused(&json!([changed("x", json!("!"))]), Stage::Local).contains("unreadable"));
    assert!(refused(&json!([changed("kid", json!(""))]), Stage::Local).contains("needs a kid"));
    assert!(refused(&json!([{"kty": "EC"}]), Stage::Local).contains("TIRADA_TOKEN_KEYS"));
    let none = TokenKeys::from_jwks(r#"{"keys":[]}"#, ISSUER, Stage::Prod).unwrap();
    assert_eq!(none.verify_buyer(Some(&format!("Bearer {}", with(json!({}))))), Err(Reason::Unauthorized));
}

#[test]
fn the_development_key_is_recognised_under_any_name() {
    let mut jwk: Value = serde_json::from_str::<Value>(development::JWKS).unwrap()["keys"][0].clone();
    jwk["kid"] = json!("2026-11");
    for stage in [Stage::Dev, Stage::Staging, Stage::Prod] {
        assert!(refused(&json!([jwk]), stage).contains("development signing key"));
    }
    assert!(TokenKeys::from_jwks(&json!({ "keys": [jwk] }).to_string(), ISSUER, Stage::Local).is_ok());
}
