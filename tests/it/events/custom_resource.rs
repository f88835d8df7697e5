//! `cloudformation-*.json`: the migration as a custom resource. CloudFormation waits for an hour for an answer that
//! does not come, so every path gives one.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use edge::{Deadline, Environment};
use serde_json::Value;
use tests::TestDatabase;
use tests::server::{Reply, Request, Server};

use super::{event, names};

const TIME: Duration = Duration::from_secs(30);

/// Where answers go: remembers them, after refusing the first few.
struct Inbox {
    server: Server,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Inbox {
    async fn open(refusals: usize) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&seen);
        let server = Server::start(move |request| {
            let mut seen = kept.lock().unwrap();
            seen.push(request);
            let status = if seen.len() > refusals { 200 } else { 503 };
            async move { Reply { status, ..Reply::default() } }
        })
        .await;
        Self { server, seen }
    }

    /// The event of a file, with an address that is ours.
    fn event(&self, name: &str) -> Value {
        let mut event = event(name);
        event["ResponseURL"] = format!("http://{}/answer?X-Amz-Signature=s", self.server.address()).into();
        event
    }

    /// The last answer, which must belong to the event.
    fn answer(&self, event: &Value) -> Value {
        let seen = self.seen.lock().unwrap();
        let request = seen.last().expect("an answer came");
        assert_eq!((request.method.as_str(), request.path.as_str()), ("PUT", "/answer?X-Amz-Signature=s"));
        assert!(request.headers.iter().all(|(name, _)| name != "content-type"), "the URL was signed without one");
        assert!(request.body.len() < 4_096, "CloudFormation reads no more");
        let answer: Value = serde_json::from_slice(&request.body).unwrap();
        for name in ["StackId", "RequestId", "LogicalResourceId"] {
            assert_eq!(answer[name], event[name]);
        }
        // Another id would make CloudFormation delete the "old" database.
        assert_eq!(answer["PhysicalResourceId"], "tirada-database");
        answer
    }
}

fn with_url(url: &str) -> Environment {
    let url = url.to_owned();
    Environment::from_lookup(move |name| (name == "TIRADA_OWNER_DATABASE_URL").then(|| url.clone()))
}

async fn owner_url(database: &TestDatabase) -> String {
    let row = database.owner().query_one("select current_database()::text", &[]).await.unwrap();
    let server = std::env::var("TIRADA_TEST_POSTGRES_URL").unwrap();
    let (server, _) = server.rsplit_once('/').unwrap();
    format!("{server}/{}", row.get::<_, &str>(0))
}

/// One test, because migrations change the role that all databases of a server share.
#[tokio::test(flavor = "multi_thread")]
async fn every_path_answers() {
    let database = TestDatabase::new().await;
    let good = with_url(&owner_url(&database).await);
    let inbox = Inbox::open(2).await;

    // Create, on an empty database, and the answer is delivered although the address refuses it twice.
    database.owner().batch_execute("drop schema public cascade; create schema public").await.unwrap();
    let create = inbox.event("cloudformation-migrate-create");
    migrate::handle(&good, create.clone(), Deadline::after(TIME)).await.unwrap();
    assert_eq!(inbox.seen.lock().unwrap().len(), 3);
    let answer = inbox.answer(&create);
    assert_eq!((&answer["Status"], &answer["Reason"]), (&"SUCCESS".into(), &"".into()));
    assert_eq!(answer["Data"]["Version"], store::migrations::latest().to_string());
    let rows = database.owner().query_one("select count(*) from platform", &[]).await.unwrap();
    assert_eq!(rows.get::<_, i64>(0), 1, "the schema is there");

    // Update with nothing to do.
    let update = inbox.event("cloudformation-migrate-update");
    migrate::handle(&good, update.clone(), Deadline::after(TIME)).await.unwrap();
    assert_eq!(inbox.answer(&update)["Status"], "SUCCESS");

    // Delete touches nothing, and needs no database.
    let delete = inbox.event("cloudformation-migrate-delete");
    let nothing = Environment::from_lookup(|_| None);
    migrate::handle(&nothing, delete.clone(), Deadline::after(TIME)).await.unwrap();
    assert_eq!(inbox.answer(&delete)["Status"], "SUCCESS");

    failures(&database, &inbox, &good).await;

    // A plain invocation, and a file of another kind, are no requests: they migrate and return their report.
    let report = migrate::handle(&good, Value::Null, Deadline::after(TIME)).await.unwrap();
    assert_eq!(report["version"], store::migrations::latest());
    assert_eq!(names("cloudformation-").len(), 3);
    database.finish().await;
}

async fn failures(database: &TestDatabase, inbox: &Inbox, good: &Environment) {
    let event = inbox.event("cloudformation-migrate-update");
    let reason = async |environment: &Environment, deadline: Duration| {
        let seen = inbox.seen.lock().unwrap().len();
        migrate::handle(environment, event.clone(), Deadline::after(deadline)).await.unwrap();
        assert_eq!(inbox.seen.lock().unwrap().len(), seen + 1);
        let answer = inbox.answer(&event);
        assert_eq!(answer["Status"], "FAILED");
        answer["Reason"].as_str().unwrap().to_owned()
    };
    let unset = reason(&Environment::from_lookup(|_| None), TIME).await;
    assert!(unset.contains("TIRADA_OWNER_DATABASE_HOST"), "{unset}");
    let away = reason(&with_url("postgres://tirada:hunter2@127.0.0.1:9/tirada"), TIME).await;
    assert!(away.contains("connect") && !away.contains("hunter2"), "{away}");
    let panicked = reason(&Environment::from_lookup(|_| panic!("on purpose")), TIME).await;
    assert!(panicked.contains("panicked") && !panicked.contains("purpose"), "{panicked}");

    // A migration whose text has changed since it was applied.
    let owner = database.owner();
    let row = owner.query_one("select checksum from refinery_schema_history where version = 2", &[]).await.unwrap();
    let original: String = row.get(0);
    let set = "update refinery_schema_history set checksum = $1 where version = 2";
    owner.execute(set, &[&"1"]).await.unwrap();
    let divergent = reason(good, TIME).await;
    assert!(divergent.contains("V2"), "{divergent}");
    owner.execute(set, &[&original]).await.unwrap();

    // Somebody else migrates for longer than this function may wait.
    let other = database.another_owner().await;
    other.batch_execute("select pg_advisory_lock(x'746972616461'::bigint)").await.unwrap();
    let slow = reason(good, Duration::from_millis(500)).await;
    assert!(slow.contains("in time"), "{slow}");
    drop(other);
    let report = migrate::handle(good, Value::Null, Deadline::after(TIME)).await.unwrap();
    assert_eq!(report["version"], store::migrations::latest(), "and the next try works");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_cannot_be_delivered_is_an_error_so_that_lambda_tries_again() {
    let inbox = Inbox::open(usize::MAX).await;
    let event = inbox.event("cloudformation-migrate-delete");
    let nothing = Environment::from_lookup(|_| None);
    let error = migrate::handle(&nothing, event, Deadline::after(TIME)).await.unwrap_err();
    assert!(!error.chain().contains("X-Amz-Signature"), "the URL is a credential: {}", error.chain());
    assert!(inbox.seen.lock().unwrap().len() > 1, "it was tried more than once");
}
