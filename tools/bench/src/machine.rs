//! The machine and the server that were measured.

use std::fs;

use serde_json::{Map, Value, json};
use tests::TestDatabase;

/// Settings of the server that change what is measured.
const SETTINGS: [&str; 14] = [
    "checkpoint_timeout",
    "effective_cache_size",
    "fsync",
    "full_page_writes",
    "huge_pages_status",
    "io_method",
    "max_connections",
    "max_wal_size",
    "min_wal_size",
    "shared_buffers",
    "synchronous_commit",
    "wal_buffers",
    "wal_compression",
    "wal_sync_method",
];

/// Processors, memory, kernel, Postgres and its settings.
pub(crate) async fn describe(database: &TestDatabase) -> Value {
    let owner = database.owner();
    let version: String = owner.query_one("select version()", &[]).await.unwrap().get(0);
    let mut settings = Map::new();
    for name in SETTINGS {
        let value: String = owner.query_one("select current_setting($1)", &[&name]).await.unwrap().get(0);
        settings.insert(name.to_owned(), value.into());
    }
    let durable = ["fsync", "synchronous_commit", "full_page_writes"].iter().all(|name| settings[*name] == "on");
    assert!(durable, "this server is not durable; `make bench` starts one that is: {settings:?}");
    let line = |path: &str, name: &str| {
        let text = fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_once(':').map_or("", |(_, value)| value.trim()).to_owned()
    };
    json!({
        "cpus": std::thread::available_parallelism().unwrap().get(),
        "cpu": line("/proc/cpuinfo", "model name"),
        "memory": line("/proc/meminfo", "MemTotal"),
        "kernel": fs::read_to_string("/proc/sys/kernel/osrelease").unwrap().trim(),
        "postgres": version,
        "settings": settings,
    })
}
