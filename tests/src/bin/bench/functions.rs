//! The release bootstraps as processes: their size, the time until they ask for their first event, and the memory that
//! they hold after it.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::messages::Queue;
use serde_json::{Value, json};
use tests::files;
use tests::http::{Buyer, ISSUER};
use tests::server::{Reply, Request, Server};
use tests::simulator::bootstrap;
use tests::staff;
use tests::template::{Function, Template, pascal};
use tokio::process::{Child, Command};
use tokio::sync::{Mutex, mpsc};
use uuid::Uuid;

use crate::run::{Run, median_ms};
use crate::settings::{NUMBERS, PATIENCE, STARTS};
use crate::shop::{Mix, Shop};

/// One round.
pub(crate) async fn round(run: &mut Run) {
    let shop = Shop::open(NUMBERS).await;
    let template = Template::read("template.yaml");
    for function in template.functions() {
        let name = function.name();
        run.step(&format!("starts of {name}"));
        let mut times = Vec::with_capacity(STARTS);
        for _ in 0..STARTS {
            times.push(Environment::start(&template, function, &shop).await.init);
        }
        let mut environment = Environment::start(&template, function, &shop).await;
        let event = event(name, &shop, run).await;
        let rss = environment.invoke(event).await;
        run.add(&format!("bootstrap_bytes.{name}"), fs::metadata(bootstrap(name)).unwrap().len() as f64);
        run.add(&format!("init_ms.{name}"), median_ms(&times));
        run.add(&format!("rss_bytes.{name}"), rss);
    }
    shop.database.finish_under_way().await;
}

/// What a function says to the runtime API, with the time at which it said it.
enum Said {
    Next(Instant),
    Answer,
    Error(Value),
}

/// A process that waits for an event.
struct Environment {
    process: Child,
    init: Duration,
    events: mpsc::UnboundedSender<Value>,
    said: mpsc::UnboundedReceiver<Said>,
    _server: Server,
}

impl Environment {
    async fn start(template: &Template, function: Function<'_>, shop: &Shop) -> Self {
        let (events, waiting) = mpsc::unbounded_channel();
        let (says, mut said) = mpsc::unbounded_channel();
        let waiting = Arc::new(Mutex::new(waiting));
        let server = Server::start(move |request| {
            let (waiting, says) = (Arc::clone(&waiting), says.clone());
            async move { serve(request, &waiting, &says).await }
        })
        .await;
        let mut command = command(template, function, &server.address(), shop).await;
        let started = Instant::now();
        let process = command.spawn().unwrap();
        let first = tokio::time::timeout(PATIENCE, said.recv()).await.expect("the function starts in time");
        let Some(Said::Next(at)) = first else { panic!("{} did not ask for an event first", function.name()) };
        Self { process, init: at - started, events, said, _server: server }
    }

    /// The memory that it holds after an event, in bytes.
    async fn invoke(&mut self, event: Value) -> f64 {
        self.events.send(event).unwrap();
        // Its answer, and its next question.
        for _ in 0..2 {
            let said = tokio::time::timeout(PATIENCE, self.said.recv()).await.expect("the function answers in time");
            if let Some(Said::Error(error)) = said {
                panic!("the function failed: {error}");
            }
        }
        let pid = self.process.id().expect("it runs");
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a resident size");
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
        ("ExportsBucket", "exports".into()),
        ("UploadsBucket", "uploads".into()),
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

/// Something real to do: it connects to the database, and to the queue where the function sends.
async fn event(name: &str, shop: &Shop, run: &mut Run) -> Value {
    let file = match name {
        "catalog" => "http-read-availability",
        "orders" => "http-place-order",
        "order-status" => "http-list-orders",
        "payments" => "http-pay-order",
        "payment-webhook" => "http-receive-webhook",
        "login" => "http-ask-login-code",
        "staff" => "http-ask-staff-link",
        "admin" => "http-list-store-products",
        "send-login-code" => "sqs-send-login-code",
        "send-notice" => "sqs-send-notice",
        "write-exports" => "sqs-write-exports",
        "check-uploads" => "sqs-check-uploads",
        "reserve-numbers" => {
            let placed = shop.place(BATCH_AT_START, Mix::Both, &mut run.rng).await;
            return serde_json::from_str(&shop.events(&placed, BATCH_AT_START)[0]).unwrap();
        }
        "release-numbers" => "sqs-release-numbers",
        "settle-payment" => "sqs-settle-payment",
        "expire-reservations" => "scheduler-expire-reservations",
        "reconcile-orders" => "scheduler-reconcile-orders",
        _ => return json!({}),
    };
    let described = &shop.product.described;
    let buyer = Buyer::new(described.tenant_id);
    // The example's product and token, wherever they stand in it.
    let text = files::read(format!("events/{file}.json"))
        .replace("01995b1f-0a40-7c33-9d4e-5f60718293a4", &described.id.to_string())
        // Of a session that nobody has: the database is asked all the same.
        .replace("Bearer replace-with-a-token-of-staff", &staff::bearer(described.tenant_id, buyer.id, described.id))
        .replace("Bearer replace-with-a-token", &buyer.bearer);
    serde_json::from_str(&text).unwrap()
}

/// Orders in the first batch: what a queue that has just begun to fill gives.
const BATCH_AT_START: usize = 10;

/// The runtime API, and a queue that takes every message.
async fn serve(
    request: Request,
    waiting: &Mutex<mpsc::UnboundedReceiver<Value>>,
    says: &mpsc::UnboundedSender<Said>,
) -> Reply {
    let Some(call) = request.path.strip_prefix("/2018-06-01/runtime/") else { return taken(&request) };
    match call.rsplit('/').next().unwrap_or_default() {
        "next" => {
            let _ = says.send(Said::Next(Instant::now()));
            match waiting.lock().await.recv().await {
                Some(event) => invocation(&event),
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

fn invocation(event: &Value) -> Reply {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let headers = vec![
        ("content-type", "application/json".into()),
        ("lambda-runtime-aws-request-id", Uuid::now_v7().to_string()),
        ("lambda-runtime-deadline-ms", (now + PATIENCE).as_millis().to_string()),
        ("lambda-runtime-invoked-function-arn", "arn:aws:lambda:us-east-1:123456789012:function:bench".into()),
        ("lambda-runtime-trace-id", "Root=1-0-0".into()),
    ];
    Reply { status: 200, headers, body: event.to_string().into_bytes() }
}
