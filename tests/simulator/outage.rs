//! A database that is away for a while, and a product that is.

use std::time::Duration;

use domain::catalog::Reserving;
use domain::limits::{PARKED_FOR, RETRY_BACKOFF_MIN};
use domain::messages::Queue;
use domain::orders::State;
use store::catalog::Product;
use store::switches::set_reserving;
use tests::chain::message;
use tests::look;
use tests::simulator::{OwnPostgres, Setup, Stop, World, code, wish};

use crate::bulk;
use crate::crowd::Crowd;

const BOUND: Duration = Duration::from_secs(60);
const RESERVED: &str = "select count(*) from orders where state = 'reserved'";
/// Time in the queues runs ten times as fast, so that trying again costs next to nothing of it.
const SCALE: f64 = 10.0;

async fn world_on(server: &OwnPostgres, scale: f64) -> World {
    World::start(Setup { server: Some(server.config()), scale, ..Setup::default() }).await
}

/// So many queued orders with their messages, and as many reserved ones whose cancellation waits in the queue.
async fn backlog(world: &World, product: &Product, queued: i32, cancelled: i32) {
    let mut orders = Vec::new();
    for _ in 0..cancelled {
        let shopper = world.shopper(product);
        let order = shopper.place(product.described.id, &wish(&[], 2, "reject")).await.unwrap();
        orders.push((shopper, order));
    }
    world.mapping("reserve-numbers").start();
    let all = i64::from(cancelled);
    world.until("they are reserved", BOUND, async || look::count(&world.database, RESERVED).await == all).await;
    world.mapping("reserve-numbers").stop();
    for (shopper, order) in orders {
        assert!(shopper.cancel(order).await);
    }
    for order in bulk::queue(&world.database, product, queued).await {
        world.sqs.put(Queue::ReserveNumbers, &message(product, order));
    }
}

/// What workers asked the queue to wait between their tries, in seconds.
fn waits(world: &World) -> Vec<u64> {
    let calls = world.sqs.take_calls().into_iter().filter(|(call, _)| call == "ChangeMessageVisibilityBatch");
    let entries = calls.flat_map(|(_, input)| input["Entries"].as_array().cloned().unwrap_or_default());
    entries.filter_map(|entry| entry["VisibilityTimeout"].as_u64()).collect()
}

/// Nobody lost its process over it: what could not be done was answered so.
pub(crate) fn assert_nobody_crashed(world: &World) {
    for function in world.functions() {
        let counts = function.counts();
        assert_eq!((counts.crashes, counts.timeouts), (0, 0), "{}", function.name());
    }
    for name in Queue::ALL.map(Queue::name) {
        assert_eq!(world.function(name).counts().errors, 0, "{name} reports message by message");
    }
}

/// Fault 13: Postgres is down for two minutes, with a backlog in both queues and buyers at the door. Who comes is asked
/// to come back; messages are tried again with growing waits, and none of them dies; each order is served once.
#[tokio::test(flavor = "multi_thread")]
async fn postgres_is_down_for_two_minutes() {
    let server = OwnPostgres::start().await;
    let mut world = world_on(&server, SCALE).await;
    let product = world.product(20_000).await;
    backlog(&world, &product, 400, 10).await;
    let crowd = Crowd::gather(&world, &product, 4, Duration::from_millis(20));
    let _ = world.sqs.take_calls();
    world.note("Postgres is down");
    tokio::task::block_in_place(|| server.stop(Stop::Fast));
    world.run();
    let refused = world.shopper(&product).try_place(product.described.id, "refused", &wish(&[], 1, "reject")).await;
    assert_eq!((refused.status, code(&refused).as_str()), (503, "unavailable"));
    assert!(refused.retry_after().is_some());
    tokio::time::sleep(Duration::from_secs(120).div_f64(SCALE)).await;
    let waits = waits(&world);
    let bounds = (*waits.iter().min().unwrap(), *waits.iter().max().unwrap());
    println!("{} tries again, after {} to {} seconds", waits.len(), bounds.0, bounds.1);
    assert!(bounds.0 >= RETRY_BACKOFF_MIN.as_secs() && bounds.1 > 10 * bounds.0, "waits grow: {bounds:?}");
    server.go().await;
    world.note("Postgres is back");
    world.database.reconnect().await;
    let placed = crowd.leave().await;
    assert_all_served(world, &product, placed).await;
}

/// Fault 13 once more: Postgres is restarted at the peak, in good order and as if the power had failed. Buyers get
/// their orders all the same, each of them once.
#[tokio::test(flavor = "multi_thread")]
async fn restarted_at_the_peak() {
    let server = OwnPostgres::start().await;
    let mut world = world_on(&server, 60.0).await;
    let product = world.product(20_000).await;
    world.run();
    let crowd = Crowd::gather(&world, &product, 6, Duration::ZERO);
    for stop in [Stop::Fast, Stop::Immediate] {
        let so_far = world.ledger.acceptances().len();
        let goes_on = async || world.ledger.acceptances().len() > so_far + 100;
        world.until("orders are accepted", BOUND, goes_on).await;
        world.note(&format!("Postgres is restarted: {stop:?}"));
        tokio::task::block_in_place(|| server.stop(stop));
        server.go().await;
        world.database.reconnect().await;
    }
    let so_far = world.ledger.acceptances().len();
    world.until("orders are accepted", BOUND, async || world.ledger.acceptances().len() > so_far + 100).await;
    let placed = crowd.leave().await;
    world.drain(BOUND).await;
    assert_eq!(look::count(&world.database, RESERVED).await, i64::try_from(placed).unwrap());
    assert_nobody_crashed(&world);
    world.finish(BOUND).await;
}

