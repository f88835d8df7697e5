//! A Lambda function: environments that are started when all are busy, reused, frozen, and killed when they take too
//! long, within its reserved concurrency.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::RwLock;

use super::instance::{Instance, Outcome, Start};
use super::log::Log;
use super::signals::Handle;
use crate::files;

/// How a function runs. A change counts for environments and invocations that begin later.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The bootstrap.
    pub program: String,
    /// Variables of the process.
    pub variables: BTreeMap<String, String>,
    /// How long an invocation may take.
    pub timeout: Duration,
    /// Invocations at once.
    pub concurrency: usize,
    /// Whether environments are stopped between invocations.
    pub freezes: bool,
    /// How far the clock of new environments is off, in seconds. Needs libfaketime.
    pub skew_s: i64,
}

/// What a function's invocations came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Environments started.
    pub started: u64,
    /// Responses.
    pub answers: u64,
    /// Errors of whole invocations.
    pub errors: u64,
    /// Processes killed for their time.
    pub timeouts: u64,
    /// Processes that ended by themselves or were killed by a test.
    pub crashes: u64,
    /// Invocations refused.
    pub throttles: u64,
}

/// Stops new invocations while somebody has it for writing.
pub type Gate = Arc<RwLock<()>>;

/// A function.
#[derive(Clone)]
pub struct Function(Arc<Inner>);

struct Inner {
    name: String,
    gate: Gate,
    state: Mutex<State>,
    log: Log,
}

struct State {
    settings: Settings,
    idle: Vec<(u64, Instance)>,
    busy: HashMap<u64, Option<Arc<Handle>>>,
    armed: VecDeque<String>,
    last_number: u64,
    /// Environments up to this number are of an earlier deployment.
    replaced_up_to: u64,
    counts: Counts,
}

impl Function {
    /// A function without environments, behind a gate that it may share with others.
    #[must_use]
    pub fn new(name: &str, settings: Settings, gate: Gate) -> Self {
        let state = State {
            settings,
            idle: Vec::new(),
            busy: HashMap::new(),
            armed: VecDeque::new(),
            last_number: 0,
            replaced_up_to: 0,
            counts: Counts::default(),
        };
        Self(Arc::new(Inner { name: name.to_owned(), gate, state: Mutex::new(state), log: Log::default() }))
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// What it wrote.
    #[must_use]
    pub fn log(&self) -> &Log {
        &self.0.log
    }

    /// Changes how it runs.
    pub fn set(&self, change: impl FnOnce(&mut Settings)) {
        change(&mut self.state().settings);
    }

    /// Deploys it anew: invocations from now on get environments that were started with the change. Those under way
    /// end where they are, and their environments with them.
    pub fn deploy(&self, change: impl FnOnce(&mut Settings)) {
        let mut state = self.state();
        change(&mut state.settings);
        state.replaced_up_to = state.last_number;
        state.idle.clear();
    }

    /// How it runs now.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.state().settings.clone()
    }

