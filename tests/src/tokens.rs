//! Tokens that must not be believed, made from the claims of good ones.

use edge::auth::development::{self, JWKS};
use hmac::{Hmac, KeyInit, Mac};
use jsonwebtoken::Header;
use serde_json::{Value, json};
use sha2::Sha256;
use uuid::Uuid;

use crate::staff::now;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const MEGABYTE: usize = 1 << 20;
const WEEK: i64 = 7 * 24 * 3_600;

/// A good token of these claims.
#[must_use]
pub fn signed(claims: &Value) -> String {
    development::sign(&development::header(), claims).expect("the development key signs")
}

/// Claims with some replaced; `null` takes one out.
#[must_use]
pub fn with(claims: &Value, changes: &Value) -> Value {
    let mut all = claims.as_object().expect("claims").clone();
    all.extend(changes.as_object().expect("changes").clone());
    all.retain(|_, value| !value.is_null());
    all.into()
}

/// Bad tokens of every kind, each with what is wrong with it. `claims` are those of a good one.
#[must_use]
pub fn forged(claims: &Value) -> Vec<(String, String)> {
    let mut all = badly_signed(claims);
    all.extend(badly_headed(claims));
    all.extend(badly_claimed(claims));
    all.extend(mangled(claims));
    all
}

/// Not signed at all, or with what everybody has.
fn badly_signed(claims: &Value) -> Vec<(String, String)> {
    let good = signed(claims);
    let (_, signature) = good.rsplit_once('.').expect("three parts");
    let zeros = "A".repeat(signature.len());
    let public: Value = serde_json::from_str(JWKS).expect("a set of keys");
    let (x, y) = (public["keys"][0]["x"].as_str().expect("x"), public["keys"][0]["y"].as_str().expect("y"));
    let mut all = Vec::new();
    for (algorithm, signature) in
        [("none", ""), ("none", signature), ("None", ""), ("NONE", ""), ("ES256", ""), ("ES256", zeros.as_str())]
    {
        let token = format!("{}.{signature}", unsigned(algorithm, claims));
        all.push((format!("{algorithm}, signature {signature:?}"), token));
    }
    let everybody =
        [("no key", ""), ("the set", JWKS), ("a coordinate", x), ("the other one", y), ("a name", "tirada")];
    for (name, key) in everybody {
        let text = unsigned("HS256", claims);
        let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).expect("a key of any length");
        mac.update(text.as_bytes());
        let tag: Vec<u8> = mac.finalize().into_bytes().iter().copied().collect();
        let token = format!("{text}.{}", base64url(&tag));
        all.push((format!("HS256 with {name}"), token));
    }
    all
}

/// Well signed under a header that names no key of ours, or wants what we do not know.
fn badly_headed(claims: &Value) -> Vec<(String, String)> {
    let kid = |kid: Option<&str>| Header { kid: kid.map(str::to_owned), ..development::header() };
    let critical = |name: &str| Header { crit: Some(vec![name.to_owned()]), ..development::header() };
    let headers = [
        ("an unknown key", kid(Some("unknown"))),
        ("a key without a name", kid(Some(""))),
        ("a key that is a path", kid(Some("../development"))),
        ("no key", kid(None)),
        ("an extension that must be understood", critical("unknown")),
        ("a claim that must be understood", critical("exp")),
    ];
    let token = |header: &Header| development::sign(header, claims).expect("the development key signs");
    headers.iter().map(|(what, header)| ((*what).to_owned(), token(header))).collect()
}

/// Well signed, with something in it that is wrong or missing.
fn badly_claimed(claims: &Value) -> Vec<(String, String)> {
    let changes = [
        json!({ "iss": null }),
        json!({ "iss": "another" }),
        json!({ "iss": [claims["iss"]] }),
        json!({ "aud": null }),
        json!({ "aud": "everybody" }),
        json!({ "aud": ["buyer", "staff"] }),
        json!({ "sub": null }),
        json!({ "sub": "somebody" }),
        json!({ "tenant": null }),
        json!({ "tenant": "a-store" }),
        json!({ "exp": null }),
        json!({ "exp": (now() + 60).to_string() }),
        json!({ "exp": 1e10 + 0.5 }),
        json!({ "exp": 1e300 }),
        json!({ "exp": u64::MAX }),
        json!({ "exp": i64::MAX }),
        json!({ "exp": -1 }),
        json!({ "exp": now() - 60 }),
        json!({ "exp": now() + WEEK + 3_600 }),
        json!({ "nbf": now() + 120 }),
        json!({ "nbf": u64::MAX }),
        json!({ "nbf": "soon" }),
    ];
    changes.iter().map(|changes| (changes.to_string(), signed(&with(claims, changes)))).collect()
}

/// Pieces of good tokens, and far too much.
fn mangled(claims: &Value) -> Vec<(String, String)> {
    let good = signed(claims);
    let [header, payload, signature] = good.split('.').collect::<Vec<_>>().try_into().expect("three parts");
    let other = signed(&with(claims, &json!({ "sub": Uuid::now_v7() })));
    let other = other.split('.').nth(1).expect("claims");
    let all = [
        ("half of a token", good[..good.len() / 2].to_owned()),
        ("one character less", good[..good.len() - 1].to_owned()),
        ("no claims", format!("{header}..{signature}")),
        ("two parts", format!("{header}.{payload}")),
        ("four parts", format!("{good}.{signature}")),
        ("another's claims", format!("{header}.{other}.{signature}")),
        ("a megabyte behind it", format!("{good}{}", "A".repeat(MEGABYTE))),
        ("a megabyte of nothing", "A".repeat(MEGABYTE)),
    ];
    all.map(|(what, token)| (what.to_owned(), token)).into()
}

/// The first two parts of a token.
fn unsigned(algorithm: &str, claims: &Value) -> String {
    let header = json!({ "alg": algorithm, "kid": development::KID }).to_string();
    format!("{}.{}", base64url(header.as_bytes()), base64url(claims.to_string().as_bytes()))
}

/// Base64url without padding.
fn base64url(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().enumerate().fold(0_usize, |bits, (n, byte)| bits | usize::from(*byte) << (16 - 8 * n));
        (0..=chunk.len()).for_each(|n| text.push(char::from(ALPHABET[bits >> (18 - 6 * n) & 63])));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64url_is_that_of_the_standard() {
        assert_eq!(base64url(b"{\"alg\":\"none\"}"), "eyJhbGciOiJub25lIn0");
        assert_eq!(
            (base64url(b""), base64url(&[255]), base64url(&[251, 255])),
            (String::new(), "_w".into(), "-_8".into())
        );
    }
}
