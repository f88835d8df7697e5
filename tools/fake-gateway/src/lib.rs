//! A payment gateway for tests and for the local cloud: an HTTP server that speaks Stripe's and Mercado Pago's wire
//! formats, keeps everything in memory, sends signed events, fails as it is told, and keeps a ledger for an auditor.
//!
//! Written from the gateways' public documentation and from nothing of ours: it must not share a misreading with the
//! adapters. Stripe is below `/stripe`, Mercado Pago below `/mercado-pago`, the page on which a person pays at
//! `/pay/{id}`. Not modelled: cards, fees, payouts, 3-D Secure, rate limits, tax.

#![allow(clippy::unwrap_used, reason = "a gateway that cannot go on panics")]
#![allow(clippy::missing_panics_doc, reason = "a gateway that cannot go on panics")]

mod account;
mod books;
mod buyers;
mod calls;
mod control;
mod faults;
mod http;
mod keys;
mod ledger;
mod mercado_pago;
mod pages;
mod payments;
mod refunds;
pub mod signatures;
mod stripe;
mod webhooks;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

pub use account::{Account, Dialect};
use books::Books;
pub use buyers::{Act, NotDone};
pub use faults::{Call, Fault, Matcher, Rates};
pub use ledger::{DisputeEntry, Ledger, PaymentEntry, RefundEntry, Violation, ViolationKind};
pub use payments::PaymentState;
pub use refunds::{DisputeState, RefundState};
pub use webhooks::Delivery;
use webhooks::Post;

/// How often the gateway looks at its clock.
const TICK: Duration = Duration::from_millis(10);
/// Longest wait for events and refunds to come to rest.
const SETTLE_MAX: Duration = Duration::from_secs(30);

/// A running gateway. Copies are the same one; it stops with the last of them.
#[derive(Clone)]
pub struct FakeGateway {
    shared: Arc<Shared>,
    running: Arc<Running>,
}

struct Shared {
    books: Mutex<Books>,
    post: Post,
}

impl Shared {
    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap()
    }
}

struct Running {
    address: String,
    stop: watch::Sender<bool>,
    tasks: [JoinHandle<()>; 2],
}

impl Drop for Running {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl FakeGateway {
    /// Starts on a free port.
    pub async fn start() -> Self {
        Self::start_on(0).await.expect("a free port")
    }

    /// Starts on a port of the loopback interface; 0 takes a free one.
    ///
    /// # Errors
    /// The port is taken.
    pub async fn start_on(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let address = format!("http://{}", listener.local_addr()?);
        let shared = Arc::new(Shared { books: Mutex::new(Books::new(address.clone())), post: Post::new() });
        let (stop, mut stopped) = watch::channel(false);
        let until = async move { drop(stopped.wait_for(|stop| *stop).await) };
        let tasks =
            [tokio::spawn(http::serve(listener, Arc::clone(&shared), until)), tokio::spawn(tick(Arc::clone(&shared)))];
        Ok(Self { shared, running: Arc::new(Running { address, stop, tasks }) })
    }

    /// Its address, without a path.
    #[must_use]
    pub fn address(&self) -> String {
        self.running.address.clone()
    }

    /// The base URL of a wire format.
    #[must_use]
    pub fn url(&self, dialect: Dialect) -> String {
        format!("{}/{}", self.running.address, dialect.name())
    }

    /// Takes an account in, or gives a known one another address and secret; its name in the ledger.
    pub fn add_account(&self, account: Account) -> String {
        control::add_account(&self.shared, account)
    }

    /// From now on this fault happens to the next `times` of what matches (`u32::MAX`: until [`Self::heal`]). Later
    /// faults wait until earlier ones that match are used up.
    pub fn script(&self, matcher: Matcher, fault: Fault, times: u32) {
        assert!(matcher.allows(fault), "{fault:?} cannot happen to {matcher:?}");
        self.shared.books().script.add(matcher, fault, times);
    }

    /// From now on faults happen by chance, the same with the same seed, where the script has none.
    pub fn random(&self, seed: u64, rates: Rates) {
        assert!(rates.are_valid(), "{rates:?} are not parts");
        self.shared.books().script.random(seed, rates);
    }

    /// Ends all faults. Those under way end by themselves.
    pub fn heal(&self) {
        self.shared.books().script.heal();
    }

    /// Moves the gateway's clock: sessions and Pix codes run out, keys are forgotten. Signatures keep the true time.
    pub fn advance(&self, time: Duration) {
        control::advance(&self.shared, time.try_into().expect("less than an age"));
    }

    /// What it knows about everybody's money.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        Ledger::of(&self.shared.books())
    }

    /// Every try to deliver an event so far.
    #[must_use]
    pub fn deliveries(&self) -> Vec<Delivery> {
        self.shared.post.log()
    }

    /// Events that are neither delivered nor given up.
    #[must_use]
    pub fn webhooks_pending(&self) -> usize {
        self.shared.post.pending()
    }

    /// Waits until every event is delivered or given up and no refund has yet to change, 30 seconds at most; whether
    /// that came.
    pub async fn settle(&self) -> bool {
        let began = Instant::now();
        while self.shared.books().is_moving() || self.webhooks_pending() > 0 {
            if began.elapsed() > SETTLE_MAX {
                return false;
            }
            tokio::time::sleep(TICK).await;
        }
        true
    }

    /// Takes no more calls, and waits for the answers under way, `longest` at most.
    pub async fn stop(&self, longest: Duration) {
        self.running.stop.send_replace(true);
        let began = Instant::now();
        while !self.running.tasks[0].is_finished() && began.elapsed() < longest {
            tokio::time::sleep(TICK).await;
        }
    }
}

async fn tick(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(TICK).await;
        let mut books = shared.books();
        books.tick();
        webhooks::send(&shared, books.take_events(), false);
    }
}
