//! The way in, as a person with a phone goes it: the login function, the worker that sends codes, and pretended phones.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use domain::messages::Queue;
use edge::auth::{SigningKeys, TokenKeys, development};
use edge::http::OriginSecret;
use edge::login_keys::{DEVELOPMENT_KEYS, LoginKeys};
use edge::queue::MessageQueue;
use edge::{Deadline, Environment, Stage};
use login::Keys;
use send_login_code::Sender;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::http::{self, Answer, Api, ISSUER};
use crate::queue::{Queues, Settings, drain};
use crate::{TestDatabase, randomness};

/// What the CDN of these tests proves itself with.
pub const ORIGIN_SECRET: &str = "the-secret-of-the-cdn-of-the-tests";
/// Where requests come from unless they say otherwise.
pub const HOME: &str = "192.0.2.1";

/// The development keys.
#[must_use]
pub fn keys() -> Keys {
    let public = TokenKeys::from_jwks(development::JWKS, ISSUER, Stage::Local).unwrap();
    let origin = Environment::from_lookup(|name| (name == "TIRADA_ORIGIN_SECRET").then(|| ORIGIN_SECRET.to_owned()));
    Keys {
        signing: SigningKeys::from_json(development::SIGNING_KEYS, ISSUER, &public).unwrap(),
        public,
        login: LoginKeys::from_json(DEVELOPMENT_KEYS, Stage::Local).unwrap(),
        origin: OriginSecret::from_environment(&origin).unwrap(),
    }
}

/// Phones that show what they got.
pub struct Phones {
    path: PathBuf,
    /// Whether the messages end with this.
    is_own: bool,
}

impl Default for Phones {
    fn default() -> Self {
        let path = std::env::temp_dir().join(format!("tirada-phones-{}.jsonl", Uuid::now_v7().simple()));
        Self { path, is_own: true }
    }
}

impl Phones {
    /// Those of functions that run as processes over a database.
    #[must_use]
    pub fn of(database: &TestDatabase) -> Self {
        let name = database.app_config().get_dbname().expect("a name").to_owned();
        Self { path: std::env::temp_dir().join(format!("{name}-phones.jsonl")), is_own: true }
    }

    /// Those of functions that somebody else runs.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), is_own: false }
    }

    /// Where they are.
    #[must_use]
    pub fn path(&self) -> String {
        self.path.display().to_string()
    }

    /// Who sends to them.
    #[must_use]
    pub fn sender(&self) -> Sender {
        Sender::local(&self.path)
    }

    /// Phone and text of every message, oldest first.
    #[must_use]
    pub fn messages(&self) -> Vec<(String, String)> {
        let text = std::fs::read_to_string(&self.path).unwrap_or_default();
        let member = |line: &Value, name: &str| line[name].as_str().unwrap().to_owned();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.map(|line| (member(&line, "phone"), member(&line, "text"))).collect()
    }

    /// The code in the last message to a phone.
    #[must_use]
    pub fn code(&self, phone: &str) -> String {
        let last = self.messages().into_iter().rfind(|(to, _)| to == phone);
        last.unwrap_or_else(|| panic!("{phone} got nothing")).1[..6].to_owned()
    }
}

impl Drop for Phones {
    fn drop(&mut self) {
        if self.is_own {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// A store where people log in.
pub struct Door {
    /// Its database.
    pub database: TestDatabase,
    /// Its queues.
    pub queues: Arc<Queues>,
    /// Its buyers' phones.
    pub phones: Phones,
    /// An environment of the login.
    pub api: Api,
    /// The store's slug.
    pub store: String,
    /// The store.
    pub tenant_id: Uuid,
    keys: Keys,
}

impl Door {
    /// A store that serves Spain, Portugal and Brazil.
    pub async fn open() -> Self {
        let database = TestDatabase::new().await;
        let queues = Arc::new(Queues::new(Settings::default(), randomness::seed()));
        let tenant_id = crate::seed::store(database.owner()).await;
        let sql = "select slug from tenants where id = $1";
        let store = database.owner().query_one(sql, &[&tenant_id]).await.unwrap().get(0);
        let keys = keys();
        let api = http::login(database.app(8), keys.clone(), queues.clone());
        Self { database, queues, phones: Phones::default(), api, store, tenant_id, keys }
    }

    /// Another environment of the login, with other keys.
    #[must_use]
    pub fn another(&self, keys: Keys) -> Api {
        http::login(self.database.app(2), keys, self.queues.clone())
    }

    /// Asks for a code from an address, with more headers.
    pub async fn ask_from(&self, address: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        let path = format!("/v1/stores/{}/login-codes", self.store);
        self.api.call(request("POST", &path, address, headers, body)).await
    }

    /// Asks for a code.
    pub async fn ask(&self, body: &Value) -> Answer {
        self.ask_from(HOME, &[], body).await
    }

    /// Asks for a code for a phone, which must be granted; the asking session.
    pub async fn asking(&self, phone: &str) -> Uuid {
        let answer = self.ask(&json!({ "phone": phone })).await;
        assert_eq!(answer.status, 202, "{}", answer.text());
        answer.json()["asking_session"].as_str().unwrap().parse().unwrap()
    }

    /// Gives a code.
    pub async fn give(&self, body: &Value) -> Answer {
        self.api.call(request("POST", &format!("/v1/stores/{}/sessions", self.store), HOME, &[], body)).await
    }

    /// Logs in with a phone; the session.
    pub async fn log_in(&self, phone: &str) -> Value {
        let asking = self.asking(phone).await;
        self.send().await;
        let code = self.phones.code(phone);
        let answer = self.give(&json!({ "asking_session": asking, "code": code })).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
        answer.json()
    }

    /// Refreshes a session with a token, from a device.
    pub async fn refresh(&self, token: &Value, device: &Value) -> Answer {
        let bearer = format!("Bearer {}", token.as_str().unwrap());
        let headers = [("authorization", bearer.as_str())];
        self.api.call(request("POST", "/v1/sessions/refresh", HOME, &headers, &json!({ "device": device }))).await
    }

    /// Runs the worker that sends codes until its queue is empty.
    pub async fn send(&self) {
        self.send_by(self.phones.sender()).await;
    }

    /// As [`Self::send`], by another sender.
    pub async fn send_by(&self, sender: Sender) {
        let queue = Arc::clone(&self.queues) as Arc<dyn MessageQueue>;
        let state = send_login_code::State::new(self.database.app(2), self.keys.login.clone(), sender, queue);
        let state = Arc::new(state);
        let handle = move |event| {
            let state = Arc::clone(&state);
            async move { send_login_code::handle(&state, event, Deadline::after(Duration::from_secs(50))).await }
        };
        drain(&self.queues, Queue::SendLoginCode, 2, 10, handle).await;
    }
}

/// A request as API Gateway hands it on, seen to come from an address.
#[must_use]
pub fn request(
    method: &str,
    path: &str,
    address: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> lambda_http::Request {
    let mut all = json!({ "content-type": "application/json" });
    for (name, value) in headers {
        all[*name] = json!(value);
    }
    let event = json!({
        "version": "2.0", "routeKey": format!("{method} {path}"), "rawPath": path, "rawQueryString": "",
        "headers": all, "isBase64Encoded": false, "body": body.to_string(),
        "requestContext": { "stage": "$default", "requestId": Uuid::now_v7(), "http": {
            "method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": address, "userAgent": "tests" } },
    });
    lambda_http::request::from_str(&event.to_string()).unwrap()
}
