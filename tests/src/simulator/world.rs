//! One sale with everything around it, to be broken and then to come to rest.

mod functions;

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
use crate::queue::Settings as QueueSettings;
use crate::{TestDatabase, look, randomness, seed};

/// How long the passing of time waits for invocations to end before it tries among them.
const PASS_WAIT: Duration = Duration::from_secs(3);
/// Lines of each function's log that a failure shows.
const TAIL: usize = 15;
/// Accepted requests that are repeated at the end.
const REPLAYS_MAX: usize = 50;
/// A queued order is nudged at ages of 2, 4 and 8 minutes: this far apart, and so often.
const NUDGES: [Duration; 3] = [Duration::from_secs(130), Duration::from_secs(130), Duration::from_secs(250)];

/// How a world is set up.
#[derive(Debug, Clone)]
pub struct Setup {
    /// How many times as fast time runs in queues and schedules.
    pub scale: f64,
    /// Part of the receives that leave a message visible, and of the deletions that a copy survives.
    pub duplicates: f64,
    /// Part of the receives out of order.
    pub out_of_order: f64,
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
            let Setup { duplicates, out_of_order, .. } = setup;
            (queue, QueueSettings { visibility, receives_max, duplicates, out_of_order })
        };
        let settings: HashMap<Queue, QueueSettings> = Queue::ALL.into_iter().map(queue).collect();
        let sqs = Sqs::start(&settings, setup.scale, seed).await;
        let parameters = functions::parameters(&database, &proxy, &sqs);
        let gate = Gate::default();
        let named = |name: String| {
            let function = functions::function(&figures, &name, &parameters, (&sqs, &gate), setup.freezes);
            (name, function)
        };
        let functions: BTreeMap<String, Function> = figures.functions().into_iter().map(named).collect();
        let routes = figures.routes().into_iter().map(|(route, name)| (route, functions[&name].clone())).collect();
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
            gateway: Gateway::new(routes),
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

    /// Time passes in the database: every moment moves back. Invocations under way may end first, new ones wait.
    pub async fn pass(&self, time: Duration) {
        let _closed = tokio::time::timeout(PASS_WAIT, self.gate.write()).await;
        self.note(&format!("{} s pass", time.as_secs()));
        time::pass(&mut self.database.another_owner().await, time).await;
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

    /// Ends all faults, lets mappings and schedules run until nothing is left to do, and stops them. Whatever waits in
    /// the outbox is due at once, the queues' time jumps while nobody works, and orders that nobody has a message about
    /// grow older until they are nudged.
    pub async fn drain(&self, bound: Duration) {
        self.note("all faults end");
        self.proxy.heal();
        self.sqs.heal();
        self.functions.values().for_each(Function::disarm);
        self.run();
        let (began, mut nudges) = (Instant::now(), NUDGES.iter());
        let mut quiet = 0;
        loop {
            let left = self.left().await;
            if left.is_nothing() {
                quiet += 1;
                if quiet >= 2 {
                    break;
                }
            } else {
                quiet = 0;
                assert!(began.elapsed() < bound, "after {bound:?} there is still something to do: {left:?}");
                let later = "update outbox set next_attempt_at = now() where next_attempt_at > now()";
                self.database.owner().execute(later, &[]).await.expect(later);
                if left.busy == 0 {
                    self.sqs.skip();
                }
                if left.only_silent()
                    && let Some(time) = nudges.next()
                {
                    self.pass(*time).await;
                }
            }
            tokio::time::sleep(Duration::from_millis(150)).await;
        }
        self.note("everything has come to rest");
        self.halt();
    }

    /// Drains; then the auditor finds nothing, clients saw nothing that is not so, and no healthy message died.
    pub async fn finish(self, bound: Duration) {
        self.drain(bound).await;
        for queue in Queue::ALL {
            let dead = self.sqs.dead(queue);
            assert!(dead.is_empty(), "{} messages of {} died, the first is {}", dead.len(), queue.name(), dead[0]);
        }
        self.finish_with_dead().await;
    }

    /// As [`Self::finish`] for a world that has been drained, and whose dead messages were looked at.
    pub async fn finish_with_dead(mut self) {
        self.halt();
        let mut wrong = self.ledger.findings(&self.database).await;
        wrong.extend(self.replay().await);
        assert!(wrong.is_empty(), "clients saw what is not so: {wrong:#?}");
        self.functions.values().for_each(Function::reap);
        self.database.finish_in_place().await;
    }

    /// Repeats some of the accepted requests: what is not answered as the first time.
    async fn replay(&self) -> Vec<String> {
        let accepted = self.ledger.acceptances();
        let mut wrong = Vec::new();
        for acceptance in accepted.iter().step_by(accepted.len() / REPLAYS_MAX + 1) {
            let answer = acceptance.repeat(&self.gateway).await;
            if answer.status != 202 || answer.accepted() != acceptance.order_id || !answer.is_replay() {
                wrong.push(format!("{acceptance:?} is now answered {} {}", answer.status, answer.text()));
            }
        }
        wrong
    }

    async fn left(&self) -> Left {
        let count = |sql| look::count(&self.database, sql);
        Left {
            messages: Queue::ALL.into_iter().map(|queue| self.sqs.len(queue)).sum(),
            outbox: count("select count(*) from outbox").await,
            queued: count("select count(*) from orders where state = 'queued'").await,
            cancelling: count(
                "select count(*) from orders where state = 'reserved' and cancel_requested_at is not null",
            )
            .await,
            busy: self.functions.values().map(Function::busy).sum(),
        }
    }
}

/// What still has to be done.
#[derive(Debug)]
struct Left {
    messages: usize,
    outbox: i64,
    queued: i64,
    cancelling: i64,
    busy: usize,
}

impl Left {
    const fn is_nothing(&self) -> bool {
        self.messages == 0 && self.outbox == 0 && self.queued == 0 && self.cancelling == 0
    }

    /// Nobody has a message about what is queued.
    const fn only_silent(&self) -> bool {
        self.messages == 0 && self.outbox == 0 && self.busy == 0
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
