//! Clocks that are off, clocks that change, and buyers who come too early: the database's time decides.

use std::time::Duration;

use domain::schedule::{Repeated, instant};
use serde_json::Value;
use store::catalog::Product;
use tests::simulator::{Setup, World, code, wish};
use tests::{look, seed};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::task::JoinSet;
use tokio_postgres::types::Type;

const BOUND: Duration = Duration::from_secs(30);
const TEN_MINUTES: i64 = 600;
const RESERVED: &str = "select count(*) from orders where state = 'reserved'";
const MADRID: &str = "Europe/Madrid";

/// Fault 25: clocks are off by ten minutes, intake's one way, the worker's the other, the jobs' as intake's. No order
/// is too late, no hold is too short or too long: each moment is the database's.
#[tokio::test(flavor = "multi_thread")]
async fn clocks_are_off() {
    if std::env::var("TIRADA_TEST_FAKETIME").is_err() {
        eprintln!("not run: there is no libfaketime here");
        return;
    }
    for skew_s in [TEN_MINUTES, -TEN_MINUTES] {
        let world = World::start(Setup::default()).await;
        world.function("reserve-numbers").set(|settings| settings.skew_s = -skew_s);
        for name in ["orders", "order-status", "release-numbers", "expire-reservations", "reconcile-orders"] {
            world.function(name).set(|settings| settings.skew_s = skew_s);
        }
        let mut owner = world.database.another_owner().await;
        let product = seed::product(seed::store(&owner).await, 100).hold_seconds(300).insert(&mut owner).await;
        let shopper = world.shopper(&product);
        for number in 1..=3 {
            shopper.place(product.described.id, &wish(&[number], 0, "reject")).await.unwrap();
        }
        let now = "select count(*) from orders where created_at between now() - interval '10 s' and now()
            and queue_deadline between now() + interval '890 s' and now() + interval '900 s'";
        assert_eq!(look::count(&world.database, now).await, 3);
        // By the wrong clocks they are past their deadline of 15 minutes, and intake is to be closed.
        world.pass(Duration::from_secs(400)).await;
        let report: Value = world.schedule("reconcile-orders").run_once().await.answer();
        assert_eq!((&report["rejected"], report["failed_steps"].as_array().unwrap().len()), (&0.into(), 0), "{report}");
        shopper.place(product.described.id, &wish(&[4], 0, "reject")).await.unwrap();
        world.mapping("reserve-numbers").start();
        world.until("all are reserved", BOUND, async || look::count(&world.database, RESERVED).await == 4).await;
        let holds = "select count(*) from orders where expires_at between now() + interval '285 s' and now() + interval '300 s'";
        assert_eq!(look::count(&world.database, holds).await, 4);
        let off_s = off_by(&world, "reserve-numbers").await;
        assert!((off_s + skew_s).abs() < 10, "the worker's clock was off by {off_s} s");
        let early = world.schedule("expire-reservations").run_once().await.answer();
        assert_eq!(early["orders"], 0, "no hold is over");
        world.pass(Duration::from_secs(300)).await;
        let due = world.schedule("expire-reservations").run_once().await.answer();
        assert_eq!((&due["orders"], look::taken(&world.database, &product).await), (&4.into(), 0));
        world.finish(BOUND).await;
    }
}

/// Fault 25: buyers come up to milliseconds before the opening, to functions whose clocks are off. They are told to
/// come back, when to do so, and are served then; nobody is served before.
#[tokio::test(flavor = "multi_thread")]
async fn buyers_come_before_the_opening() {
    for skew_s in [0, TEN_MINUTES, -TEN_MINUTES] {
        if skew_s != 0 && std::env::var("TIRADA_TEST_FAKETIME").is_err() {
            eprintln!("not run: there is no libfaketime here");
            return;
        }
        let world = World::start(Setup::default()).await;
        world.function("orders").set(|settings| settings.skew_s = skew_s);
        let opens_at = OffsetDateTime::now_utc() + Duration::from_millis(2_700);
        let product = on_sale_from(&world, opens_at).await;
        let id = product.described.id;
        let mut buyers = JoinSet::new();
        for before_ms in [2_000, 1_500, 1_001, 999, 500, 250, 100, 50, 20, 10, 5, 4, 3, 2, 1, 0] {
            let shopper = world.shopper(&product);
            buyers.spawn(async move {
                let key = format!("key-{before_ms}");
                wait_until(opens_at - Duration::from_millis(before_ms)).await;
                let sent = OffsetDateTime::now_utc();
                let first = shopper.try_place(id, &key, &wish(&[], 1, "reject")).await;
                if first.status == 202 {
                    return false;
                }
                assert_eq!((first.status, code(&first).as_str()), (409, "not-open"));
                let wait = first.retry_after().unwrap();
                let (most, least) = (seconds_until(opens_at, sent), seconds_until(opens_at, OffsetDateTime::now_utc()));
                assert!((least..=most).contains(&wait), "{wait} s, {before_ms} ms before the opening");
                tokio::time::sleep(Duration::from_secs(wait)).await;
                assert_eq!(shopper.try_place(id, &key, &wish(&[], 1, "reject")).await.status, 202);
                true
            });
        }
        let early = buyers.join_all().await.into_iter().filter(|early| *early).count();
        assert!(early >= 5, "only {early} came before the opening");
        let served_early =
            "select count(*) from orders o join products p on p.id = o.product_id where o.created_at < p.opens_at";
        assert_eq!(look::count(&world.database, served_early).await, 0);
        world.run();
        world.until("all are reserved", BOUND, async || look::count(&world.database, RESERVED).await == 16).await;
        world.finish(BOUND).await;
    }
}