/// Fault 13, the failover: for half a minute the database takes connections and reads, and refuses to write. That is
/// for a while, not for good: nobody is told anything else, no message dies.
#[tokio::test(flavor = "multi_thread")]
async fn read_only_for_half_a_minute() {
    let server = OwnPostgres::start().await;
    let world = world_on(&server, SCALE).await;
    let product = world.product(20_000).await;
    backlog(&world, &product, 400, 10).await;
    let crowd = Crowd::gather(&world, &product, 4, Duration::from_millis(20));
    read_only(&world, true).await;
    world.run();
    let refused = world.shopper(&product).try_place(product.described.id, "refused", &wish(&[], 1, "reject")).await;
    assert_eq!((refused.status, code(&refused).as_str()), (503, "unavailable"));
    tokio::time::sleep(Duration::from_secs(30).div_f64(SCALE)).await;
    assert!(!waits(&world).is_empty(), "messages were tried, and wait");
    read_only(&world, false).await;
    let placed = crowd.leave().await;
    assert_all_served(world, &product, placed).await;
}

async fn read_only(world: &World, is: bool) {
    world.note(&format!("read-only: {is}"));
    let client = world.database.owner();
    client.batch_execute(&format!("alter system set default_transaction_read_only = {is}")).await.unwrap();
    client.batch_execute("select pg_reload_conf()").await.unwrap();
    let word = if is { "on" } else { "off" };
    let seen = async || {
        let row =
            world.database.owner().query_one("select current_setting('transaction_read_only')", &[]).await.unwrap();
        row.get::<_, String>(0) == word
    };
    world.until("the server knows", BOUND, seen).await;
}

/// A product is halted for ten minutes, with orders in the queue and cancellations. Its orders
/// wait, whatever else is sold; after the resume all of them are served. No message dies of waiting.
#[tokio::test(flavor = "multi_thread")]
async fn a_product_halted_for_ten_minutes() {
    // Copies of messages would be waited for, visibility by visibility.
    let world = World::start(Setup { duplicates: 0.0, ..Setup::default() }).await;
    let (product, other) = (world.product(1_000).await, world.product(1_000).await);
    let (owner, halted, on) = (world.database.owner(), Reserving::Halted, Reserving::On);
    backlog(&world, &product, 50, 5).await;
    let (tenant_id, id) = (product.described.tenant_id, product.described.id);
    set_reserving(owner, tenant_id, id, halted, Some("a data fault")).await.unwrap();
    world.jobs_at_once(1, Duration::from_millis(200));
    world.run();
    let parked = "select count(distinct o.id) from outbox x join orders o on o.id = x.order_id
        where x.next_attempt_at > now() and case x.queue when 'reserve-numbers' then o.state = 'queued'
            else o.cancel_requested_at is not null end";
    // By then each parked order has been due.
    let round = PARKED_FOR * 5 / 4;
    for number in 1..=i32::try_from(600 / round.as_secs()).unwrap() {
        let is_parked = async || {
            look::count(&world.database, parked).await == 55
                && Queue::ALL.iter().all(|queue| world.sqs.len(*queue) == 0)
        };
        world.until("all of its orders are parked", BOUND, is_parked).await;
        world.pass(round).await;
        let wanted = wish(&[number], 0, "reject");
        let order = world.shopper(&other).place(other.described.id, &wanted).await.unwrap();
        let is_sold = async || look::order(&world.database, order).await.state == State::Reserved;
        world.until("the other product is sold", BOUND, is_sold).await;
    }
    let outcomes = look::outcomes(&world.database, &product).await;
    assert_eq!(outcomes, look::expected([("queued", 50), ("reserved", 5)]), "nothing of it changes hands");
    set_reserving(owner, product.described.tenant_id, product.described.id, on, None).await.unwrap();
    world.drain(BOUND).await;
    let outcomes = look::outcomes(&world.database, &product).await;
    assert_eq!(outcomes, look::expected([("reserved", 50), ("cancelled", 5)]));
    assert_eq!(look::taken(&world.database, &product).await, 50);
    world.finish(BOUND).await;
}

/// Everything comes to rest: the backlog's 400 orders and those that the crowd placed hold numbers, the ten
/// cancellations are done, and no process ended on the way.
async fn assert_all_served(world: World, product: &Product, placed: usize) {
    world.drain(BOUND).await;
    let reserved = i64::try_from(placed).unwrap() + 400;
    let outcomes = look::outcomes(&world.database, product).await;
    assert_eq!(outcomes, look::expected([("reserved", reserved), ("cancelled", 10)]));
    assert_nobody_crashed(&world);
    world.finish(BOUND).await;
}
