//! The migrated database that every test's database is a copy of: made once per schema that a build makes.

use std::path::Path;

use secrecy::SecretString;
use store::migrations;
use tokio_postgres::{Client, Config};

use super::{APP_PASSWORD, connect, drop_database};

/// Key of the session lock under which templates are made: "template" in ASCII, shortened.
const TEMPLATE_LOCK: i64 = 0x7465_6d70_6c61;

/// The name of the template, made now if it is missing. Safe against other test processes.
pub(super) async fn ensure(admin: &Client, server: &Config) -> String {
    let name = format!("tirada_template_{:016x}", migrations::fingerprint());
    if exists(admin, &name).await {
        return name;
    }
    admin.batch_execute(&format!("select pg_advisory_lock({TEMPLATE_LOCK})")).await.expect("template lock");
    if !exists(admin, &name).await {
        make(admin, server, &name).await;
    }
    admin.batch_execute(&format!("select pg_advisory_unlock({TEMPLATE_LOCK})")).await.expect("template unlock");
    name
}

async fn make(admin: &Client, server: &Config, name: &str) {
    let building = format!("{name}_building");
    drop_database(admin, &building).await;
    admin.batch_execute(&format!("create database {building}")).await.expect("create the template");
    let mut owner = connect(server.clone().dbname(&building)).await;
    let report = migrations::run(&mut owner).await.expect("migrate the template");
    assert_eq!(report.applied.len(), files().len(), "the build knows other migrations than the folder: build again");
    migrations::prepare_role(&owner, Some(&SecretString::from(APP_PASSWORD))).await.expect("prepare the role");
    drop(owner);
    // The server notices a closed connection a moment later.
    let rename = format!("alter database {building} rename to {name}");
    for _ in 0..100 {
        if admin.batch_execute(&rename).await.is_ok() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the template {building} is still in use");
}

async fn exists(admin: &Client, name: &str) -> bool {
    let sql = "select exists (select from pg_database where datname = $1)";
    admin.query_one(sql, &[&name]).await.expect("look for the template").get(0)
}

fn files() -> Vec<std::path::PathBuf> {
    let folder = std::fs::read_dir(root().join("migrations")).expect("the migrations");
    let mut files: Vec<_> = folder.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('V')));
    files.sort();
    files
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}
