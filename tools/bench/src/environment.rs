//! A release bootstrap as a process behind a runtime API of its own, with the variables that the template gives it.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::messages::Queue;
use serde_json::{Value, json};
use tests::http::{BUCKET, ISSUER};
use tests::server::{Reply, Request, Server};
use tests::simulator::bootstrap;
use tests::template::{Function, Template, pascal};
use tokio::process::{Child, Command};
use tokio::sync::{Mutex, mpsc};
use uuid::Uuid;

use crate::settings::PATIENCE;
use crate::shop::Shop;

/// What a function says to the runtime API, with the time at which it said it.
enum Said {
    Next(Instant),
    Answer,
    Error(Value),
}

/// A process that waits for an event.
pub(crate) struct Environment {
    process: Child,
    /// How long it took to ask for its first event.
    pub(crate) init: Duration,
    /// How long an invocation may take.
    patience: Duration,
    events: mpsc::UnboundedSender<Value>,
    said: mpsc::UnboundedReceiver<Said>,
    _server: Server,
}

impl Environment {
    /// Starts a function that has this long for an invocation, with more variables.
    pub(crate) async fn start(
        template: &Template,
        function: Function<'_>,
        shop: &Shop,
        patience: Duration,
        more: &[(&str, &str)],
    ) -> Self {
        let (events, waiting) = mpsc::unbounded_channel();
        let (says, mut said) = mpsc::unbounded_channel();
        let waiting = Arc::new(Mutex::new(waiting));
        let server = Server::start(move |request| {
            let (waiting, says) = (Arc::clone(&waiting), says.clone());
            async move { serve(request, &waiting, &says, patience).await }
        })
        .await;
        let mut command = command(template, function, &server.address(), shop).await;
        command.envs(more.iter().copied());
        let started = Instant::now();
        let process = command.spawn().unwrap();
        let first = tokio::time::timeout(PATIENCE, said.recv()).await.expect("the function starts in time");
        let Some(Said::Next(at)) = first else { panic!("{} did not ask for an event first", function.name()) };
        Self { process, init: at - started, patience, events, said, _server: server }
    }

    /// Hands it an event, and waits until it asks for another.
    pub(crate) async fn invoke(&mut self, event: Value) {
        self.events.send(event).unwrap();
        // Its answer, and its next question.
        for _ in 0..2 {
            let said = tokio::time::timeout(self.patience, self.said.recv()).await;
            if let Some(Said::Error(error)) = said.expect("the function answers in time") {
                panic!("the function failed: {error}");
            }
        }
    }

    /// The memory that it holds now, in bytes.
    pub(crate) fn rss_bytes(&self) -> f64 {
        self.memory("VmRSS:")
    }

    /// The most that it has held, in bytes.
    pub(crate) fn peak_rss_bytes(&self) -> f64 {
        self.memory("VmHWM:")
    }

    fn memory(&self, name: &str) -> f64 {
        let pid = self.process.id().expect("it runs");
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a resident size");
        1_024.0 * line.trim().trim_end_matches(" kB").parse::<f64>().unwrap()
    }
}

/// A function as the template describes it, with this address for the runtime API, AWS and every queue.
async fn command(template: &Template, function: Function<'_>, api: &str, shop: &Shop) -> Command {
    let sql = "select host(inet_server_addr()) || ':' || inet_server_port() || '/' || current_database()";
    let place: String = shop.database.owner().query_one(sql, &[]).await.unwrap().get(0);
    let given = [
        ("Stage", "local".into()),
        ("DatabaseUrl", format!("postgres://{}@{place}", store::migrations::APP_ROLE)),
        ("OwnerDatabaseUrl", format!("postgres://postgres@{place}")),
        ("TokenKeys", edge::auth::development::JWKS.into()),
        ("TokenIssuer", ISSUER.into()),
        ("SealingKeys", edge::sealing::DEVELOPMENT_KEYS.into()),
        ("SigningKeys", edge::auth::development::SIGNING_KEYS.into()),
        ("LoginKeys", edge::login_keys::DEVELOPMENT_KEYS.into()),
        ("PhonesFile", "/dev/null".into()),
        ("MailsFile", "/dev/null".into()),
        ("ExportsBucket", BUCKET.into()),
        ("UploadsBucket", BUCKET.into()),
    ];
    let queue = |queue: Queue| (format!("{}Queue", pascal(queue.name())), format!("http://{api}/{}", queue.name()));
    let given = given.map(|(name, value)| (name.to_owned(), value)).into_iter().chain(Queue::ALL.map(queue));
    let given: BTreeMap<String, String> = given.collect();
    let name = function.name();
    let mut command = Command::new(bootstrap(name));
    command.env_clear().kill_on_drop(true).stdin(Stdio::null()).stdout(Stdio::null()).envs([
        ("AWS_LAMBDA_RUNTIME_API", api),
        ("AWS_LAMBDA_FUNCTION_NAME", name),
        ("AWS_LAMBDA_FUNCTION_VERSION", "1"),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("AWS_ENDPOINT_URL", &format!("http://{api}")),
    ]);
    command.envs(template.environment(function, &given));
    command
}

/// The runtime API, and a queue that takes every message.
async fn serve(
    request: Request,
    waiting: &Mutex<mpsc::UnboundedReceiver<Value>>,
    says: &mpsc::UnboundedSender<Said>,
    patience: Duration,
) -> Reply {
    let Some(call) = request.path.strip_prefix("/2018-06-01/runtime/") else { return taken(&request) };
    match call.rsplit('/').next().unwrap_or_default() {
        "next" => {
            let _ = says.send(Said::Next(Instant::now()));
            match waiting.lock().await.recv().await {
                Some(event) => invocation(&event, patience),
                None => std::future::pending().await,
            }
        }
        word => {
            let body = serde_json::from_slice(&request.body).unwrap_or_default();
            let _ = says.send(if word == "response" { Said::Answer } else { Said::Error(body) });
            Reply { status: 202, ..Reply::default() }
        }
    }
}

fn taken(request: &Request) -> Reply {
    let input: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let entries = input["Entries"].as_array().into_iter().flatten();
    let entry = |entry: &Value| json!({ "Id": entry["Id"], "MessageId": "message", "MD5OfMessageBody": "0" });
    let successful: Vec<Value> = entries.map(entry).collect();
    let body = json!({ "Successful": successful, "Failed": [] }).to_string().into_bytes();
    Reply { status: 200, headers: vec![("content-type", "application/x-amz-json-1.0".into())], body }
}

fn invocation(event: &Value, patience: Duration) -> Reply {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let headers = vec![
        ("content-type", "application/json".into()),
        ("lambda-runtime-aws-request-id", Uuid::now_v7().to_string()),
        ("lambda-runtime-deadline-ms", (now + patience).as_millis().to_string()),
        ("lambda-runtime-invoked-function-arn", "arn:aws:lambda:us-east-1:123456789012:function:bench".into()),
        ("lambda-runtime-trace-id", "Root=1-0-0".into()),
    ];
    Reply { status: 200, headers, body: event.to_string().into_bytes() }
}
