//! Keys, secrets and the database's password change in the middle of a sale, and nobody is sent away for it.

mod password;

use std::collections::BTreeSet;
use std::time::Duration;

use domain::limits::ACCOUNTS_READ_AGAIN_AFTER;
use domain::payments::Gateway;
use domain::roles::Role;
use edge::Stage;
use edge::login_keys::DEVELOPMENT_KEYS as LOGIN_KEYS;
use edge::sealing::{DEVELOPMENT_KEYS as SEALING_KEYS, SealingKeys, context};
use futures::future::join_all;
use serde_json::{Value, json};
use store::catalog::Product;
use store::payments::save_account;
use tests::http::{Answer, Buyer};
use tests::login::Phones;
use tests::rotation::{accepted, new_signing_key, old_signing_key, signing, with_new_key};
use tests::simulator::{HttpRequest, Ledger, Setup, Shopper, World, wish};
use tests::till::{Policy, STRIPE_KEY, STRIPE_SECRET};
use tests::{look, staff};
use uuid::Uuid;

const BOUND: Duration = Duration::from_secs(30);
const BUYERS: usize = 4;
/// What the payment gateway signs with after the rotation.
const NEW_SECRET: &str = "whsec_after_the_rotation";
/// How long one function is new while the next is still old.
const BETWEEN: Duration = Duration::from_millis(100);

/// Fault 28: the keys that sign tokens, those of the login, those that seal, and the secret of webhooks are rotated,
/// function by function, while buyers who logged in before order, pay and refresh. No answer is a 401 or a failure;
/// new tokens are under the new key; what was begun under an old key is finished.
#[tokio::test(flavor = "multi_thread")]
async fn keys_and_secrets_are_rotated() {
    let world = World::start(Setup { duplicates: 0.0, ..Setup::default() }).await;
    let product = world.sell(2_000, Policy::default(), |product| product).await;
    world.run();
    let (ledger, phones) = (Ledger::default(), Phones::of(&world.database));
    let mut buyers = Vec::new();
    for number in 0..BUYERS {
        buyers.push(LoggedIn::new(&world, &product, &phones, &ledger, number).await);
    }
    let member = staff::hire(&world.database, product.described.tenant_id, Role::Viewer).await;
    let (old, new) = (old_signing_key(), new_signing_key());
    let both = [old.clone(), new.clone()];

    while_they_buy(&world, &product, &mut buyers, deploy(&world, "TIRADA_TOKEN_KEYS", &accepted(&both))).await;
    assert_eq!(kids(&buyers), BTreeSet::from(["development".to_owned()]));
    let keys = signing(&[new.clone(), old.clone()]);
    while_they_buy(&world, &product, &mut buyers, deploy(&world, "TIRADA_SIGNING_KEYS", &keys)).await;
    let published = get(&world, "/.well-known/jwks.json", "").await.json();
    assert_eq!(published["keys"].as_array().unwrap().len(), 2, "both are good while they overlap");
    assert_eq!(get(&world, "/v1/admin/products", &member.bearer).await.status, 200, "staff stay in as well");

    let phone = "+34600000099";
    let asking = ask(&world, &product, &phones, phone).await;
    let keys = with_new_key(LOGIN_KEYS);
    let meanwhile = "+34600000098";
    let early = async {
        tokio::time::sleep(BETWEEN / 2).await;
        ask(&world, &product, &phones, meanwhile).await
    };
    let rotated = while_they_buy(&world, &product, &mut buyers, deploy(&world, "TIRADA_LOGIN_KEYS", &keys));
    let (early, ()) = futures::join!(early, rotated);
    assert_eq!(kids(&buyers), BTreeSet::from(["new".to_owned()]), "new tokens are under the new key");
    give(&world, &product, &phones, phone, &asking).await;
    // Asked for when the login had the new key and the sender perhaps not yet.
    give(&world, &product, &phones, meanwhile, &early).await;

    let keys = with_new_key(SEALING_KEYS);
    while_they_buy(&world, &product, &mut buyers, deploy(&world, "TIRADA_SEALING_KEYS", &keys)).await;
    let sealing = SealingKeys::from_json(&keys, Stage::Local).unwrap();
    while_they_buy(&world, &product, &mut buyers, save(&world, &product, &sealing, &[NEW_SECRET, STRIPE_SECRET])).await;
    // Environments that opened the credentials a moment ago may not look again at once.
    assert!(world.bank.settle().await, "the payment gateway does not come to rest");
    tokio::time::sleep(ACCOUNTS_READ_AGAIN_AFTER).await;
    world.sign_events_with(&product, NEW_SECRET);
    while_they_buy(&world, &product, &mut buyers, save(&world, &product, &sealing, &[NEW_SECRET])).await;

    // Ten minutes later nobody has a token of the old key.
    buyers.iter_mut().for_each(|buyer| buyer.first = buyer.shopper.buyer.bearer.clone());
    deploy(&world, "TIRADA_SIGNING_KEYS", &signing(&both[1..])).await;
    deploy(&world, "TIRADA_TOKEN_KEYS", &accepted(&both[1..])).await;
    while_they_buy(&world, &product, &mut buyers, async {}).await;

    assert!(world.bank.settle().await, "the payment gateway does not come to rest");
    let mut refused = world.bank.deliveries();
    refused.retain(|tried| !matches!(tried.status, Some(200 | 503)));
    assert!(refused.is_empty(), "every event is signed with what we know: {refused:?}");
    let paid = i64::try_from(BUYERS * TURNS).unwrap();
    assert_eq!(look::outcomes(&world.database, &product).await, look::expected([("paid", paid)]));
    assert_eq!(ledger.findings(&world.database).await, Vec::<String>::new());
    world.finish(BOUND).await;
}

