//! Keys are rotated while people use what the old ones made: nobody gets a 401 for it.

use edge::Stage;
use edge::auth::{SigningKeys, TokenKeys};
use edge::login_keys::{DEVELOPMENT_KEYS, LoginKeys};
use login::Keys;
use serde_json::{Value, json};
use tests::http::{self, ISSUER, ask};
use tests::login::{Door, keys, request};
use tests::look::count;
use tests::rotation::{self, new_signing_key, old_signing_key, with_new_key};

use super::PHONE;

/// Keys as one deployment has them: those that are accepted, and those that sign.
fn deployed(accepted: &[Value], signing: &[Value]) -> Keys {
    let public = TokenKeys::from_jwks(&rotation::accepted(accepted), ISSUER, Stage::Local).unwrap();
    let signing = SigningKeys::from_json(&rotation::signing(signing), ISSUER, &public).unwrap();
    Keys { public, signing, ..keys() }
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_keys_are_rotated_without_a_401() {
    let door = Door::open().await;
    let (old, new) = (old_signing_key(), new_signing_key());
    let both = [old.clone(), new.clone()];
    let steps = [
        deployed(&both[..1], &both[..1]),
        deployed(&both, &both[..1]),
        deployed(&both, &[new.clone(), old.clone()]),
        deployed(&both[1..], &both[1..]),
    ];
    let session = door.log_in(PHONE).await;
    let (mut token, mut kids) = (session["refresh_token"].clone(), Vec::new());
    let refresh = async |keys: &Keys, token: &Value| {
        let bearer = format!("Bearer {}", token.as_str().unwrap());
        let headers = [("authorization", bearer.as_str())];
        let body = json!({ "device": session["device"] });
        let answer = door
            .another(keys.clone())
            .call(request("POST", "/v1/sessions/refresh", "192.0.2.1", &headers, &body))
            .await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    };
    // During a deployment two neighbouring steps run at once, and a token lives for minutes. The last step comes when
    // tokens of the old key have run out.
    for pair in steps[..3].windows(2) {
        for issuer in pair {
            let tokens = refresh(issuer, &token).await;
            token = tokens["refresh_token"].clone();
            let access = tokens["access_token"].as_str().unwrap();
            kids.push(jsonwebtoken::decode_header(access).unwrap().kid.unwrap());
            for reader in pair {
                let status = http::order_status_with(door.database.app(1), reader.public.clone());
                let read = ask("GET", "/v1/orders").header("authorization", format!("Bearer {access}"));
                assert_eq!(status.send(read, "").await.status, 200);
            }
        }
        let published = door.another(pair[1].clone()).get("/.well-known/jwks.json").await;
        assert_eq!(published.json()["keys"].as_array().unwrap().len(), 2);
    }
    assert_eq!(kids, ["development", "development", "development", "new"]);
    let last = refresh(&steps[3], &token).await;
    let status = http::order_status_with(door.database.app(1), steps[3].public.clone());
    let access = last["access_token"].as_str().unwrap();
    let read = ask("GET", "/v1/orders").header("authorization", format!("Bearer {access}"));
    assert_eq!(status.send(read, "").await.status, 200);
    door.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn login_keys_are_rotated_with_codes_and_sessions_under_way() {
    let door = Door::open().await;
    let session = door.log_in(PHONE).await;
    let asking = door.asking("+34600000002").await;
    door.send().await;
    let code = door.phones.code("+34600000002");
    let both = LoginKeys::from_json(&with_new_key(DEVELOPMENT_KEYS), Stage::Local).unwrap();
    assert_eq!(both.current_id(), "new");
    let api = door.another(Keys { login: both, ..keys() });
    let path = format!("/v1/stores/{}/sessions", door.store);
    let body = json!({ "asking_session": asking, "code": code });
    assert_eq!(api.call(request("POST", &path, "192.0.2.1", &[], &body)).await.status, 201, "the code was sent before");
    let mut token = session["refresh_token"].clone();
    for _ in 0..2 {
        let bearer = format!("Bearer {}", token.as_str().unwrap());
        let headers = [("authorization", bearer.as_str())];
        let body = json!({ "device": session["device"] });
        let answer = api.call(request("POST", "/v1/sessions/refresh", "192.0.2.1", &headers, &body)).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        token = answer.json()["refresh_token"].clone();
    }
    door.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_that_does_not_know_a_key_yet_leaves_the_code_to_others() {
    let door = Door::open().await;
    let both = LoginKeys::from_json(&with_new_key(DEVELOPMENT_KEYS), Stage::Local).unwrap();
    let api = door.another(Keys { login: both, ..keys() });
    let path = format!("/v1/stores/{}/login-codes", door.store);
    let asked = api.call(request("POST", &path, "192.0.2.1", &[], &json!({ "phone": PHONE }))).await;
    assert_eq!(asked.status, 202, "{}", asked.text());
    door.send().await;
    assert_eq!(door.phones.messages(), Vec::<(String, String)>::new());
    let free = "select count(*) from login_codes where sent = 0 and claimed_until is null";
    assert_eq!(count(&door.database, free).await, 1, "whoever knows the key need not wait for a claim to run out");
    door.database.finish().await;
}