    /// What its invocations came to so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.state().counts
    }

    /// Invocations under way.
    #[must_use]
    pub fn busy(&self) -> usize {
        self.state().busy.len()
    }

    /// Starts the next environment with these failpoints, and only that one: call it again for another. The idle
    /// environments end, so that the next invocation is the one.
    pub fn arm(&self, failpoints: &str) {
        let mut state = self.state();
        state.armed.push_back(failpoints.to_owned());
        state.idle.clear();
    }

    /// Forgets what was armed and not used, and ends the idle environments, whose failpoints may still be set.
    pub fn disarm(&self) {
        let mut state = self.state();
        state.armed.clear();
        state.idle.clear();
    }

    /// Ends the idle environments, as Lambda does when it wants.
    pub fn reap(&self) {
        self.state().idle.clear();
    }

    /// Kills the processes that are at work, as a lost machine would; how many.
    pub fn kill_busy(&self) -> usize {
        let state = self.state();
        state.busy.values().flatten().map(|handle| handle.kill()).count()
    }

    /// Invokes the function with an event. The invocation goes on even if the caller stops waiting for it.
    pub async fn invoke(&self, event: Value) -> Outcome {
        let function = self.clone();
        tokio::spawn(async move { function.run(event).await }).await.expect("an invocation does not panic")
    }

    async fn run(&self, event: Value) -> Outcome {
        let _open = self.0.gate.read().await;
        let Some((number, warm, settings, failpoints)) = self.enter() else { return Outcome::Throttled };
        let started = match warm {
            Some(instance) => Some(instance),
            None => self.start(number, &settings, failpoints).await,
        };
        let Some(mut instance) = started else {
            self.leave(number, None, &Outcome::Crashed);
            return Outcome::Crashed;
        };
        let handle = instance.handle();
        handle.thaw();
        self.state().busy.insert(number, Some(handle));
        let outcome = instance.invoke(event, settings.timeout).await;
        let goes_on = matches!(outcome, Outcome::Answer(_) | Outcome::Error(_)) && instance.is_ready_again().await;
        self.leave(number, goes_on.then_some(instance), &outcome);
        outcome
    }

    /// A place among the invocations at once: a number, an idle environment if there is one, and how to run.
    fn enter(&self) -> Option<(u64, Option<Instance>, Settings, Option<String>)> {
        let mut state = self.state();
        if state.busy.len() >= state.settings.concurrency {
            state.counts.throttles += 1;
            return None;
        }
        let settings = state.settings.clone();
        while let Some((number, mut instance)) = state.idle.pop() {
            if instance.is_alive() {
                state.busy.insert(number, None);
                return Some((number, Some(instance), settings, None));
            }
        }
        state.last_number += 1;
        state.counts.started += 1;
        let number = state.last_number;
        state.busy.insert(number, None);
        let failpoints = state.armed.pop_front();
        Some((number, None, settings, failpoints))
    }

    async fn start(&self, number: u64, settings: &Settings, failpoints: Option<String>) -> Option<Instance> {
        let mut variables: Vec<(String, String)> = settings.variables.clone().into_iter().collect();
        if let Some(failpoints) = failpoints {
            self.0.log.push(format!("[{number}] armed: {failpoints}"));
            variables.push(("FAILPOINTS".into(), failpoints));
        }
        if settings.skew_s != 0 {
            variables.extend(skewed(settings.skew_s));
        }
        let start = Start { program: &settings.program, number, variables, skew_s: settings.skew_s, log: &self.0.log };
        Instance::start(start).await
    }

    /// Ends an invocation, and keeps its environment for the next one: both at once, or the next could take the place
    /// while this one still leaves it.
    fn leave(&self, number: u64, instance: Option<Instance>, outcome: &Outcome) {
        let mut state = self.state();
        state.busy.remove(&number);
        if let Some(instance) = instance
            && state.armed.is_empty()
            && number > state.replaced_up_to
        {
            if state.settings.freezes {
                instance.handle().freeze();
            }
            state.idle.push((number, instance));
        }
        let counts = &mut state.counts;
        match outcome {
            Outcome::Answer(_) => counts.answers += 1,
            Outcome::Error(_) => counts.errors += 1,
            Outcome::TimedOut => counts.timeouts += 1,
            Outcome::Crashed | Outcome::Throttled => counts.crashes += 1,
        }
        if !matches!(outcome, Outcome::Answer(_)) {
            self.0.log.push(format!("[{number}] {outcome:?}"));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap()
    }
}

/// The bootstrap of a function of this name, of the build that lies there.
#[must_use]
pub fn bootstrap(name: &str) -> String {
    let folder = std::env::var("TIRADA_BOOTSTRAPS");
    let folder = folder.unwrap_or_else(|_| files::root().join("target/lambda").display().to_string());
    let path = format!("{folder}/{name}/bootstrap");
    assert!(std::path::Path::new(&path).exists(), "{path} is missing: python3 -m local simulate builds it");
    path
}

/// Variables that put a process's wall clock off by some seconds; timers stay as they are.
fn skewed(seconds: i64) -> [(String, String); 3] {
    let library = std::env::var("TIRADA_TEST_FAKETIME").expect("TIRADA_TEST_FAKETIME is not set: the library's path");
    [
        ("LD_PRELOAD".into(), library),
        ("FAKETIME".into(), format!("{seconds:+}s")),
        ("FAKETIME_DONT_FAKE_MONOTONIC".into(), "1".into()),
    ]
}
