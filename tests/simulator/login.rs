//! Login codes while the function that sends them, or the one that takes requests for them, is killed.

use std::time::Duration;

use domain::limits::{LOGIN_CODE_CLAIM, LOGIN_CODE_GRACE};
use serde_json::{Value, json};
use tests::http::Answer;
use tests::login::Phones;
use tests::simulator::{HttpRequest, Setup, World};

const BOUND: Duration = Duration::from_secs(30);
const HASTE: f64 = 60.0;
const PHONE: &str = "+34600000001";

/// A world with a store, the store's slug, and its buyers' phones.
async fn world() -> (World, String, Phones) {
    let world = World::start(Setup { scale: HASTE, duplicates: 0.0, ..Setup::default() }).await;
    let store = world.product(100).await.store;
    let phones = Phones::of(&world.database);
    (world, store, phones)
}

async fn post(world: &World, path: String, body: &Value) -> Answer {
    let headers = [("content-type".to_owned(), "application/json".to_owned())].into();
    world.gateway.send(HttpRequest { method: "POST", path, headers, body: body.to_string() }).await
}

/// The code that came logs in.
async fn log_in(world: &World, store: &str, phones: &Phones, asking: &Value) {
    let body = json!({ "asking_session": asking, "code": phones.code(PHONE) });
    let answer = post(world, format!("/v1/stores/{store}/sessions"), &body).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
}

/// Fault 29: the sender is killed between its claim, the provider and its mark. The code comes, at most once too often.
#[tokio::test(flavor = "multi_thread")]
async fn the_sender_is_killed() {
    for (failpoint, messages) in [("login_code.before_send=kill", 1), ("login_code.before_mark=kill", 2)] {
        let (world, store, phones) = world().await;
        world.function("send-login-code").arm(failpoint);
        let answer = post(&world, format!("/v1/stores/{store}/login-codes"), &json!({ "phone": PHONE })).await;
        assert_eq!(answer.status, 202, "{}", answer.text());
        world.mapping("send-login-code").start();
        let crashed = async || world.function("send-login-code").counts().crashes == 1;
        world.until("the sender is dead", BOUND, crashed).await;
        world.pass(LOGIN_CODE_CLAIM).await;
        world.until("the code came", BOUND, async || phones.messages().len() == messages).await;
        log_in(&world, &store, &phones, &answer.json()["asking_session"]).await;
        world.finish(BOUND).await;
        assert_eq!(phones.messages().len(), messages, "{failpoint}");
    }
}

/// The function that takes requests for codes is killed when its row is committed: its message is owed by the row.
#[tokio::test(flavor = "multi_thread")]
async fn the_login_is_killed_after_its_commit() {
    let (world, store, phones) = world().await;
    world.function("login").arm("login.asked=kill");
    let answer = post(&world, format!("/v1/stores/{store}/login-codes"), &json!({ "phone": PHONE })).await;
    assert_eq!(answer.status, 502);
    world.pass(LOGIN_CODE_GRACE).await;
    world.schedule("reconcile-orders").run_once().await.answer();
    world.mapping("send-login-code").start();
    world.until("the code came", BOUND, async || phones.messages().len() == 1).await;
    let asking = world.database.owner().query_one("select id::text from login_codes", &[]).await.unwrap();
    log_in(&world, &store, &phones, &json!(asking.get::<_, String>(0))).await;
    world.finish(BOUND).await;
}

/// The function is killed before a login is committed: the code is not used up.
#[tokio::test(flavor = "multi_thread")]
async fn the_login_is_killed_before_its_commit() {
    let (world, store, phones) = world().await;
    let answer = post(&world, format!("/v1/stores/{store}/login-codes"), &json!({ "phone": PHONE })).await;
    world.mapping("send-login-code").start();
    world.until("the code came", BOUND, async || phones.messages().len() == 1).await;
    world.function("login").arm("login.before_commit=kill");
    let asking = answer.json()["asking_session"].clone();
    let body = json!({ "asking_session": asking, "code": phones.code(PHONE) });
    assert_eq!(post(&world, format!("/v1/stores/{store}/sessions"), &body).await.status, 502);
    log_in(&world, &store, &phones, &asking).await;
    world.finish(BOUND).await;
}
