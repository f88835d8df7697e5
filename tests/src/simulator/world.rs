//! One sale with everything around it, to be broken and then to come to rest.

mod bank;
mod functions;
mod rest;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::messages::Queue;
use store::catalog::Product;
use tokio::time::Instant;
use tokio_postgres::Config;
use uuid::Uuid;

use super::figures::Figures;
use super::function::{Function, Gate};
use super::gateway::Gateway;
use super::ledger::Ledger;
use super::mapping::Mapping;
use super::proxy::Proxy;
use super::schedule::Schedule;
use super::shopper::Shopper;
use super::sqs::Sqs;
use super::time;
use crate::bucket::FakeBucket;
use crate::gateway::FakeGateway;
use crate::queue::Settings as QueueSettings;
use crate::server::Server;
use crate::{TestDatabase, randomness, seed};

/// How long the passing of time waits for invocations to end before it tries among them. What a payment function read
/// before must not reach the gateway afterwards, so it is longer than a busy machine needs.
const PASS_WAIT: Duration = Duration::from_secs(15);
/// Lines of each function's log that a failure shows.
const TAIL: usize = 15;

/// How a world is set up.
#[derive(Debug, Clone)]
pub struct Setup {
    /// How many times as fast time runs in queues and schedules.
    pub scale: f64,
    /// Part of the receives that leave a message visible, and of the deletions that a copy survives.
    pub duplicates: f64,
    /// Part of the receives out of order.
    pub out_of_order: f64,
    /// Whether queues keep a noisy message group from holding up others, as SQS does.
    pub fair: bool,
    /// Whether environments are stopped between invocations.
    pub freezes: bool,
    /// Whether PgBouncer stands behind the fault proxy.
    pub pooler: bool,
    /// A server of the test's own instead of the shared one.
    pub server: Option<Config>,
    /// Where randomness starts; `TIRADA_TEST_SEED` or a new one if none is given.
    pub seed: Option<u64>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            scale: 60.0,
            duplicates: 0.01,
            out_of_order: 0.2,
            fair: false,
            freezes: true,
            pooler: false,
            server: None,
            seed: None,
        }
    }
}

/// A world. End with [`Self::finish`].
pub struct World {
    /// Where randomness starts.
    pub seed: u64,
    /// The database, past the proxy.
    pub database: TestDatabase,
    /// The queues.
    pub sqs: Sqs,
    /// The proxy that the functions reach the database by.
    pub proxy: Proxy,
    /// The API.
    pub gateway: Gateway,
    /// What clients saw.
    pub ledger: Ledger,
    /// The payment gateway, whose events come through the API.
    pub bank: FakeGateway,
    /// The bucket of files that staff take away or upload.
    pub bucket: FakeBucket,
    webhooks: Server,
    functions: BTreeMap<String, Function>,
    mappings: BTreeMap<&'static str, Mapping>,
    schedules: BTreeMap<String, Schedule>,
    gate: Gate,
    began: Instant,
    story: Mutex<Vec<String>>,
}

impl World {
    /// A world with nothing on sale, and nothing running but the API.
    pub async fn start(setup: Setup) -> Self {
        let seed = setup.seed.unwrap_or_else(randomness::seed);
        let database = match setup.server.clone() {
            Some(server) => TestDatabase::on(server).await,
            None if setup.pooler => TestDatabase::through_pgbouncer().await.expect("TIRADA_TEST_PGBOUNCER is not set"),
            None => TestDatabase::new().await,
        };
        let proxy = Proxy::start(database.upstream()).await;
        let figures = Figures::read();
        let queue = |queue| {
            let QueueSettings { visibility, receives_max, .. } = figures.queue(queue).settings();
            let Setup { duplicates, out_of_order, fair, .. } = setup;
            (queue, QueueSettings { visibility, receives_max, duplicates, out_of_order, fair })
        };
        let settings: HashMap<Queue, QueueSettings> = Queue::ALL.into_iter().map(queue).collect();
        let sqs = Sqs::start(&settings, setup.scale, seed).await;
        let (bank, bucket) = (FakeGateway::start().await, FakeBucket::start().await);
        let parameters = functions::parameters(&database, &proxy, &sqs);
        let gate = Gate::default();
        let named = |name: String| {
            let function =
                functions::function(&figures, &name, &parameters, (&sqs, &bank, &bucket, &gate), setup.freezes);
            (name, function)
        };
        let functions: BTreeMap<String, Function> = figures.functions().into_iter().map(named).collect();
        let routes = figures.routes().into_iter().map(|(route, name)| (route, functions[&name].clone())).collect();
        let gateway = Gateway::new(routes);
        let mapping = |queue: Queue| {
            let function = functions[queue.name()].clone();
            (queue.name(), Mapping::new(sqs.clone(), queue, function, figures.queue(queue).polling()))
        };
        let schedule = |name: String| {
            let period = figures.period(&name).div_f64(setup.scale);
            let schedule = Schedule::new(functions[&name].clone(), period, 1);
            (name, schedule)
        };
        Self {
            seed,
            webhooks: bank::webhooks(gateway.clone()).await,
            gateway,
            bank,
            bucket,
            ledger: Ledger::default(),
            mappings: Queue::ALL.into_iter().map(mapping).collect(),
            schedules: figures.jobs().into_iter().map(schedule).collect(),
            database,
            sqs,
            proxy,
            functions,
            gate,
            began: Instant::now(),
            story: Mutex::default(),
        }
    }