/// Fault 25: a sale is announced for a local time behind the next change of clocks, in either direction. It opens at
/// that instant, by Postgres's own time zones too, whatever zones the database and the functions are set to.
#[tokio::test(flavor = "multi_thread")]
async fn clocks_change_before_the_opening() {
    let at = |day: &str, time: &str, repeated| instant(&format!("{day}T{time}"), MADRID, repeated);
    let is_skipped = |day: &str| at(day, "02:30:00", Repeated::Earlier).is_err();
    let is_twice = |day: &str| {
        let [earlier, later] = [Repeated::Earlier, Repeated::Later].map(|repeated| at(day, "02:30:00", repeated).ok());
        earlier != later
    };
    for change in ["forward", "back"] {
        let is_change = |day: &str| if change == "forward" { is_skipped(day) } else { is_twice(day) };
        let world = World::start(Setup::default()).await;
        let days =
            "select to_char(now() + make_interval(days => day), 'YYYY-MM-DD') from generate_series(1, 370) as day";
        let days = world.database.owner().query(days, &[]).await.unwrap();
        let day: String = days.iter().map(|row| row.get(0)).find(|day: &String| is_change(day)).unwrap();
        world.note(&format!("clocks go {change} on {day}"));
        for (name, zone) in [("orders", "America/Sao_Paulo"), ("reserve-numbers", "Asia/Tokyo")] {
            world.function(name).set(|settings| {
                settings.variables.insert("TZ".into(), zone.into());
            });
        }
        let sql = "do $$ begin
            execute format('alter database %I set timezone = ''Pacific/Auckland''', current_database());
        end $$";
        world.database.owner().batch_execute(sql).await.unwrap();
        let opens_at = at(&day, "03:30:00", Repeated::Earlier).unwrap();
        assert_eq!(opens_at, by_postgres(&world, &day, "03:30:00").await);
        let product = on_sale_from(&world, opens_at).await;
        let (shopper, id) = (world.shopper(&product), product.described.id);
        let ahead = Duration::try_from(opens_at - OffsetDateTime::now_utc()).unwrap();
        let long_before = shopper.try_place(id, "key", &wish(&[7], 0, "reject")).await;
        assert!(long_before.retry_after().unwrap().abs_diff(ahead.as_secs()) <= 10, "{}", long_before.text());
        world.pass(ahead.saturating_sub(Duration::from_millis(1_500))).await;
        let early = shopper.try_place(id, "key", &wish(&[7], 0, "reject")).await;
        let wait = early.retry_after().unwrap();
        assert!(code(&early) == "not-open" && (1..=2).contains(&wait), "{wait} s");
        tokio::time::sleep(Duration::from_secs(wait)).await;
        let order = shopper.try_place(id, "key", &wish(&[7], 0, "reject")).await.accepted();
        world.run();
        assert_eq!(shopper.follow(order).await.unwrap()["state"], "reserved");
        world.finish(BOUND).await;
    }
}

async fn on_sale_from(world: &World, opens_at: OffsetDateTime) -> Product {
    let mut owner = world.database.another_owner().await;
    let product = seed::product(seed::store(&owner).await, 1_000);
    product.window(opens_at, opens_at + Duration::from_secs(500 * 24 * 3_600)).insert(&mut owner).await
}

/// The instant of a local time by the zones that Postgres brings.
async fn by_postgres(world: &World, day: &str, time: &str) -> OffsetDateTime {
    let (local, sql) = (format!("{day} {time}"), "select $1::text::timestamp at time zone 'Europe/Madrid'");
    world.database.owner().query_typed_one(sql, &[(&local, Type::TEXT)]).await.unwrap().get(0)
}

/// By how many seconds a function's clock is ahead, from the last line that it wrote.
async fn off_by(world: &World, name: &str) -> i64 {
    let log = world.function(name).log();
    world.until("it wrote a line", BOUND, async || !log.with("\"timestamp\"").is_empty()).await;
    let line = log.with("\"timestamp\"").pop().unwrap();
    let line: Value = serde_json::from_str(&line[line.find('{').unwrap()..]).unwrap();
    let written = OffsetDateTime::parse(line["timestamp"].as_str().unwrap(), &Rfc3339).unwrap();
    (written - OffsetDateTime::now_utc()).whole_seconds()
}

async fn wait_until(moment: OffsetDateTime) {
    if let Ok(wait) = Duration::try_from(moment - OffsetDateTime::now_utc()) {
        tokio::time::sleep(wait).await;
    }
}

/// Whole seconds from a moment to another, rounded up, at least one.
fn seconds_until(moment: OffsetDateTime, now: OffsetDateTime) -> u64 {
    let left = Duration::try_from(moment - now).unwrap_or_default();
    (left.as_secs() + u64::from(left.subsec_nanos() > 0)).max(1)
}
