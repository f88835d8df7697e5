//! More wants to connect than may.

use std::time::Duration;

use domain::messages::{OrderMessage, Queue};
use tests::http::Answer;
use tests::look;
use tests::simulator::{HttpRequest, Setup, Shopper, World, code, wish};
use tokio::task::JoinSet;
use tokio::time::Instant;
use uuid::Uuid;

const BOUND: Duration = Duration::from_secs(30);
const RESERVED: &str = "select count(*) from orders where state = 'reserved'";
const CONNECTIONS: &str =
    "select count(*) from pg_stat_activity where datname = current_database() and usename = 'tirada_app'";
/// Server connections of the tests' PgBouncer.
const POOLED: usize = 6;

/// Fault 17: the database lets nobody else in. Who cannot be served is told so at once, with a time to come back;
/// everybody is served afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn the_database_has_no_connection_left() {
    let world = World::start(Setup::default()).await;
    let product = world.product(1_000).await;
    let limit = async |connections: i32| {
        world.note(&format!("connections are limited to {connections}"));
        let sql = format!(
            "do $$ begin execute format('alter database %I connection limit {connections}', current_database()); end $$"
        );
        world.database.owner().batch_execute(&sql).await.unwrap();
    };
    limit(2).await;
    let buyers: Vec<Shopper> = std::iter::repeat_with(|| world.shopper(&product)).take(12).collect();
    let (mut served, mut refused) = (0, 0);
    for (answer, elapsed) in everybody(&buyers, product.described.id).await {
        assert!(elapsed < Duration::from_secs(2), "the answer took {elapsed:?}");
        if answer.status == 202 {
            served += 1;
        } else {
            assert_eq!((answer.status, code(&answer).as_str()), (503, "unavailable"));
            assert!(answer.retry_after().is_some());
            refused += 1;
        }
    }
    assert!(served > 0 && refused > 0, "{served} were served, {refused} refused");
    limit(-1).await;
    assert!(everybody(&buyers, product.described.id).await.iter().all(|(answer, _)| answer.status == 202));
    world.run();
    world.until("all are reserved", BOUND, async || look::count(&world.database, RESERVED).await == 12).await;
    world.finish(BOUND).await;
}

/// Fault 17: others keep all connections of the pooler. Buyers are told to come back well before the gateway gives
/// up on them, and everybody is served afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn the_pooler_has_no_connection_left() {
    if std::env::var("TIRADA_TEST_PGBOUNCER").is_err() {
        eprintln!("not run: there is no PgBouncer here");
        return;
    }
    let world = World::start(Setup { pooler: true, ..Setup::default() }).await;
    let product = world.product(1_000).await;
    let buyers: Vec<Shopper> = std::iter::repeat_with(|| world.shopper(&product)).take(5).collect();
    // One environment is warm, and its connection must be found to be of no use.
    assert_eq!(everybody(&buyers[..1], product.described.id).await[0].0.status, 202);
    let mut others = Vec::new();
    for _ in 0..POOLED {
        let other = world.database.app_client().await;
        other.batch_execute("begin").await.unwrap();
        others.push(other);
    }
    world.note("the pooler is used up");
    for (answer, elapsed) in everybody(&buyers, product.described.id).await {
        assert_eq!((answer.status, code(&answer).as_str()), (503, "unavailable"));
        assert!(answer.retry_after().is_some());
        assert!(elapsed < Duration::from_secs(8), "the answer took {elapsed:?}");
    }
    for other in &others {
        other.batch_execute("rollback").await.unwrap();
    }
    drop(others);
    assert!(everybody(&buyers, product.described.id).await.iter().all(|(answer, _)| answer.status == 202));
    world.run();
    world.until("all are reserved", BOUND, async || look::count(&world.database, RESERVED).await == 5).await;
    world.finish(BOUND).await;
}

/// Their callers want a session of staff or a phone. They open nothing here.
const NOT_CALLED: [&str; 4] = ["admin", "login", "send-login-code", "staff"];

/// I11: with every function at its concurrency there are never more connections than the concurrencies add up to.
#[tokio::test(flavor = "multi_thread")]
async fn every_function_at_its_concurrency() {
    let world = World::start(Setup::default()).await;
    let product = world.product(10_000).await;
    let called = world.functions().filter(|function| !NOT_CALLED.contains(&function.name()));
    let cap: usize = called.map(|function| function.settings().concurrency).sum();
    let cap = i64::try_from(cap).unwrap();
    // Statements take long enough to meet each other.
    world.proxy.delay(Duration::from_millis(15), Duration::from_millis(15));
    world.mapping("reserve-numbers").set(|polling| (polling.batch_max, polling.window) = (4, Duration::ZERO));
    world.mapping("release-numbers").set(|polling| (polling.batch_max, polling.window) = (2, Duration::ZERO));
    world.mapping("settle-payment").set(|polling| polling.batch_max = 2);
    world.run();
    let mut crowd = JoinSet::new();
    for _ in 0..60 {
        let (shopper, gateway, sqs) = (world.shopper(&product), world.gateway.clone(), world.sqs.clone());
        let (id, tenant_id) = (product.described.id, product.described.tenant_id);
        crowd.spawn(async move {
            for round in 0..3 {
                let order = shopper.place(id, &wish(&[], 2, "reject")).await.unwrap();
                let path = format!("/v1/products/{id}/availability");
                gateway.send(HttpRequest { method: "GET", path, ..HttpRequest::default() }).await;
                shopper.follow(order).await.unwrap();
                // Nobody is asked for money: the store has no account, which the functions learn from the database.
                let pay = || shopper.try_pay(order, "key", "card");
                tokio::join!(pay(), pay(), pay());
                let tell = || {
                    let path = "/v1/webhooks/stripe/nobody".into();
                    gateway.send(HttpRequest { method: "POST", path, ..HttpRequest::default() })
                };
                tokio::join!(tell(), tell());
                sqs.put(Queue::SettlePayment, &OrderMessage::new(order, id, tenant_id));
                if round % 2 == 0 {
                    assert!(shopper.cancel(order).await);
                }
            }
        });
    }
    let mut most = 0;
    while !crowd.is_empty() {
        let now = look::count(&world.database, CONNECTIONS).await;
        if now > cap {
            // The session of an environment that was replaced ends a moment later.
            let ended = async || look::count(&world.database, CONNECTIONS).await <= cap;
            world.until("no more connections than invocations at once", Duration::from_secs(1), ended).await;
        }
        most = most.max(now);
        tokio::select! {
            Some(done) = crowd.join_next() => done.unwrap(),
            () = tokio::time::sleep(Duration::from_millis(10)) => {}
        }
    }
    let http = ["catalog", "orders", "order-status", "payments", "payment-webhook"];
    let throttled = http.map(|name| world.function(name).counts().throttles);
    assert!(throttled.iter().all(|throttles| *throttles > 0), "at their concurrency: {throttled:?}");
    assert!(most * 10 >= cap * 8, "only {most} of {cap} connections: that proves little");
    world.finish(BOUND).await;
}

/// Every buyer tries once, at the same time, under a key of its own that stays the same.
async fn everybody(buyers: &[Shopper], product_id: Uuid) -> Vec<(Answer, Duration)> {
    let mut all = JoinSet::new();
    for buyer in buyers.iter().cloned() {
        all.spawn(async move {
            let began = Instant::now();
            let answer = buyer.try_place(product_id, &buyer.buyer.id.to_string(), &wish(&[], 2, "reject")).await;
            (answer, began.elapsed())
        });
    }
    all.join_all().await
}
