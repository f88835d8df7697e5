//! Mail by SES: what is asked of it, and what is said when it does not work.

use std::sync::{Arc, Mutex};

use domain::roles::Role;
use edge::{Config, Environment, Kind};
use serde_json::{Value, json};
use staff::Post;
use tests::http::{self, Api};
use tests::login::request;
use tests::server::{Reply, Request, Server};
use tests::staff::{Office, keys};

use super::{OWNER, joined};

/// Where SES would be.
fn environment(endpoint: String) -> Environment {
    Environment::from_lookup(move |name| {
        let value = match name {
            "TIRADA_STAGE" => "dev",
            "TIRADA_FUNCTION_TIMEOUT_MS" => "10000",
            "TIRADA_DATABASE_URL" => "postgres://x@127.0.0.1/x",
            "TIRADA_STAFF_URL" => "https://staff.example/sign-in",
            "TIRADA_MAIL_FROM" => "staff@example.org",
            "AWS_REGION" => "us-east-1",
            "AWS_ACCESS_KEY_ID" | "AWS_SECRET_ACCESS_KEY" => "test",
            "AWS_ENDPOINT_URL" => &endpoint,
            _ => return None,
        };
        Some(value.to_owned())
    })
}

/// An environment of `staff` that mails by a pretended SES.
fn api(office: &Office, ses: &Server) -> Api {
    let environment = environment(format!("http://{}", ses.address()));
    let config = Config::read(&environment, Kind::Http).unwrap();
    http::staff(office.database.app(1), keys(), Post::from_config(&config, &environment).unwrap())
}

async fn ask(api: &Api, office: &Office) -> u16 {
    let path = format!("/v1/stores/{}/staff-links", office.store);
    api.call(request("POST", &path, "192.0.2.1", &[], &json!({ "email": OWNER }))).await.status
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_leaves_as_one_plain_mail() {
    let office = Office::open().await;
    joined(&office, OWNER, Role::Owner).await;
    let seen: Arc<Mutex<Vec<Request>>> = Arc::default();
    let kept = Arc::clone(&seen);
    let ses = Server::start(move |request| {
        kept.lock().unwrap().push(request);
        async { Reply { status: 200, headers: Vec::new(), body: br#"{"MessageId":"1"}"#.to_vec() } }
    })
    .await;
    assert_eq!(ask(&api(&office, &ses), &office).await, 202);
    let [sent] = seen.lock().unwrap().clone().try_into().unwrap();
    assert_eq!((sent.method.as_str(), sent.path.as_str()), ("POST", "/v2/email/outbound-emails"));
    let body: Value = serde_json::from_slice(&sent.body).unwrap();
    assert_eq!(body["FromEmailAddress"], "staff@example.org");
    assert_eq!(body["Destination"], json!({ "ToAddresses": [OWNER] }));
    let simple = &body["Content"]["Simple"];
    assert_eq!(simple["Subject"]["Data"], "Sign in to A store");
    let text = simple["Body"]["Text"]["Data"].as_str().unwrap();
    assert!(text.contains("https://staff.example/sign-in#trl_"), "{text}");
    office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_does_not_work_is_not_seen_by_who_asks() {
    let office = Office::open().await;
    joined(&office, OWNER, Role::Owner).await;
    let refusing = Server::start(|_| async {
        let headers = vec![("x-amzn-errortype", "MessageRejected".to_owned())];
        Reply { status: 400, headers, body: br#"{"message":"no"}"#.to_vec() }
    })
    .await;
    assert_eq!(ask(&api(&office, &refusing), &office).await, 202);
    let silent = Server::start(|_| async {
        tokio::time::sleep(std::time::Duration::from_secs(30)).await;
        Reply::default()
    })
    .await;
    let began = std::time::Instant::now();
    assert_eq!(ask(&api(&office, &silent), &office).await, 202);
    assert!(began.elapsed() < std::time::Duration::from_secs(5), "nobody learns that there was somebody to mail to");
    office.database.finish().await;
}
