//! The way in, as somebody of a store's staff goes it: links in a pretended mailbox, an app for one-time passwords, and
//! the functions behind them.

use std::path::PathBuf;
use std::time::Duration;

use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use domain::roles::Role;
use edge::Stage;
use edge::auth::{StaffClaim, development};
use edge::http::IDEMPOTENCY_KEY;
use edge::sealing::{DEVELOPMENT_KEYS, SealingKeys, totp_context};
use edge::totp::TotpSecret;
use serde_json::{Value, json};
use staff::{Keys, Post, Sender};
use uuid::Uuid;

use crate::http::{self, Answer, Api, ISSUER, ask};
use crate::login::request;
use crate::{TestDatabase, seed};

/// The page that links lead to.
const PAGE: &str = "https://staff.example/sign-in";
const HOUR: Duration = Duration::from_secs(3_600);
/// Where requests come from.
const HOME: &str = "192.0.2.1";

/// The development keys.
#[must_use]
pub fn keys() -> Keys {
    let login::Keys { public, signing, login, origin } = crate::login::keys();
    Keys { public, signing, login, origin, sealing: sealing() }
}

fn sealing() -> SealingKeys {
    SealingKeys::from_json(DEVELOPMENT_KEYS, Stage::Local).unwrap()
}

/// A mailbox that shows what it got, until it is dropped.
pub struct Mailbox(PathBuf);

impl Default for Mailbox {
    fn default() -> Self {
        Self(std::env::temp_dir().join(format!("tirada-mails-{}.jsonl", Uuid::now_v7().simple())))
    }
}

impl Mailbox {
    /// Who mails to it.
    #[must_use]
    pub fn post(&self) -> Post {
        Post::new(self.sender(), PAGE.to_owned())
    }

    /// The sender behind it.
    #[must_use]
    pub fn sender(&self) -> Sender {
        Sender::local(&self.0)
    }

