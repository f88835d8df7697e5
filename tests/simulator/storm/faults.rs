//! What breaks during the storm: one to three things at a time, chosen by the seed.

use std::sync::Arc;
use std::time::Duration;

use domain::messages::Queue;
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use store::catalog::Product;
use tests::chain::message;
use tests::randomness;
use tests::simulator::{Call, Fault, World};
use tokio::time::sleep;

/// What happens at a failpoint.
const ACTIONS: [&str; 5] = ["kill", "2*off->kill", "1*panic", "1*sleep(1500)", "3*off->kill"];
/// What may happen, see [`Rage::strike`]. Faults are dealt like cards, so that every storm has all of them.
const KINDS: [Kind; 18] = [
    Kind::Kill,
    Kind::Kill,
    Kind::Failpoint,
    Kind::Failpoint,
    Kind::Failpoint,
    Kind::Failpoint,
    Kind::Cut,
    Kind::LostAnswer,
    Kind::LostAnswer,
    Kind::Away,
    Kind::Stall,
    Kind::Slow,
    Kind::Queue,
    Kind::Queue,
    Kind::Locks,
    Kind::Time,
    Kind::Again,
    Kind::Halt,
];
/// How much of the database's time passes at once.
const PASS: Duration = Duration::from_secs(40);

#[derive(Clone, Copy)]
enum Kind {
    Kill,
    Failpoint,
    Cut,
    LostAnswer,
    Away,
    Stall,
    Slow,
    Queue,
    Locks,
    Time,
    Again,
    Halt,
}

/// Cards that are shuffled again whenever all have been dealt.
struct Deck<T: 'static> {
    all: &'static [T],
    left: Vec<T>,
}

impl<T: Copy> Deck<T> {
    const fn new(all: &'static [T]) -> Self {
        Self { all, left: Vec::new() }
    }

    fn deal(&mut self, rng: &mut StdRng) -> T {
        if self.left.is_empty() {
            self.left = self.all.to_vec();
            self.left.shuffle(rng);
        }
        self.left.pop().expect("a deck has cards")
    }
}

/// A function, and a failpoint of it.
pub(crate) type Failpoint = (&'static str, &'static str);

/// Lets faults happen until it is stopped. Functions are killed at these failpoints, and time passes so often at most.
pub(crate) async fn rage(world: Arc<World>, products: Vec<Product>, failpoints: &'static [Failpoint], passes_max: u32) {
    let rng = randomness::stream(world.seed, 2);
    let (kinds, failpoints) = (Deck::new(&KINDS), Deck::new(failpoints));
    let mut rage = Rage { world, products, rng, kinds, failpoints, passes_left: passes_max };
    loop {
        sleep(Duration::from_millis(rage.rng.random_range(100..800))).await;
        for _ in 0..rage.rng.random_range(1..=3) {
            rage.strike().await;
        }
    }
}

struct Rage {
    world: Arc<World>,
    products: Vec<Product>,
    rng: StdRng,
    kinds: Deck<Kind>,
    failpoints: Deck<Failpoint>,
    passes_left: u32,
}

impl Rage {
    async fn strike(&mut self) {
        let kind = self.kinds.deal(&mut self.rng);
        let (rng, world) = (&mut self.rng, &self.world);
        let product = &self.products[usize::from(rng.random_bool(0.25))];
        let time = Duration::from_millis(rng.random_range(100..1_000));
        match kind {
            Kind::Kill => {
                let (name, _) = self.failpoints.deal(rng);
                kill_at_work(world, name, time).await;
            }
            Kind::Failpoint => {
                let (name, failpoint) = self.failpoints.deal(rng);
                let action = ACTIONS[rng.random_range(0..ACTIONS.len())];
                world.note(&format!("{name}: {failpoint}={action}"));
                world.function(name).arm(&format!("{failpoint}={action}"));
            }
            Kind::Cut => {
                world.note("connections cut");
                world.proxy.cut();
            }
            Kind::LostAnswer => {
                let text = ["commit", "place_order(", "delete from outbox"][rng.random_range(0..3)];
                world.note(&format!("answers lost: {text}"));
                world.proxy.lose_answers(text, rng.random_range(1..4));
            }
            Kind::Away => {
                world.note(&format!("database away for {time:?}"));
                world.proxy.down();
                sleep(time).await;
                world.proxy.refuse(false);
            }
            Kind::Stall => {
                world.note(&format!("network stalls for {time:?}"));
                world.proxy.stall(true);
                sleep(time).await;
                world.proxy.stall(false);
            }
            Kind::Slow => {
                let delay = Duration::from_millis(rng.random_range(5..100));
                world.note(&format!("network slower by {delay:?} for {time:?}"));
                world.proxy.delay(delay, delay);
                sleep(time).await;
                world.proxy.delay(Duration::ZERO, Duration::ZERO);
            }
            Kind::Queue => {
                let late = Fault::Late(Duration::from_millis(1_200));
                let faults = [Fault::Refuse, Fault::Throttle, late, Fault::LoseAnswer, Fault::Partial, Fault::Forget];
                let fault = faults[rng.random_range(0..faults.len())];
                world.note(&format!("SQS for {time:?}: {fault:?}"));
                world.sqs.fail_some(Call::Any, fault, 0.7);
                sleep(time).await;
                world.sqs.heal();
            }
            Kind::Locks => {
                world.note(&format!("somebody holds chunks and orders for {time:?}"));
                hold(world, product, time).await;
            }
            Kind::Time if self.passes_left > 0 => {
                self.passes_left -= 1;
                world.pass(PASS).await;
            }
            Kind::Time | Kind::Again => send_again(world, product),
            Kind::Halt => {
                world.note(&format!("product {} halted for {time:?}", product.key));
                set_reserving(world, product, "halted").await;
                sleep(time).await;
                set_reserving(world, product, "on").await;
            }
        }
    }
}

/// Kills a function's processes at work, as soon as there are some within a time.
async fn kill_at_work(world: &World, name: &str, time: Duration) {
    let at_work = async || {
        while world.function(name).kill_busy() == 0 {
            sleep(Duration::from_millis(1)).await;
        }
    };
    if tokio::time::timeout(time, at_work()).await.is_ok() {
        world.note(&format!("{name}: killed at work"));
    }
}

/// Old messages come again.
fn send_again(world: &World, product: &Product) {
    world.note("old messages again");
    let mine = world.ledger.acceptances().into_iter().filter(|one| one.product_id == product.described.id);
    for acceptance in mine.take(50) {
        for queue in Queue::OF_ORDERS {
            world.sqs.put(queue, &message(product, acceptance.order_id));
        }
    }
}

/// Ends what would not end by itself.
pub(crate) async fn end(world: &World, products: &[Product]) {
    for product in products {
        set_reserving(world, product, "on").await;
    }
}

async fn set_reserving(world: &World, product: &Product, word: &str) {
    let sql = "update products set reserving = $2, reserving_resumed_at = now() where key = $1";
    world.database.owner().execute(sql, &[&product.key, &word]).await.unwrap();
}

/// Another session takes what workers want, and lets go of it.
async fn hold(world: &World, product: &Product, time: Duration) {
    let mut client = world.database.another_owner().await;
    let tx = client.transaction().await.unwrap();
    let orders =
        "select from orders where product_key = $1 and state = 'queued' order by id limit 20 for update skip locked";
    tx.execute(orders, &[&product.key]).await.unwrap();
    let chunks = "select from number_chunks where product_key = $1 order by chunk for update";
    if tokio::time::timeout(Duration::from_secs(2), tx.execute(chunks, &[&product.key])).await.is_ok() {
        sleep(time).await;
    }
}
