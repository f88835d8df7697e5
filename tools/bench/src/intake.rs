//! Intake: alone against bare commits, beside a worker, beside buyers who poll, beside logins that fail, and what its
//! foreign keys cost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tests::TestDatabase;
use tokio_postgres::{Client, Statement};
use uuid::Uuid;

use crate::baselines::prepared;
use crate::crowd::{Crowd, Seen};
use crate::load::{poll, reserve_at_half_pace, watch_locks};
use crate::logins;
use crate::rate::{Rate, for_some_time, settle};
use crate::run::Run;
use crate::settings::{BATCH, CONNECTIONS, LOGIN_TURNS, NUMBERS, PACE, PATIENCE};
use crate::shop::{Mix, Shop};
use crate::workers::Worker;

/// What is kept between rounds: a database from which others are looked at without being disturbed.
pub(crate) struct Intake {
    outside: TestDatabase,
}

impl Intake {
    pub(crate) async fn prepare() -> Self {
        Self { outside: TestDatabase::new().await }
    }

    /// One round.
    pub(crate) async fn round(&self, run: &mut Run) {
        run.step("orders that wait for the worker");
        let shop = Shop::open(NUMBERS).await;
        let waiting = shop.place(run.volumes.waiting_orders, Mix::Both, &mut run.rng).await;
        run.step("single-row commits");
        let ceiling = commits(&shop.database, run.volumes.rate_for).await;
        run.step("intake alone");
        let (alone, commits) = self.alone(run, &shop).await;
        // Beside others intake runs below its limit: at the limit only the share of the processors would be seen.
        let pace = alone.per_second() * PACE;
        run.step("intake at its pace");
        let paced = paced(run, &shop, pace).await;
        run.step("intake beside a worker");
        let (beside_worker, waits) = beside_worker(run, &shop, &waiting, pace).await;
        run.step("intake beside polling");
        let (beside_polls, polls) = beside_polls(run, &shop, &alone, pace).await;
        run.step("intake beside logins that fail");
        let (between_logins, beside_logins, refusals) = logins_in_turn(run, &shop, pace).await;
        shop.database.finish_under_way().await;
        run.step("intake with and without foreign keys");
        let with = with_foreign_keys(run, true).await;
        let without = with_foreign_keys(run, false).await;

        run.add("intake_vs_commit_ceiling", alone.per_second() / ceiling.per_second());
        run.add("intake_commits_per_order", commits / alone.orders.len() as f64);
        run.add("intake_under_reserve", beside_worker.p50_ms() / paced.p50_ms());
        run.add("intake_waits_for_locks", waits);
        run.add("intake_under_polling", beside_polls.p50_ms() / paced.p50_ms());
        run.add("intake_login_failing", beside_logins.p50_ms() / between_logins.p50_ms());
        run.add("intake_fk_cost", with.per_second() / without.per_second());
        run.add("intake_orders_per_s", alone.per_second());
        run.add("commits_per_s", ceiling.per_second());
        run.add("intake_p50_ms", alone.p50_ms());
        run.add("intake_paced_p50_ms", paced.p50_ms());
        run.add("intake_under_reserve_p50_ms", beside_worker.p50_ms());
        run.add("intake_under_polling_p50_ms", beside_polls.p50_ms());
        run.add("polls_per_s", polls);
        run.add("intake_login_failing_p50_ms", beside_logins.p50_ms());
        run.add("intake_between_logins_p50_ms", between_logins.p50_ms());
        run.add("codes_refused_per_s", refusals);
    }

