//! Money while two versions are at work: both settle, sweep and reconcile side by side, and the schema changes under
//! them.

use std::time::Duration;

use domain::messages::{EventMessage, OrderMessage, Queue};
use store::catalog::Product;
use store::payments::{Event, find_attempt, receive};
use tests::chain::message;
use tests::gateway::{Fault, Matcher};
use tests::look;
use tests::simulator::{Function, Mapping, Polling, Schedule, Setup, World, wish};
use tests::till::Policy;
use uuid::Uuid;

use super::{additive, newer};
use crate::payments::{OWED_AFTER, PAID_STEPS, kept, refund, until_state};

const BOUND: Duration = Duration::from_secs(60);
const HOLD: Duration = Duration::from_secs(901);
const METHODS: [&str; 3] = ["card", "checkout", "pix"];
/// Orders whose buyers pay before the migration, and afterwards.
const BEFORE: i64 = 16;
const AFTERWARDS: i64 = 9;
const PAID_AFTERWARDS: i64 = AFTERWARDS / 3 * 2;
/// Jobs of both versions run so often.
const PERIOD: Duration = Duration::from_secs(1);

/// How it becomes known that a buyer has paid. The gateway itself tells nobody.
#[derive(Debug, Clone, Copy)]
enum Told {
    /// By a message about the order that has more fields than ours.
    NewerOrder,
    /// By one about an event.
    NewerEvent,
    /// By one about the order, of a version that nobody here knows.
    UnknownOrder,
    /// By one about an event.
    UnknownEvent,
}

const TOLD: [Told; 4] = [Told::NewerOrder, Told::NewerEvent, Told::UnknownOrder, Told::UnknownEvent];

/// Fault 27: payments, refunds and holds that run out go on while a deployment is under way. What has fields that
/// nobody here knows is served; a version that nobody here knows goes to the DLQ, alone, and its payment is found by a
/// look. The old settling worker ends in the middle of its work. What the outbox owes to a queue of the newer version
/// is left to it. Every payment counts once.
#[tokio::test(flavor = "multi_thread")]
async fn two_versions_settle_sweep_and_reconcile() {
    let world = World::start(Setup { scale: 240.0, duplicates: 0.0, ..Setup::default() }).await;
    let product = world.sell(1_000, Policy::default(), |product| product).await;
    world.jobs_at_once(1, PERIOD);
    let polling = Polling { batch_max: 3, window: Duration::ZERO, concurrency: 2 };
    world.mapping("settle-payment").set(|settings| *settings = polling);
    let names = ["settle-payment", "expire-reservations", "reconcile-orders"];
    let newer = names.map(|name| newer_version(&world, name));
    let mapping = Mapping::new(world.sqs.clone(), Queue::SettlePayment, newer[0].clone(), polling);
    let jobs = [1, 2].map(|job: usize| Schedule::new(newer[job].clone(), PERIOD, 1));
    world.run();
    mapping.start();
    jobs.iter().for_each(Schedule::start);
    let mut unknown = told_by_messages(&world, &product).await;
    widen(&world).await;
    world.bank.heal();
    world.note("the old version settles nothing any more");
    world.mapping("settle-payment").stop();
    world.pass(OWED_AFTER).await;
    until_paid(&world, BEFORE).await;
    as_ever(&world, &product).await;
    let left = "select count(*) from outbox where queue = 'tell-tales' and attempts = 0";
    assert_eq!(look::count(&world.database, left).await, 1, "it is the newer version's");
    look::change(&world.database, "delete from outbox where queue = 'tell-tales'", 1).await;
    mapping.stop();
    jobs.iter().for_each(Schedule::stop);
    for (name, new) in names.into_iter().zip(&newer) {
        world.until("the newer version is idle", BOUND, async || new.busy() == 0).await;
        let (old, new) = (world.function(name).counts(), new.counts());
        assert!(old.answers > 0 && new.answers > 0, "{name}: {old:?} and {new:?}");
    }
    world.drain(BOUND).await;
    let mut dead = world.sqs.dead(Queue::SettlePayment);
    dead.sort();
    unknown.sort();
    assert_eq!(dead, unknown, "nothing else is dead");
    assert_eq!(look::count(&world.database, PAID_STEPS).await, BEFORE + PAID_AFTERWARDS, "each was paid once");
    let owned = BEFORE + AFTERWARDS / 3;
    assert_eq!((kept(&world), look::taken(&world.database, &product).await), (250 * owned, owned));
    world.finish_with_dead().await;
}

