//! The provider of messages is away while strangers ask for codes in storms: nobody at the checkout feels it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use domain::limits::{CODES_PER_ADDRESS, LOGIN_CODE_LIVES, NOTICE_BACKOFF_MAX};
use futures::stream::{self, StreamExt};
use serde_json::json;
use store::catalog::Product;
use tests::login::Phones;
use tests::look::count;
use tests::notices::log_in;
use tests::seed;
use tests::simulator::{HttpRequest, Setup, World, wish};

use crate::crowd::Crowd;

const BOUND: Duration = Duration::from_secs(60);
/// Time in the queues runs ten times as fast: a code's message outlives the outage.
const SCALE: f64 = 10.0;
const ASKS: usize = 400;
const PHONES: usize = 100;
/// Fewer than the login may have at once.
const AT_ONCE: usize = 6;
/// Buyers who are told what becomes of their orders.
const TOLD: i64 = 5;
/// A file that cannot be: a provider that takes nothing.
const NOWHERE: &str = "/dev/null/phones.jsonl";
/// How the phones of the two storms begin.
const EARLY: &str = "+346001";
const LATE: &str = "+346002";

const RESERVED: &str = "select count(*) from orders where state = 'reserved'";
const OWED_AND_GOOD: &str = "select count(*) from login_codes where sent < asked and expires_at > now()";
const OWED_AND_OVER: &str = "select count(*) from login_codes where sent < asked and expires_at <= now()";
const REFUSED: &str = "select count(*) from notices where failure is not null and outcome is null";
const TOLD_ABOUT: &str = "select count(*) from notices where outcome = 'sent'";

/// Deploys both senders with this file for a provider.
fn provider(world: &World, file: &str) {
    world.note(&format!("messages go to {file}"));
    for name in ["send-login-code", "send-notice"] {
        world.function(name).deploy(|settings| {
            settings.variables.insert("TIRADA_PHONES_FILE".to_owned(), file.to_owned());
        });
    }
}

/// Asks for codes for a hundred phones, all from one address; how often one was granted.
async fn storm(world: &World, product: &Product, phones: &str) -> usize {
    world.note(&format!("a storm over {phones}"));
    let store = &product.store;
    let one = |n: usize| async move {
        let headers = [("content-type".to_owned(), "application/json".to_owned())].into();
        let body = json!({ "phone": format!("{phones}{:05}", n % PHONES) }).to_string();
        let path = format!("/v1/stores/{store}/login-codes");
        world.gateway.send(HttpRequest { method: "POST", path, headers, body }).await.status
    };
    let statuses: Vec<u16> = stream::iter((0..ASKS).map(one)).buffer_unordered(AT_ONCE).collect().await;
    let other = statuses.iter().find(|status| !matches!(**status, 202 | 429));
    assert_eq!(other, None, "a storm is granted or limited");
    statuses.into_iter().filter(|status| *status == 202).count()
}

/// Messages to phones that begin so.
fn sent_to(phones: &Phones, begin: &str) -> usize {
    phones.messages().iter().filter(|(to, _)| to.starts_with(begin)).count()
}

/// Fault 29: no message can be sent, and codes are asked for in storms. Whoever has logged in orders as ever and gets
/// what they ordered. When the provider is back, the codes that are still good are sent, once each and within the
/// budget; those that are over are not; and the notices that were owed come late, once each.
#[tokio::test(flavor = "multi_thread")]
async fn the_provider_is_away_and_codes_are_stormed() {
    let world = World::start(Setup { scale: SCALE, duplicates: 0.0, ..Setup::default() }).await;
    let mut owner = world.database.another_owner().await;
    let tenant_id = seed::store(&owner).await;
    let product = seed::product(tenant_id, 20_000).hold_seconds(86_400).insert(&mut owner).await;
    let phones = Phones::of(&world.database);
    provider(&world, NOWHERE);
    for worker in ["reserve-numbers", "send-login-code", "send-notice"] {
        world.mapping(worker).start();
    }
    let began = Instant::now();
    let told: Vec<String> = (0..TOLD).map(|number| format!("+3460000000{number}")).collect();
    for phone in &told {
        let shopper = world.shopper(&product);
        log_in(&world.database, tenant_id, shopper.buyer.id, phone).await;
        assert!(shopper.place(product.described.id, &wish(&[], 1, "reject")).await.is_some());
    }
    let crowd = Crowd::gather(&world, &product, 4, Duration::from_millis(20));
    let early = storm(&world, &product, EARLY).await;
    let placed = i64::try_from(crowd.leave().await).unwrap() + TOLD;
    let reserved = async || count(&world.database, RESERVED).await == placed;
    world.until("all who ordered meanwhile have their numbers", BOUND, reserved).await;
    assert_eq!(world.ledger.retries(), BTreeMap::new(), "nobody was asked to come back");
    world.schedule("reconcile-orders").run_once().await.answer();
    world.until("notices were tried", BOUND, async || count(&world.database, REFUSED).await == TOLD).await;
    assert_eq!(count(&world.database, OWED_AND_GOOD).await, i64::try_from(early).unwrap());

    world.pass(LOGIN_CODE_LIVES + Duration::from_secs(1)).await;
    let late = storm(&world, &product, LATE).await;
    assert!(early > 0 && late > 0, "both storms had something to send: {early} and {late}");
    assert!(phones.messages().is_empty(), "nothing could be sent");
    provider(&world, &phones.path());
    world.until("good codes have left", BOUND, async || count(&world.database, OWED_AND_GOOD).await == 0).await;
    assert_eq!((sent_to(&phones, EARLY), sent_to(&phones, LATE)), (0, late), "what is over is not sent");
    assert_eq!(count(&world.database, OWED_AND_OVER).await, i64::try_from(early).unwrap());
    let refilled = (began.elapsed() + LOGIN_CODE_LIVES).as_secs() / CODES_PER_ADDRESS.one_per.as_secs() + 1;
    let budget = u64::from(CODES_PER_ADDRESS.messages) + refilled;
    assert!((early + late) as u64 <= budget, "{early} and {late} were granted, the budget is {budget}");

    world.pass(NOTICE_BACKOFF_MAX).await;
    world.schedule("reconcile-orders").run_once().await.answer();
    world.until("notices have left", BOUND, async || count(&world.database, TOLD_ABOUT).await == TOLD).await;
    assert!(told.iter().all(|phone| sent_to(&phones, phone) == 1), "{:?}", phones.messages());
    for sender in ["send-login-code", "send-notice"] {
        assert_eq!(world.function(sender).log().with("repeated"), Vec::<String>::new(), "nothing was sent twice");
    }
    world.finish(BOUND).await;
    assert_eq!(sent_to(&phones, EARLY), 0);
}
