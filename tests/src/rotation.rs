//! Keys that come after those of development, in the order in which a rotation puts them into place.

use edge::auth::development;
use serde_json::{Value, json};

/// The private key that signs tokens on developers' machines.
#[must_use]
pub fn old_signing_key() -> Value {
    let set: Value = serde_json::from_str(development::SIGNING_KEYS).expect("a set of keys");
    set["keys"][0].clone()
}

/// The one after it: the example of RFC 7517, appendix A.2.
#[must_use]
pub fn new_signing_key() -> Value {
    json!({
        "kid": "new", "kty": "EC", "crv": "P-256", "d": "870MB6gfuTJ4HtUnUvYMyJpr5eUZNP4Bk43bVdj3eAE",
        "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM",
    })
}

/// Keys that sign, as configuration has them. The first signs what is new.
#[must_use]
pub fn signing(keys: &[Value]) -> String {
    json!({ "keys": keys }).to_string()
}

/// Keys that tokens are checked with, as configuration has them: the public part of these.
#[must_use]
pub fn accepted(keys: &[Value]) -> String {
    let public = |key: &Value| json!({ "kid": key["kid"], "kty": "EC", "crv": "P-256", "x": key["x"], "y": key["y"] });
    json!({ "keys": keys.iter().map(public).collect::<Vec<_>>() }).to_string()
}

/// A set of symmetric keys with a new one in front.
#[must_use]
pub fn with_new_key(set: &str) -> String {
    let mut set: Value = serde_json::from_str(set).expect("a set of keys");
    let keys = set["keys"].as_array_mut().expect("a list of keys");
    keys.insert(0, json!({ "id": "new", "key": "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=" }));
    set.to_string()
}