    /// Every mail, oldest first.
    #[must_use]
    pub fn mails(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The link in the last mail to an address.
    #[must_use]
    pub fn link(&self, to: &str) -> String {
        let last = self.mails().into_iter().rfind(|mail| mail["to"] == to);
        let last = last.unwrap_or_else(|| panic!("{to} got nothing"));
        let text = last["text"].as_str().unwrap();
        let link = text.lines().find_map(|line| line.strip_prefix(PAGE)?.strip_prefix('#'));
        link.unwrap_or_else(|| panic!("no link in {text}")).to_owned()
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Somebody of a store's staff, with a session.
pub struct Member {
    /// Who.
    pub id: Uuid,
    /// Their store.
    pub tenant_id: Uuid,
    /// Their session.
    pub session_id: Uuid,
    /// The value of their `Authorization` header.
    pub bearer: String,
    /// What their app knows.
    pub secret: TotpSecret,
}

impl Member {
    /// Sends a request with a body under a key of its own.
    pub async fn send(&self, api: &Api, method: &str, path: &str, body: &Value) -> Answer {
        self.send_under(api, &Uuid::now_v7().to_string(), method, path, body).await
    }

    /// Sends a request with a body under a key.
    pub async fn send_under(&self, api: &Api, key: &str, method: &str, path: &str, body: &Value) -> Answer {
        let request = ask(method, path).header(AUTHORIZATION, &self.bearer).header(IDEMPOTENCY_KEY, key);
        api.send(request.header(CONTENT_TYPE, "application/json"), body.to_string()).await
    }

    /// Reads something.
    pub async fn get(&self, api: &Api, path: &str) -> Answer {
        api.send(ask("GET", path).header(AUTHORIZATION, &self.bearer), "").await
    }
}

/// Gives a store somebody of that role who has joined, with a session that has just been proved.
pub async fn hire(database: &TestDatabase, tenant_id: Uuid, role: Role) -> Member {
    hire_as(database, tenant_id, role, Uuid::now_v7(), Uuid::now_v7()).await
}

/// As [`hire`], with ids that somebody else chose.
pub async fn hire_as(database: &TestDatabase, tenant_id: Uuid, role: Role, staff_id: Uuid, session_id: Uuid) -> Member {
    let secret = TotpSecret::new().unwrap();
    let sealed = sealing().seal(&totp_context(tenant_id, staff_id), secret.bytes()).unwrap();
    let email = format!("{}-{}@example.org", role.word(), staff_id.simple());
    let sql = "insert into staff (id, tenant_id, email, role, joined_at, totp) values ($1, $2, $3, $4, now(), $5)";
    let owner = database.owner();
    owner.execute(sql, &[&staff_id, &tenant_id, &email, &role.word(), &sealed]).await.unwrap();
    let sql = "insert into staff_sessions (id, tenant_id, staff_id, device_id, expires_at, fresh_until)
        values ($1, $2, $3, $4, now() + interval '1 hour', now() + interval '10 minutes')";
    owner.execute(sql, &[&session_id, &tenant_id, &staff_id, &Uuid::now_v7()]).await.unwrap();
    Member { id: staff_id, tenant_id, session_id, bearer: bearer(tenant_id, staff_id, session_id), secret }
}

/// The `Authorization` header of a session.
#[must_use]
pub fn bearer(tenant_id: Uuid, staff_id: Uuid, session_id: Uuid) -> String {
    let token = development::sign_staff(StaffClaim { staff_id, tenant_id, session_id }, ISSUER, HOUR).unwrap();
    format!("Bearer {token}")
}

/// A store with staff.
pub struct Office {
    /// Its database.
    pub database: TestDatabase,
    /// Its staff's mailbox.
    pub mailbox: Mailbox,
    /// An environment of `staff`.
    pub api: Api,
    /// An environment of `admin`.
    pub admin: Api,
    /// The store's slug.
    pub store: String,
    /// The store.
    pub tenant_id: Uuid,
}

impl Office {
    /// A store that nobody works for yet.
    pub async fn open() -> Self {
        let database = TestDatabase::new().await;
        let tenant_id = seed::store(database.owner()).await;
        let sql = "select slug from tenants where id = $1";
        let store = database.owner().query_one(sql, &[&tenant_id]).await.unwrap().get(0);
        let mailbox = Mailbox::default();
        let api = http::staff(database.app(8), keys(), mailbox.post());
        let admin = http::admin(database.app(8));
        Self { database, mailbox, api, admin, store, tenant_id }
    }

    /// Somebody of that role who has joined.
    pub async fn hire(&self, role: Role) -> Member {
        hire(&self.database, self.tenant_id, role).await
    }

    /// Sends a request without a token.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.api.call(request("POST", path, HOME, &[], body)).await
    }

    /// Asks for a link to sign in.
    pub async fn ask_link(&self, email: &str) -> Answer {
        self.post(&format!("/v1/stores/{}/staff-links", self.store), &json!({ "email": email })).await
    }

    /// Sets one-time passwords up with a link; what the app then knows.
    pub async fn enrol(&self, link: &str) -> TotpSecret {
        let answer = self.post("/v1/staff/enrolments", &json!({ "link": link })).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        TotpSecret::from_bytes(from_base32(answer.json()["secret"].as_str().unwrap()))
    }

    /// Signs in with a link and a password.
    pub async fn sign_in(&self, link: &str, password: &str) -> Answer {
        self.post("/v1/staff/sessions", &json!({ "link": link, "one_time_password": password })).await
    }

    /// Refreshes a session.
    pub async fn refresh(&self, token: &Value, device: &Value) -> Answer {
        let bearer = format!("Bearer {}", token.as_str().unwrap());
        let headers = [("authorization", bearer.as_str())];
        let body = json!({ "device": device });
        self.api.call(request("POST", "/v1/staff/sessions/refresh", HOME, &headers, &body)).await
    }
}

/// Seconds since 1970.
#[must_use]
pub fn now() -> i64 {
    time::OffsetDateTime::now_utc().unix_timestamp()
}

/// RFC 4648, without padding.
fn from_base32(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for digit in text.bytes() {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'2'..=b'7' => digit - b'2' + 26,
            _ => panic!("{text} is not base32"),
        };
        bits = bits << 5 | u32::from(value);
        count += 5;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 255).unwrap());
        }
    }
    bytes
}