/// Buyers pay, and nobody but a message tells; the bodies that nobody understands.
async fn told_by_messages(world: &World, product: &Product) -> Vec<String> {
    world.bank.script(Matcher::any(), Fault::Never, u32::MAX);
    let mut unknown = Vec::new();
    for (number, told) in (1..=BEFORE).zip(TOLD.into_iter().cycle()) {
        let (order, attempt) = opened(world, product, number).await;
        world.bank.pay(attempt).unwrap();
        unknown.extend(tell(world, product, order, attempt, told).await);
        if number == BEFORE / 2 {
            world.note("the old version is killed at work");
            world.function("settle-payment").arm("payment.before_commit=kill");
        }
    }
    let is_settled = async || look::count(&world.database, PAID_STEPS).await >= BEFORE / 2;
    world.until("what can be understood is settled", BOUND, is_settled).await;
    unknown
}

/// Buyers pay as ever; a third of the orders are refunded, and a third never paid.
async fn as_ever(world: &World, product: &Product) {
    let mut orders = Vec::new();
    for number in BEFORE + 1..=BEFORE + AFTERWARDS {
        let (order, attempt) = opened(world, product, number).await;
        if number % 3 > 0 {
            world.bank.pay(attempt).unwrap();
        }
        orders.push((number % 3, order));
    }
    until_paid(world, BEFORE + PAID_AFTERWARDS).await;
    for (kind, order) in &orders {
        if *kind == 1 {
            refund(world, product, *order).await;
        }
    }
    world.pass(HOLD).await;
    for (kind, order) in orders {
        let state = match kind {
            0 => "expired",
            1 => "refunded",
            _ => "paid",
        };
        until_state(world, order, state).await;
    }
}

async fn until_paid(world: &World, orders: i64) {
    let is_paid = async || look::count(&world.database, PAID_STEPS).await == orders;
    world.until(&format!("{orders} orders are paid"), BOUND, is_paid).await;
}

/// The function as a newer version runs it.
fn newer_version(world: &World, name: &str) -> Function {
    let mut settings = world.function(name).settings();
    settings.variables.insert("AWS_LAMBDA_FUNCTION_VERSION".into(), "2".into());
    Function::new(name, settings, world.gate())
}

/// An order that holds this number, and a payment of it that waits for its buyer.
async fn opened(world: &World, product: &Product, number: i64) -> (Uuid, Uuid) {
    let (number, shopper) = (i32::try_from(number).unwrap(), world.shopper(product));
    let order = shopper.place(product.described.id, &wish(&[number], 0, "reject")).await.unwrap();
    assert_eq!(shopper.follow(order).await.unwrap()["state"], "reserved");
    let method = METHODS[usize::try_from(number / 3).unwrap() % METHODS.len()];
    (order, shopper.pay(order, "key", method).await.unwrap())
}

/// Sends the message by which a payment becomes known; its body if nobody will understand it.
async fn tell(world: &World, product: &Product, order: Uuid, attempt: Uuid, told: Told) -> Option<String> {
    let group = product.described.tenant_id.to_string();
    let (body, is_unknown) = match told {
        Told::NewerOrder => (newer(&message(product, order)), false),
        Told::UnknownOrder => (OrderMessage { v: 2, ..message(product, order) }.body(), true),
        Told::NewerEvent => (newer(&event(world, product.described.tenant_id, attempt).await), false),
        Told::UnknownEvent => {
            let event = EventMessage { v: 2, ..event(world, product.described.tenant_id, attempt).await };
            (serde_json::to_string(&event).unwrap(), true)
        }
    };
    world.sqs.put_body(Queue::SettlePayment, body.clone(), group);
    is_unknown.then_some(body)
}

/// An event about an attempt's payment, written down as the webhook does.
async fn event(world: &World, tenant_id: Uuid, attempt: Uuid) -> EventMessage {
    let client = world.database.app_client().await;
    let attempt = find_attempt(&client, tenant_id, attempt).await.unwrap().unwrap();
    let (gateway, event_id) = (attempt.gateway, format!("evt_{}", attempt.id));
    let told = EventMessage::new(tenant_id, gateway, &event_id);
    let event = Event { tenant_id, gateway, event_id, kind: "paid".into(), payment_id: attempt.payment_id };
    receive(&client, &event).await.unwrap();
    told
}

/// What the newer version's migration adds, while both are at work, and what that version owes to a queue of its own.
async fn widen(world: &World) {
    let owner = world.database.another_owner().await;
    for change in [
        "alter table payment_attempts add column channel text not null default 'web'",
        "alter table refunds add column approved_by text",
        "alter table disputes add column evidence text",
        "alter table inbox add column livemode boolean not null default true",
        "create index concurrently refunds_by_cause on refunds (cause, id)",
        "alter table outbox drop constraint outbox_queue_known",
        "insert into outbox (id, queue, tenant_id, product_id, order_id, next_attempt_at)
            select gen_random_uuid(), 'tell-tales', tenant_id, product_id, id, now() from orders
            where state = 'paid' order by id limit 1",
    ] {
        additive(world, &owner, change).await;
    }
}