/// How often every buyer buys.
const TURNS: usize = 7;

/// A buyer who has logged in with a phone.
struct LoggedIn {
    shopper: Shopper,
    /// The access token of the login, as a header.
    first: String,
    refresh: Value,
    device: Value,
}

impl LoggedIn {
    async fn new(world: &World, product: &Product, phones: &Phones, ledger: &Ledger, number: usize) -> Self {
        let phone = format!("+346000000{number:02}");
        let asking = ask(world, product, phones, &phone).await;
        let session = give(world, product, phones, &phone, &asking).await;
        let mut shopper = Shopper::new(product.described.tenant_id, world.gateway.clone(), ledger.clone());
        let first = format!("Bearer {}", session["access_token"].as_str().unwrap());
        let id = session["buyer"].as_str().unwrap().parse().unwrap();
        shopper.buyer = Buyer { id, bearer: first.clone() };
        Self { shopper, first, refresh: session["refresh_token"].clone(), device: session["device"].clone() }
    }

    /// Looks with the token of the login, orders, pays, and refreshes. Every answer is a good one at the first try.
    async fn buy(&mut self, world: &World, product: &Product) {
        assert_good(&get(world, "/v1/orders", &self.first).await, 200);
        let key = Uuid::now_v7().to_string();
        let placed = self.shopper.try_place(product.described.id, &key, &wish(&[], 1, "reject")).await;
        assert_good(&placed, 202);
        let order = placed.accepted();
        assert_eq!(self.shopper.follow(order).await.unwrap()["state"], "reserved");
        let paying = self.shopper.try_pay(order, "key", "card").await;
        assert_good(&paying, 201);
        world.bank.pay(paying.json()["id"].as_str().unwrap()).unwrap();
        let is_paid = async || look::order(&world.database, order).await.state.word() == "paid";
        world.until("the order is paid", BOUND, is_paid).await;
        let bearer = format!("Bearer {}", self.refresh.as_str().unwrap());
        let refreshed = post(world, "/v1/sessions/refresh", &bearer, &json!({ "device": self.device })).await;
        assert_good(&refreshed, 200);
        let tokens = refreshed.json();
        self.refresh = tokens["refresh_token"].clone();
        self.shopper.buyer.bearer = format!("Bearer {}", tokens["access_token"].as_str().unwrap());
        assert_good(&get(world, "/v1/orders", &self.shopper.buyer.bearer).await, 200);
    }
}