    /// Intake with nothing beside it, and how many transactions were committed for it.
    async fn alone(&self, run: &mut Run, shop: &Shop) -> (Seen, f64) {
        let crowd = Crowd::gather(shop, run.volumes.intake_orders, &mut run.rng).await;
        settle(&shop.database).await;
        let name: String =
            shop.database.owner().query_one("select current_database()::text", &[]).await.unwrap().get(0);
        let before = self.commits_in(&name).await;
        let seen = crowd.place_all(None).await;
        // A connection tells what it did when it ends, at the latest.
        let deadline = Instant::now() + PATIENCE;
        while self.connections_to(&name).await > 0 {
            assert!(Instant::now() < deadline, "the connections of intake do not end");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        (seen, self.commits_in(&name).await - before)
    }

    async fn commits_in(&self, database: &str) -> f64 {
        let sql = "select xact_commit::float8 from pg_stat_database where datname = $1";
        self.outside.owner().query_one(sql, &[&database]).await.unwrap().get(0)
    }

    async fn connections_to(&self, database: &str) -> i64 {
        let sql = "select count(*) from pg_stat_activity where datname = $1 and usename = $2";
        self.outside.owner().query_one(sql, &[&database, &store::migrations::APP_ROLE]).await.unwrap().get(0)
    }

    pub(crate) async fn finish(self) {
        self.outside.finish().await;
    }
}

/// Single-row inserts, each its own commit, into the narrowest table that could hold an order.
async fn commits(database: &TestDatabase, time: Duration) -> Rate {
    database.owner().batch_execute("create table single_rows (id uuid primary key)").await.unwrap();
    let clients = prepared(database, CONNECTIONS, "insert into single_rows (id) values ($1)").await;
    settle(database).await;
    for_some_time(time, clients, |(client, statement): (Client, Statement), until| async move {
        let mut commits = 0;
        while Instant::now() < until {
            commits += client.execute(&statement, &[&Uuid::now_v7()]).await.unwrap();
        }
        commits
    })
    .await
}

/// Intake with nothing beside it, so many orders a second.
async fn paced(run: &mut Run, shop: &Shop, pace: f64) -> Seen {
    let crowd = Crowd::gather(shop, run.volumes.intake_orders / 2, &mut run.rng).await;
    settle(&shop.database).await;
    crowd.place_all(Some(pace)).await
}

/// Intake while a worker reserves orders of the same product at half its pace, and how often intake was found waiting
/// for a lock that a worker could hold.
async fn beside_worker(run: &mut Run, shop: &Shop, waiting: &[Uuid], pace: f64) -> (Seen, f64) {
    let worker = Worker::new(&shop.database).await;
    let mut events = shop.events(waiting, BATCH);
    let rest = events.split_off(events.len() / 4);
    let crowd = Crowd::gather(shop, run.volumes.intake_orders, &mut run.rng).await;
    settle(&shop.database).await;
    let started = Instant::now();
    let mut alone = 0;
    for event in &events {
        alone += worker.serve(event).await.0;
    }
    let orders_per_s = alone as f64 / started.elapsed().as_secs_f64();
    settle(&shop.database).await;
    let stop = Arc::new(AtomicBool::new(false));
    let pid = worker.pid;
    let watching = watch_locks(&shop.database, pid, Arc::clone(&stop)).await;
    let working = reserve_at_half_pace(worker, rest, orders_per_s, Arc::clone(&stop));
    let seen = crowd.place(Some(pace), &stop).await;
    stop.store(true, Relaxed);
    assert!(working.await.unwrap() > 0, "the worker did nothing beside intake");
    let waits = watching.await.unwrap();
    // Inserts that grow the same table wait for each other: that is the file, not a row.
    let for_others = waits.iter().filter(|event| *event != "extend").count();
    if !waits.is_empty() {
        run.note(&format!("intake was found waiting for {waits:?}"));
    }
    (seen, for_others as f64)
}

/// Intake while others look at their orders, and how many looks a second there were.
async fn beside_polls(run: &mut Run, shop: &Shop, before: &Seen, pace: f64) -> (Seen, f64) {
    let crowd = Crowd::gather(shop, run.volumes.intake_orders, &mut run.rng).await;
    settle(&shop.database).await;
    let stop = Arc::new(AtomicBool::new(false));
    let polling = poll(&shop.database, before.orders.clone(), Arc::clone(&stop));
    let seen = crowd.place(Some(pace), &stop).await;
    stop.store(true, Relaxed);
    (seen, polling.await.unwrap())
}

/// Intake in turn with nothing beside it and while people ask for codes that no provider takes, so that both see the same
/// machine and tables of the same size; and how many codes a second were refused.
async fn logins_in_turn(run: &mut Run, shop: &Shop, pace: f64) -> (Seen, Seen, f64) {
    let (mut alone, mut beside, mut refusals) = (Vec::new(), Vec::new(), Vec::new());
    for turn in 0..LOGIN_TURNS {
        let beside_first = turn % 2 == 1;
        for is_beside in [beside_first, !beside_first] {
            let crowd = Crowd::gather(shop, run.volumes.intake_orders / 2, &mut run.rng).await;
            settle(&shop.database).await;
            if !is_beside {
                alone.push(crowd.place_all(Some(pace)).await);
                continue;
            }
            let stop = Arc::new(AtomicBool::new(false));
            let failing = logins::fail(shop, turn, Arc::clone(&stop));
            beside.push(crowd.place(Some(pace), &stop).await);
            stop.store(true, Relaxed);
            refusals.push(failing.await.unwrap());
        }
    }
    let refusals_per_s = refusals.iter().sum::<f64>() / refusals.len() as f64;
    (Seen::together(alone), Seen::together(beside), refusals_per_s)
}

/// Intake on a database whose orders have the foreign key to products, or no foreign key at all.
async fn with_foreign_keys(run: &mut Run, wanted: bool) -> Seen {
    let shop = Shop::open(NUMBERS).await;
    let sql = if wanted {
        "do $$ begin
            if not exists (select from pg_constraint where conrelid = 'orders'::regclass and contype = 'f') then
                alter table orders add foreign key (tenant_id, product_id) references products (tenant_id, id);
            end if;
        end $$"
    } else {
        "do $$ declare name text; begin
            for name in select conname from pg_constraint where conrelid = 'orders'::regclass and contype = 'f' loop
                execute format('alter table orders drop constraint %I', name);
            end loop;
        end $$"
    };
    shop.database.owner().batch_execute(sql).await.unwrap();
    let crowd = Crowd::gather(&shop, run.volumes.intake_orders, &mut run.rng).await;
    settle(&shop.database).await;
    let seen = crowd.place_all(None).await;
    shop.database.finish_under_way().await;
    seen
}
