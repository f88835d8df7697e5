//! Tokens of staff that must not be believed: each gets a 401, and all look the same.

use domain::roles::Role;
use edge::auth::development;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};
use tests::http::{Buyer, ISSUER, ask, is};
use tests::staff::{Office, now};
use uuid::Uuid;

/// `{"alg":"none","kid":"development"}`
const UNSIGNED: &str = "eyJhbGciOiJub25lIiwia2lkIjoiZGV2ZWxvcG1lbnQifQ";

#[tokio::test(flavor = "multi_thread")]
async fn no_bad_token_is_believed_and_all_refusals_look_the_same() {
    let office = Office::open().await;
    let member = office.hire(Role::Owner).await;
    let with = |changes: Value| {
        let mut all = json!({
            "iss": format!("{ISSUER}/staff"), "aud": "staff", "sub": member.id, "tenant": member.tenant_id,
            "session": member.session_id, "exp": now() + 60,
        });
        for (name, value) in changes.as_object().unwrap() {
            all[name] = value.clone();
        }
        // Null takes one out.
        all.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        all
    };
    let signed = |changes: Value| development::sign(&development::header(), &with(changes)).unwrap();
    let under = |header: Header| development::sign(&header, &with(json!({}))).unwrap();
    let good = signed(json!({}));
    let [_, payload, signature] = good.split('.').collect::<Vec<_>>().try_into().unwrap();
    let symmetric = Header { kid: Some(development::KID.into()), ..Header::new(Algorithm::HS256) };
    let public = EncodingKey::from_secret(development::JWKS.as_bytes()).unwrap();
    let mut crit = development::header();
    crit.crit = Some(vec!["exp".into()]);
    let mut bad = vec![
        format!("{UNSIGNED}.{payload}."),
        format!("{UNSIGNED}.{payload}.{signature}"),
        encode(&symmetric, &with(json!({})), &public).unwrap(),
        under(Header { kid: Some("unknown".into()), ..development::header() }),
        under(Header { kid: None, ..development::header() }),
        under(crit),
        good[..good.len() - 1].to_owned(),
        format!("{good}{}", "A".repeat(1 << 20)),
        Buyer::with_id(member.tenant_id, member.id).bearer["Bearer ".len()..].to_owned(),
    ];
    for changes in [
        json!({ "iss": ISSUER }),
        json!({ "iss": "another/staff" }),
        json!({ "aud": "buyer" }),
        json!({ "aud": null }),
        json!({ "session": null }),
        json!({ "session": "x" }),
        json!({ "session": Uuid::now_v7() }),
        json!({ "sub": Uuid::now_v7() }),
        json!({ "tenant": Uuid::now_v7() }),
        json!({ "tenant": null }),
        json!({ "exp": null }),
        json!({ "exp": (now() + 60).to_string() }),
        json!({ "exp": u64::MAX }),
        json!({ "exp": now() - 60 }),
        json!({ "nbf": now() + 120 }),
    ] {
        bad.push(signed(changes));
    }
    let read = async |token: &str| {
        let request = ask("GET", "/v1/admin/products").header("authorization", format!("Bearer {token}"));
        office.admin.send(request, "").await
    };
    assert_eq!(read(&good).await.status, 200, "the battery stands on a good token");
    let mut shapes = std::collections::BTreeSet::new();
    for token in &bad {
        let answer = read(token).await;
        assert_eq!(answer.refusal(), is(401, "unauthorized"), "{}", &token[..token.len().min(300)]);
        let mut problem = answer.json();
        problem.as_object_mut().unwrap().remove("instance");
        shapes.insert(problem.to_string());
    }
    assert_eq!(shapes.len(), 1, "{shapes:?}");
    office.database.finish().await;
}