fn assert_good(answer: &Answer, status: u16) {
    assert_eq!(answer.status, status, "{}", answer.text());
}

/// The keys under which the buyers' tokens are.
fn kids(buyers: &[LoggedIn]) -> BTreeSet<String> {
    let token = |buyer: &LoggedIn| buyer.shopper.buyer.bearer["Bearer ".len()..].to_owned();
    buyers.iter().map(|buyer| jsonwebtoken::decode_header(token(buyer)).unwrap().kid.unwrap()).collect()
}

/// Something is done while every buyer buys.
async fn while_they_buy(world: &World, product: &Product, buyers: &mut [LoggedIn], done: impl Future<Output = ()>) {
    let buying = join_all(buyers.iter_mut().map(|buyer| buyer.buy(world, product)));
    futures::join!(done, buying);
}

/// Deploys every function that has a variable, one after the other, with another value of it.
async fn deploy(world: &World, variable: &str, value: &str) {
    world.note(&format!("{variable} is rotated"));
    for function in world.functions() {
        if function.settings().variables.contains_key(variable) {
            function.deploy(|settings| {
                settings.variables.insert(variable.to_owned(), value.to_owned());
            });
            tokio::time::sleep(BETWEEN).await;
        }
    }
}

/// Saves the store's credentials at the payment gateway with other secrets of webhooks.
async fn save(world: &World, product: &Product, keys: &SealingKeys, secrets: &[&str]) {
    world.note(&format!("the store knows {} secrets of webhooks", secrets.len()));
    let tenant_id = product.described.tenant_id;
    let secret_key = format!("{STRIPE_KEY}-{}", product.store);
    let credentials = json!({ "secret_key": secret_key, "webhook_secrets": secrets }).to_string();
    let sealed = keys.seal(&context(tenant_id, Gateway::Stripe), credentials.as_bytes()).unwrap();
    save_account(&world.database.app_client().await, tenant_id, Gateway::Stripe, &sealed).await.unwrap();
}

async fn get(world: &World, path: &str, bearer: &str) -> Answer {
    let headers = [("authorization".to_owned(), bearer.to_owned())].into();
    world.gateway.send(HttpRequest { method: "GET", path: path.to_owned(), headers, ..HttpRequest::default() }).await
}

async fn post(world: &World, path: &str, bearer: &str, body: &Value) -> Answer {
    let mut request = HttpRequest { method: "POST", path: path.to_owned(), ..HttpRequest::default() };
    request.headers.insert("content-type".into(), "application/json".into());
    if !bearer.is_empty() {
        request.headers.insert("authorization".into(), bearer.to_owned());
    }
    request.body = body.to_string();
    world.gateway.send(request).await
}

/// Asks for a code and waits until it is there; the asking session.
async fn ask(world: &World, product: &Product, phones: &Phones, phone: &str) -> Value {
    let body = json!({ "phone": phone });
    let answer = post(world, &format!("/v1/stores/{}/login-codes", product.store), "", &body).await;
    assert_good(&answer, 202);
    let came = async || phones.messages().iter().any(|(to, _)| to == phone);
    world.until("the code came", BOUND, came).await;
    answer.json()["asking_session"].clone()
}

/// Logs in with the code that came; the session.
async fn give(world: &World, product: &Product, phones: &Phones, phone: &str, asking: &Value) -> Value {
    let body = json!({ "asking_session": asking, "code": phones.code(phone) });
    let answer = post(world, &format!("/v1/stores/{}/sessions", product.store), "", &body).await;
    assert_good(&answer, 201);
    answer.json()
}
