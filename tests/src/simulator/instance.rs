//! One execution environment: a real bootstrap as a process, behind a runtime API of its own.

use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tokio::process::{Child, Command};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use uuid::Uuid;

use super::log::Log;
use super::signals::Handle;
use crate::server::{Reply, Request, Server};

/// What Lambda allows an environment until it asks for its first event.
const INIT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a process may take from its answer to asking for the next event.
const NEXT_TIMEOUT: Duration = Duration::from_secs(2);

/// How an invocation ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// With a response.
    Answer(Value),
    /// With an error of the whole invocation.
    Error(Value),
    /// Not in the function's time: the process was killed.
    TimedOut,
    /// The process ended, before or while it worked.
    Crashed,
    /// Not begun: every environment that the concurrency allows was busy.
    Throttled,
}

impl Outcome {
    /// The response, which there must be.
    #[allow(clippy::must_use_candidate, reason = "often called for its check")]
    pub fn answer(self) -> Value {
        match self {
            Self::Answer(value) => value,
            other => panic!("the function did not answer: {other:?}"),
        }
    }
}

/// What a process is started with.
pub(super) struct Start<'a> {
    pub(super) program: &'a str,
    pub(super) number: u64,
    pub(super) variables: Vec<(String, String)>,
    /// How far its clock, and its host's, is off, in seconds.
    pub(super) skew_s: i64,
    pub(super) log: &'a Log,
}

struct Event {
    body: Value,
    deadline_ms: u128,
}

enum Said {
    Next,
    Done(Outcome),
}

/// An environment.
pub(super) struct Instance {
    process: Child,
    handle: Arc<Handle>,
    events: UnboundedSender<Event>,
    said: UnboundedReceiver<Said>,
    skew_s: i64,
    _server: Server,
}

impl Instance {
    /// Starts a process and waits until it asks for an event; none if it ends before, which its log says.
    pub(super) async fn start(start: Start<'_>) -> Option<Self> {
        let (events, waiting) = unbounded_channel();
        let (says, said) = unbounded_channel();
        let waiting = Arc::new(tokio::sync::Mutex::new(waiting));
        let server = Server::start(move |request| {
            let (waiting, says) = (Arc::clone(&waiting), says.clone());
            async move { serve(request, &waiting, &says).await }
        })
        .await;
        let mut command = Command::new(start.program);
        command.env_clear().envs(start.variables).env("AWS_LAMBDA_RUNTIME_API", server.address());
        command.kill_on_drop(true).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap_or_else(|error| panic!("{}: {error}", start.program));
        start.log.follow(start.number, process.stdout.take().expect("piped"));
        start.log.follow(start.number, process.stderr.take().expect("piped"));
        let handle = Arc::new(Handle::of(process.id().expect("it has not been waited for")));
        let mut instance = Self { process, handle, events, said, skew_s: start.skew_s, _server: server };
        if instance.asks_for_an_event(INIT_TIMEOUT).await {
            return Some(instance);
        }
        let ended = instance.process.wait().await.expect("a child");
        start.log.push(format!("[{}] ended as it started: {ended}", start.number));
        None
    }

    /// A handle for signals from elsewhere.
    pub(super) fn handle(&self) -> Arc<Handle> {
        Arc::clone(&self.handle)
    }

    /// Whether the process still runs.
    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    /// Hands over an event and waits for what comes of it. What is not done in time is killed.
    pub(super) async fn invoke(&mut self, body: Value, timeout: Duration) -> Outcome {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
        let skew = Duration::from_secs(self.skew_s.unsigned_abs());
        let now = if self.skew_s < 0 { now.saturating_sub(skew) } else { now + skew };
        let _ = self.events.send(Event { body, deadline_ms: (now + timeout).as_millis() });
        let outcome = tokio::select! {
            biased;
            outcome = done(&mut self.said) => outcome,
            _ = self.process.wait() => self.last_words(),
            () = tokio::time::sleep(timeout) => Outcome::TimedOut,
        };
        if outcome == Outcome::TimedOut {
            let _ = self.process.kill().await;
        }
        outcome
    }

    /// Whether the process asks for an event within a time; it is killed if not.
    pub(super) async fn asks_for_an_event(&mut self, timeout: Duration) -> bool {
        let asked = tokio::select! {
            said = self.said.recv() => matches!(said, Some(Said::Next)),
            _ = self.process.wait() => false,
            () = tokio::time::sleep(timeout) => false,
        };
        if !asked {
            let _ = self.process.kill().await;
        }
        asked
    }

    /// Whether the process is ready for another event after its answer.
    pub(super) async fn is_ready_again(&mut self) -> bool {
        self.asks_for_an_event(NEXT_TIMEOUT).await
    }

    /// An answer that was on its way when the process ended counts.
    fn last_words(&mut self) -> Outcome {
        while let Ok(said) = self.said.try_recv() {
            if let Said::Done(outcome) = said {
                return outcome;
            }
        }
        Outcome::Crashed
    }
}

async fn done(said: &mut UnboundedReceiver<Said>) -> Outcome {
    loop {
        match said.recv().await {
            Some(Said::Done(outcome)) => return outcome,
            Some(Said::Next) => {}
            None => std::future::pending().await,
        }
    }
}

async fn serve(
    request: Request,
    waiting: &tokio::sync::Mutex<UnboundedReceiver<Event>>,
    says: &UnboundedSender<Said>,
) -> Reply {
    let body = || serde_json::from_slice(&request.body).unwrap_or(Value::String("not JSON".into()));
    let outcome = match request.path.rsplit('/').next().unwrap_or_default() {
        // Lambda answers only when there is an event, however long that takes.
        "next" => {
            let _ = says.send(Said::Next);
            return match waiting.lock().await.recv().await {
                Some(event) => invocation(&event),
                None => std::future::pending().await,
            };
        }
        "response" => Outcome::Answer(body()),
        "error" => Outcome::Error(body()),
        other => panic!("the runtime API has no {other}"),
    };
    let _ = says.send(Said::Done(outcome));
    Reply { status: 202, ..Reply::default() }
}

fn invocation(event: &Event) -> Reply {
    let headers = vec![
        ("content-type", "application/json".into()),
        ("lambda-runtime-aws-request-id", Uuid::now_v7().to_string()),
        ("lambda-runtime-deadline-ms", event.deadline_ms.to_string()),
        ("lambda-runtime-invoked-function-arn", "arn:aws:lambda:us-east-1:123456789012:function:tests".into()),
        ("lambda-runtime-trace-id", "Root=1-0-0".into()),
    ];
    Reply { status: 200, headers, body: event.body.to_string().into_bytes() }
}
