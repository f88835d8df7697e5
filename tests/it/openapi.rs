//! `openapi.json`: the documents of the API functions as one. `TIRADA_UPDATE=1` writes it again.

use serde_json::{Map, Value, json};
use tests::files;

const PATH: &str = "openapi.json";

/// The document of each HTTP function, as its code generates it.
pub(crate) fn documents() -> Vec<(&'static str, Value)> {
    let documents = [
        ("catalog", catalog::routes().into_openapi()),
        ("orders", orders::routes().into_openapi()),
        ("order-status", order_status::routes().into_openapi()),
        ("payments", payments::routes().into_openapi()),
        ("payment-webhook", payment_webhook::routes().into_openapi()),
        ("login", login::routes().into_openapi()),
        ("staff", staff::routes().into_openapi()),
        ("admin", admin::routes().into_openapi()),
    ];
    documents.into_iter().map(|(name, document)| (name, serde_json::to_value(document).unwrap())).collect()
}

/// All of the API.
pub(crate) fn whole() -> Value {
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    for (function, document) in documents() {
        for (path, operations) in document["paths"].as_object().unwrap() {
            let all = paths.entry(path).or_insert_with(|| json!({})).as_object_mut().unwrap();
            for (method, operation) in operations.as_object().unwrap() {
                assert!(all.insert(method.clone(), operation.clone()).is_none(), "{method} {path} twice");
            }
        }
        for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
            let before = schemas.insert(name.clone(), schema.clone());
            assert!(before.is_none_or(|before| before == *schema), "{function} has another {name}");
        }
    }
    paths.sort_keys();
    schemas.sort_keys();
    let mut whole = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tirada",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Sells numbered items of finite stock.",
            "description": DESCRIPTION,
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "tags": [
            { "name": "catalog", "description": "What the public may know. Cacheable, without a token." },
            { "name": "login", "description": "Logging in with a code on the phone. Nothing here takes an Idempotency-Key, and answers are never stored." },
            { "name": "orders", "description": "A buyer's orders." },
            { "name": "payments", "description": "Paying them, and what gateways tell us." },
            { "name": "staff", "description": "How a store's staff sign in: a link by mail and a one-time password. Nothing here takes an Idempotency-Key, and answers are never stored." },
            { "name": "admin", "description": "What staff do. Each role may do a part of it (`forbidden`); some of it wants a one-time password within ten minutes (`not-fresh`)." },
        ],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "buyer": { "type": "http", "scheme": "bearer", "bearerFormat": "JWT" },
                "refresh": { "type": "http", "scheme": "bearer", "bearerFormat": "refresh token" },
                "staff": { "type": "http", "scheme": "bearer", "bearerFormat": "JWT" },
                "staff-refresh": { "type": "http", "scheme": "bearer", "bearerFormat": "refresh token" },
            },
        },
    });
    name_problems(&mut whole);
    whole
}

const DESCRIPTION: &str = "Errors are problem documents (RFC 9457) with a stable `code`; the status says what to do \
    next. A description such as `sold-out, busy` lists the codes of a status. API Gateway's own 429 and 503 have no \
    such body, and the code of a 500 is `internal`. Every POST with which a buyer or staff change something takes an `Idempotency-Key`: \
    the same request under the same key is answered again and done once. Times are RFC 3339 in UTC; amounts are text in minor units.";

/// Refusals have the media type that they are sent with.
fn name_problems(value: &mut Value) {
    match value {
        Value::Object(members) => {
            let is_problem = |media: &Value| media.to_string().contains("#/components/schemas/Problem\"");
            if members.get("application/json").is_some_and(is_problem) {
                let media = members.remove("application/json").unwrap();
                members.insert("application/problem+json".into(), media);
            }
            members.values_mut().for_each(name_problems);
        }
        Value::Array(entries) => entries.iter_mut().for_each(name_problems),
        _ => {}
    }
}

/// Method and path of every operation.
pub(crate) fn operations(document: &Value) -> Vec<(String, String, &Value)> {
    let mut found = Vec::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            found.push((method.to_uppercase(), path.clone(), operation));
        }
    }
    found
}