    /// A function by its name.
    #[must_use]
    pub fn function(&self, name: &str) -> &Function {
        &self.functions[name]
    }

    /// Every function that holds connections.
    pub fn functions(&self) -> impl Iterator<Item = &Function> {
        self.functions.values()
    }

    /// A mapping by its worker's name.
    #[must_use]
    pub fn mapping(&self, name: &str) -> &Mapping {
        &self.mappings[name]
    }

    /// A schedule by its job's name.
    #[must_use]
    pub fn schedule(&self, name: &str) -> &Schedule {
        &self.schedules[name]
    }

    /// Starts every mapping and every schedule.
    pub fn run(&self) {
        self.mappings.values().for_each(Mapping::start);
        self.schedules.values().for_each(Schedule::start);
    }

    /// Stops every mapping and every schedule. What runs ends on its own.
    pub fn halt(&self) {
        self.mappings.values().for_each(Mapping::stop);
        self.schedules.values().for_each(Schedule::stop);
    }

    /// Jobs run so many times at once from the next start of their schedules, as if their concurrency were that.
    pub fn jobs_at_once(&self, count: usize, period: Duration) {
        for (name, schedule) in &self.schedules {
            self.function(name).set(|settings| settings.concurrency = count);
            schedule.set(period, count);
        }
    }

    /// A product of so many numbers, in a store of its own.
    pub async fn product(&self, count: i32) -> Product {
        let mut client = self.database.another_owner().await;
        seed::product(seed::store(&client).await, count).insert(&mut client).await
    }

    /// A new buyer of a product's store.
    #[must_use]
    pub fn shopper(&self, product: &Product) -> Shopper {
        self.shopper_of(product.described.tenant_id)
    }

    /// A new buyer of a store.
    #[must_use]
    pub fn shopper_of(&self, tenant_id: Uuid) -> Shopper {
        Shopper::new(tenant_id, self.gateway.clone(), self.ledger.clone())
    }

    /// A function's place among those that [`Self::pass`] lets come to an end.
    #[must_use]
    pub fn gate(&self) -> Gate {
        Arc::clone(&self.gate)
    }

    /// Time passes, in the database, where every moment moves back, and at the payment gateway. Invocations under way may end first, new ones wait.
    pub async fn pass(&self, time: Duration) {
        let _closed = tokio::time::timeout(PASS_WAIT, self.gate.write()).await;
        self.note(&format!("{} s pass", time.as_secs()));
        time::pass(&mut self.database.another_owner().await, time).await;
        self.bank.advance(time);
    }

    /// Remembers what was done, for a failure to tell.
    pub fn note(&self, what: &str) {
        self.story.lock().unwrap().push(format!("{:>8.3} s  {what}", self.began.elapsed().as_secs_f64()));
    }

    /// What was done so far, with its time.
    #[must_use]
    pub fn story(&self) -> Vec<String> {
        self.story.lock().unwrap().clone()
    }

    /// Waits until something holds. Panics if it does not within a time.
    pub async fn until<F: Future<Output = bool>>(&self, what: &str, bound: Duration, holds: impl Fn() -> F) {
        let began = Instant::now();
        while !holds().await {
            assert!(began.elapsed() < bound, "after {bound:?} it is still not so that {what}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("TIRADA_TEST_SEED={}", self.seed);
            eprintln!("what happened:\n  {}", self.story.lock().unwrap().join("\n  "));
            for (name, function) in &self.functions {
                eprintln!("{name}: {:?}\n  {}", function.counts(), function.log().tail(TAIL).join("\n  "));
            }
        }
    }
}
