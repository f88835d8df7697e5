//! Lambda's runtime API and SQS, small: enough to run a real release bootstrap as a process and to talk to it.

use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::process::{Child, Command};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use uuid::Uuid;

use crate::database::APP_PASSWORD;
use crate::server::{Reply, Request, Server};
use crate::{TestDatabase, files};

/// How long an invocation may take, and a process that is expected to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// A call of the SQS client: the operation and its input.
pub type QueueCall = (String, Value);

/// What a function answered: its response, or the error of the whole invocation.
pub type Outcome = std::result::Result<Value, Value>;

/// SQS's answers, and a record of what was asked.
#[derive(Clone, Default)]
pub struct FakeSqs(Arc<Mutex<Vec<QueueCall>>>);

impl FakeSqs {
    /// The calls since the last look.
    #[must_use]
    pub fn take(&self) -> Vec<QueueCall> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// Answers a call; every entry succeeds.
    #[must_use]
    pub fn answer(&self, request: &Request) -> Reply {
        let target = request.headers.iter().find(|(name, _)| name == "x-amz-target");
        let operation =
            target.and_then(|(_, value)| value.strip_prefix("AmazonSQS.")).expect("a call of SQS").to_owned();
        let input: Value = serde_json::from_slice(&request.body).unwrap();
        let entry = |entry: &Value| json!({ "Id": entry["Id"], "MessageId": "message", "MD5OfMessageBody": "0" });
        let successful: Vec<Value> = input["Entries"].as_array().into_iter().flatten().map(entry).collect();
        self.0.lock().unwrap().push((operation, input));
        let body = json!({ "Successful": successful, "Failed": [] }).to_string().into_bytes();
        Reply { status: 200, headers: vec![("content-type", "application/x-amz-json-1.0".into())], body }
    }
}

/// A release bootstrap that runs.
pub struct Bootstrap {
    process: Child,
    events: UnboundedSender<Value>,
    outcomes: UnboundedReceiver<Outcome>,
    /// What it asked of SQS.
    pub sqs: FakeSqs,
    _server: Server,
}

impl Bootstrap {
    /// Starts the function of this name with these variables, over a database.
    pub async fn start(name: &str, database: &TestDatabase, variables: &[(&str, &str)]) -> Self {
        let (events, waiting) = unbounded_channel();
        let (answered, outcomes) = unbounded_channel();
        let sqs = FakeSqs::default();
        let waiting = Arc::new(tokio::sync::Mutex::new(waiting));
        let api = (Arc::clone(&waiting), answered, sqs.clone());
        let server = Server::start(move |request| {
            let (waiting, answered, sqs) = api.clone();
            async move { serve(request, &waiting, &answered, &sqs).await }
        })
        .await;
        let mut command = command(name, &server.address(), &database_url(database).await, variables);
        let process = command.stdout(Stdio::null()).spawn().unwrap_or_else(|error| panic!("{}: {error}", path(name)));
        Self { process, events, outcomes, sqs, _server: server }
    }

    /// Hands one event to the function and waits for what it says.
    pub async fn invoke(&mut self, event: Value) -> Outcome {
        self.events.send(event).unwrap();
        let outcome = tokio::time::timeout(PATIENCE, self.outcomes.recv()).await;
        outcome.expect("the function answers in time").expect("the function's server lives")
    }

    /// Whether the process still runs.
    pub fn is_alive(&mut self) -> bool {
        self.process.try_wait().unwrap().is_none()
    }
}

/// Starts a function that is expected to refuse; how it ended, and all that it wrote.
pub async fn refused(name: &str, database: &TestDatabase, variables: &[(&str, &str)]) -> (ExitStatus, String) {
    let mut command = command(name, "127.0.0.1:9", &database_url(database).await, variables);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await.expect("it ends").unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status, String::from_utf8_lossy(&text).into_owned())
}

/// Whether there are bootstraps, of a release build, to run.
#[must_use]
pub fn is_built() -> bool {
    std::path::Path::new(&path("orders")).exists()
}

fn path(name: &str) -> String {
    let folder = std::env::var("TIRADA_BOOTSTRAPS");
    let folder = folder.unwrap_or_else(|_| files::root().join("target/lambda").display().to_string());
    format!("{folder}/{name}/bootstrap")
}

async fn database_url(database: &TestDatabase) -> String {
    let row = database.owner().query_one("select current_database()::text", &[]).await.unwrap();
    let (name, role): (String, _) = (row.get(0), store::migrations::APP_ROLE);
    let server = std::env::var("TIRADA_TEST_POSTGRES_URL").unwrap();
    let place = server.rsplit_once('@').map_or(server.as_str(), |(_, place)| place);
    format!("postgres://{role}:{APP_PASSWORD}@{}/{name}", place.split('/').next().unwrap_or_default())
}

/// Variables as the template sets them, then those of a test.
fn command(name: &str, api: &str, database_url: &str, variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(path(name));
    let keys = edge::auth::development::JWKS;
    command.env_clear().kill_on_drop(true).stdin(Stdio::null()).envs([
        ("AWS_LAMBDA_RUNTIME_API", api),
        ("AWS_LAMBDA_FUNCTION_NAME", name),
        ("AWS_LAMBDA_FUNCTION_VERSION", "1"),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("AWS_ENDPOINT_URL", &format!("http://{api}")),
        ("TIRADA_STAGE", "local"),
        ("TIRADA_FUNCTION_TIMEOUT_MS", if name.contains("order") { "10000" } else { "60000" }),
        ("TIRADA_DATABASE_URL", database_url),
        ("TIRADA_TOKEN_KEYS", keys),
        ("TIRADA_TOKEN_ISSUER", crate::http::ISSUER),
        ("TIRADA_QUEUE_RESERVE_NUMBERS_URL", &format!("http://{api}/reserve-numbers")),
        ("TIRADA_QUEUE_RELEASE_NUMBERS_URL", &format!("http://{api}/release-numbers")),
    ]);
    command.envs(variables.iter().copied());
    command
}

async fn serve(
    request: Request,
    waiting: &tokio::sync::Mutex<UnboundedReceiver<Value>>,
    answered: &UnboundedSender<Outcome>,
    sqs: &FakeSqs,
) -> Reply {
    let Some(call) = request.path.strip_prefix("/2018-06-01/runtime/") else { return sqs.answer(&request) };
    let body = || serde_json::from_slice(&request.body).unwrap_or_default();
    let accepted = Reply { status: 202, ..Reply::default() };
    match call.rsplit('/').next().unwrap_or_default() {
        // Lambda answers only when there is an event, however long that takes.
        "next" => match waiting.lock().await.recv().await {
            Some(event) => invocation(&event),
            None => std::future::pending().await,
        },
        "response" => answered.send(Ok(body())).map_or(Reply { status: 410, ..Reply::default() }, |()| accepted),
        "error" => answered.send(Err(body())).map_or(Reply { status: 410, ..Reply::default() }, |()| accepted),
        other => panic!("the runtime API has no {other}"),
    }
}

fn invocation(event: &Value) -> Reply {
    let deadline = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + Duration::from_secs(60);
    let headers = vec![
        ("content-type", "application/json".into()),
        ("lambda-runtime-aws-request-id", Uuid::now_v7().to_string()),
        ("lambda-runtime-deadline-ms", deadline.as_millis().to_string()),
        ("lambda-runtime-invoked-function-arn", "arn:aws:lambda:us-east-1:123456789012:function:it".into()),
        ("lambda-runtime-trace-id", "Root=1-0-0".into()),
    ];
    Reply { status: 200, headers, body: event.to_string().into_bytes() }
}