#[test]
fn the_file_is_what_the_code_says() {
    let text = format!("{}\n", serde_json::to_string_pretty(&whole()).unwrap());
    if std::env::var("TIRADA_UPDATE").is_ok_and(|text| text == "1") {
        std::fs::write(files::root().join(PATH), &text).unwrap();
    }
    let checked_in = std::fs::read_to_string(files::root().join(PATH)).unwrap_or_default();
    let first = checked_in.lines().zip(text.lines()).position(|(old, new)| old != new).map(|line| line + 1);
    assert!(
        serde_json::from_str(&checked_in).ok() == Some(whole()),
        "{PATH} is older than the code (line {first:?}): TIRADA_UPDATE=1 cargo test -p tests --test it openapi"
    );
}

#[test]
fn every_operation_is_described() {
    let whole = whole();
    let mut ids = std::collections::HashSet::new();
    for (method, path, operation) in operations(&whole) {
        let name = format!("{method} {path}");
        let text = |pointer: &str| operation.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        assert!(ids.insert(text("/operationId").to_owned()) && !text("/operationId").is_empty(), "{name}");
        assert!(text("/summary").ends_with('.'), "{name} has no summary");
        assert!(matches!(text("/tags/0"), "catalog" | "login" | "orders" | "payments" | "staff" | "admin"), "{name}");
        let responses = operation["responses"].as_object().unwrap();
        assert!(responses.keys().any(|status| status.starts_with('2')), "{name}");
        for (status, response) in responses {
            let refused = status.starts_with(['4', '5']);
            assert_eq!(!response["content"]["application/problem+json"].is_null(), refused, "{name} {status}");
            for code in response["description"].as_str().unwrap().split(", ").filter(|_| refused) {
                let known = code == "unavailable" || domain::Reason::from_code(code).is_some();
                assert!(known, "{name} {status}: there is no code {code}");
            }
        }
        let needs_token = !operation["security"].is_null();
        assert_eq!(needs_token, responses.contains_key("401"), "{name}");
        let schemes: Vec<&String> = operation["security"]
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|one| one.as_object().unwrap().keys())
            .collect();
        assert_eq!(schemes, scheme(text("/tags/0"), text("/operationId")).as_slice(), "{name}");
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let has_key = parameters.clone().any(|parameter| parameter["name"] == "Idempotency-Key");
        // What only looks needs none.
        let acts = matches!(text("/tags/0"), "orders" | "payments" | "admin") && needs_token;
        let wants_key = acts && method == "POST" && text("/operationId") != "search_orders";
        assert_eq!(has_key, wants_key, "{name}");
        for parameter in path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')) {
            assert!(
                parameters.clone().any(|one| one["name"] == parameter && one["in"] == "path"),
                "{name} {parameter}"
            );
        }
    }
}

/// The token that an operation wants.
fn scheme(tag: &str, id: &str) -> Option<&'static str> {
    match (tag, id) {
        // Gateways sign what they send instead; links are for who has no token yet.
        (_, "receive_webhook" | "ask_staff_link" | "enrol_staff" | "sign_in_staff") => None,
        (_, "refresh_session" | "log_out") => Some("refresh"),
        (_, "refresh_staff_session" | "sign_out_staff") => Some("staff-refresh"),
        ("orders" | "payments", _) => Some("buyer"),
        ("staff" | "admin", _) => Some("staff"),
        _ => None,
    }
}

#[test]
fn every_reference_leads_somewhere_and_every_schema_is_used() {
    let whole = whole();
    let mut used = std::collections::BTreeSet::new();
    tests::template::objects(&whole, &mut |members| {
        if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(whole.pointer(pointer).is_some(), "{reference} leads nowhere");
            used.insert(pointer.rsplit('/').next().unwrap().to_owned());
        }
    });
    let schemas: std::collections::BTreeSet<_> =
        whole["components"]["schemas"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(schemas, used);
}
