//! Clocks and counters: work at once for some time, and the WAL that it wrote.

use std::time::{Duration, Instant};

use tests::TestDatabase;
use tokio::task::JoinSet;
use tokio_postgres::Client;

/// How much was done, and in what time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate {
    pub(crate) count: u64,
    pub(crate) time: Duration,
}

impl Rate {
    pub(crate) fn per_second(self) -> f64 {
        self.count as f64 / self.time.as_secs_f64()
    }
}

/// Runs every task until the time is over; each counts what it did. The time is that of the slowest.
pub(crate) async fn for_some_time<T, F>(time: Duration, tasks: Vec<T>, work: impl Fn(T, Instant) -> F) -> Rate
where
    F: Future<Output = u64> + Send + 'static,
{
    let started = Instant::now();
    let until = started + time;
    let mut running = JoinSet::new();
    for task in tasks {
        running.spawn(work(task, until));
    }
    let mut count = 0;
    while let Some(ended) = running.join_next().await {
        count += ended.unwrap();
    }
    Rate { count, time: started.elapsed() }
}

/// A position in the server's log of changes.
#[derive(Debug, Clone)]
pub(crate) struct Wal(String);

impl Wal {
    pub(crate) async fn now(client: &Client) -> Self {
        Self(client.query_one("select pg_current_wal_lsn()::text", &[]).await.unwrap().get(0))
    }

    /// Bytes written since then.
    pub(crate) async fn bytes_since(&self, client: &Client) -> f64 {
        let sql = "select (pg_current_wal_lsn() - $1::text::pg_lsn)::float8";
        client.query_one(sql, &[&self.0]).await.unwrap().get(0)
    }

    /// Bytes, records and page images written since then, by kind of record, the most first.
    pub(crate) async fn kinds_since(&self, client: &Client) -> Vec<(String, f64)> {
        let sql = "select \"resource_manager/record_type\", combined_size::float8
            from pg_get_wal_stats($1::text::pg_lsn, pg_current_wal_lsn(), true) where combined_size > 0
            order by 2 desc limit 16";
        client.batch_execute("create extension if not exists pg_walinspect").await.unwrap();
        let rows = client.query(sql, &[&self.0]).await.unwrap();
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    }
}

/// The same state before every measurement: no dead rows, fresh statistics, nothing that waits to be written.
pub(crate) async fn settle(database: &TestDatabase) {
    database.owner().batch_execute("vacuum (analyze)").await.unwrap();
    database.owner().batch_execute("checkpoint").await.unwrap();
}
