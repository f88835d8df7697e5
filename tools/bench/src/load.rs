//! What goes on beside intake: a worker that reserves at half its pace, buyers who look at their orders, and a look
//! at who waits for whose lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tests::TestDatabase;
use tests::http::{self, Buyer};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{MissedTickBehavior, interval, interval_at};
use uuid::Uuid;

use crate::settings::{BATCH, CONNECTIONS, LOCKS_SEEN_EVERY, POLLS_PER_S};
use crate::workers::Worker;

/// A worker that takes events at half the pace of which it is capable, until none is left or it is told to stop; it
/// says stop itself when none is left.
pub(crate) fn reserve_at_half_pace(
    worker: Worker,
    events: Vec<String>,
    orders_per_s: f64,
    stop: Arc<AtomicBool>,
) -> JoinHandle<u64> {
    let pace = Duration::from_secs_f64(2.0 * BATCH as f64 / orders_per_s);
    tokio::spawn(async move {
        let mut turns = interval(pace);
        let mut done = 0;
        for event in events {
            turns.tick().await;
            if stop.load(Relaxed) {
                return done;
            }
            done += worker.serve(&event).await.0;
        }
        stop.store(true, Relaxed);
        done
    })
}

/// Environments of `order-status` that read `POLLS_PER_S` orders a second, each order once, until they are told to
/// stop; they say stop themselves when they have read all. How many they read in a second.
pub(crate) fn poll(database: &TestDatabase, orders: Vec<(Buyer, Uuid)>, stop: Arc<AtomicBool>) -> JoinHandle<f64> {
    let apis: Vec<_> = (0..CONNECTIONS).map(|_| http::order_status(database.app(1))).collect();
    let started = Instant::now();
    let read = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    let share = orders.len() / apis.len();
    for (position, (api, orders)) in apis.into_iter().zip(orders.chunks(share).map(<[_]>::to_vec)).enumerate() {
        let (stop, read) = (Arc::clone(&stop), Arc::clone(&read));
        tasks.spawn(async move {
            let period = Duration::from_secs(1) * u32::try_from(CONNECTIONS).unwrap_or(1) / POLLS_PER_S;
            let first = period.mul_f64(position as f64 / CONNECTIONS as f64);
            let mut turns = interval_at(tokio::time::Instant::now() + first, period);
            turns.set_missed_tick_behavior(MissedTickBehavior::Burst);
            for (buyer, id) in orders {
                turns.tick().await;
                if stop.load(Relaxed) {
                    return;
                }
                let answer = buyer.read(&api, id).await;
                assert_eq!(answer.status, 200, "{}", answer.text());
                read.fetch_add(1, Relaxed);
            }
            stop.store(true, Relaxed);
        });
    }
    tokio::spawn(async move {
        tasks.join_all().await;
        read.load(Relaxed) as f64 / started.elapsed().as_secs_f64()
    })
}

/// Looks again and again which backends of the functions' role, those of the worker excepted, wait for a lock; what
/// each of them was found waiting for.
pub(crate) async fn watch_locks(
    database: &TestDatabase,
    worker: i32,
    stop: Arc<AtomicBool>,
) -> JoinHandle<Vec<String>> {
    let client = database.another_owner().await;
    let sql = "select wait_event from pg_stat_activity
        where usename = $1 and datname = current_database() and wait_event_type = 'Lock' and pid <> $2";
    let statement = client.prepare(sql).await.unwrap();
    tokio::spawn(async move {
        let mut seen = Vec::new();
        let mut turns = interval(LOCKS_SEEN_EVERY);
        while !stop.load(Relaxed) {
            turns.tick().await;
            let rows = client.query(&statement, &[&store::migrations::APP_ROLE, &worker]).await.unwrap();
            seen.extend(rows.iter().map(|row| row.get::<_, String>(0)));
        }
        seen
    })
}
