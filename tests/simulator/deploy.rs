//! Two versions at work at once, a schema that changes under them, and messages from long ago.

mod payments;

use std::collections::BTreeMap;
use std::time::Duration;

use domain::limits::QUEUED_SILENT_AFTER;
use domain::messages::{OrderMessage, Queue};
use serde_json::{Value, json};
use store::catalog::Product;
use tests::chain::message;
use tests::simulator::{
    Call, Fault, Function, FunctionSettings, Gateway, Ledger, Mapping, Polling, Setup, Shopper, World, bootstrap, code,
    wish,
};
use tests::{look, seed};
use time::OffsetDateTime;
use tokio::task::JoinSet;
use tokio_postgres::Client;
use uuid::Uuid;

const BOUND: Duration = Duration::from_secs(30);
const RESERVED: &str = "select count(*) from orders where state = 'reserved'";
const QUEUED: &str = "select count(*) from orders where state = 'queued'";
/// Buyers at once, and orders that each of them places one after another, while the schema changes.
const BUYERS: i64 = 8;
const ORDERS: i64 = 60;
const WEEK: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Fault 27: during a deployment two workers share a queue, and so do the messages of two versions of intake. What
/// has fields that nobody here knows is served; a version that nobody here knows goes to the DLQ, alone, and its
/// order is served by a message of ours. The old worker ends in the middle of its work.
#[tokio::test(flavor = "multi_thread")]
async fn two_workers_on_one_queue() {
    let world = hasty().await;
    let product = world.product(1_000).await;
    let polling = Polling { batch_max: 3, window: Duration::ZERO, concurrency: 2 };
    let old = world.function("reserve-numbers").clone();
    world.mapping("reserve-numbers").set(|settings| *settings = polling);
    let mut settings = old.settings();
    settings.variables.insert("AWS_LAMBDA_FUNCTION_VERSION".into(), "2".into());
    let new = Function::new("reserve-numbers", settings, world.gate());
    let mapping = Mapping::new(world.sqs.clone(), Queue::ReserveNumbers, new.clone(), polling);
    world.mapping("reserve-numbers").start();
    mapping.start();
    let mut unknown = Vec::new();
    for number in 1..=40 {
        let shopper = world.shopper(&product);
        match number % 4 {
            0 => {
                let order = unsent(&world, &shopper, &product, number).await;
                let (body, group) = (newer(&message(&product, order)), product.described.tenant_id.to_string());
                world.sqs.put_body(Queue::ReserveNumbers, body, group);
            }
            1 if number < 9 => {
                let order = unsent(&world, &shopper, &product, number).await;
                let body = OrderMessage { v: 2, ..message(&product, order) }.body();
                world.sqs.put_body(Queue::ReserveNumbers, body.clone(), product.described.tenant_id.to_string());
                unknown.push(body);
            }
            _ => {
                shopper.place(product.described.id, &wish(&[number], 0, "reject")).await.unwrap();
            }
        }
        if number == 25 {
            world.note("the old version ends");
            old.arm("reserve.before_commit=kill");
        }
        if number == 30 {
            world.mapping("reserve-numbers").stop();
        }
    }
    world.until("all but two are reserved", BOUND, async || look::count(&world.database, RESERVED).await == 38).await;
    assert!(old.counts().answers > 0 && new.counts().answers > 0, "{:?} and {:?}", old.counts(), new.counts());
    assert_eq!(look::count(&world.database, QUEUED).await, 2, "those of the unknown version wait");
    world.until("they are dead", BOUND, async || world.sqs.dead(Queue::ReserveNumbers).len() == 2).await;
    world.pass(QUEUED_SILENT_AFTER + Duration::from_secs(10)).await;
    world.schedule("reconcile-orders").run_once().await.answer();
    world.until("all are reserved", BOUND, async || look::count(&world.database, RESERVED).await == 40).await;
    mapping.stop();
    world.drain(BOUND).await;
    let mut dead = world.sqs.dead(Queue::ReserveNumbers);
    dead.sort();
    unknown.sort();
    assert_eq!(dead, unknown, "nothing else is dead");
    let steps = "select count(*) from order_events where to_state = 'reserved'";
    assert_eq!(look::count(&world.database, steps).await, 40);
    world.finish_with_dead().await;
}

/// Fault 27: the schema is migrated while orders flow: a run of `migrate` that finds nothing to do, twice at once, and
/// additions by hand, as the next migration will bring them. Nobody sees an error that repeating does not mend.
#[tokio::test(flavor = "multi_thread")]
async fn a_migration_during_traffic() {
    let world = World::start(Setup::default()).await;
    let product = world.product(20_000).await;
    world.run();
    let mut crowd = JoinSet::new();
    for _ in 0..BUYERS {
        crowd.spawn(shop(world.gateway.clone(), world.ledger.clone(), product.clone()));
    }
    let function = migrate(&world).await;
    let (first, second) = futures::join!(function.invoke(json!({})), function.invoke(json!({})));
    for report in [first.answer(), second.answer()] {
        assert_eq!(report, json!({ "applied": [], "version": store::migrations::latest() }));
    }
    let owner = world.database.another_owner().await;
    let accepted = || i64::try_from(world.ledger.acceptances().len()).unwrap();
    for change in [
        "alter table orders add column note text",
        "alter table orders add column channel text not null default 'web'",
        "alter table number_chunks add column checksum bigint",
        "alter table products add column subtitle text",
        "create table order_notes (order_id uuid primary key references orders (id), note text not null)",
        "create index concurrently orders_by_channel on orders (channel, id)",
        "alter table orders add constraint orders_channel_known check (channel in ('web', 'shop')) not valid",
        "alter table orders validate constraint orders_channel_known",
    ] {
        let before = accepted();
        additive(&world, &owner, change).await;
        world.until("orders go on", BOUND, async || accepted() >= before + 16).await;
    }
    behind_a_reader(&world, &owner).await;
    assert_eq!(
        function.invoke(json!({})).await.answer()["applied"],
        json!([]),
        "a newer schema is none of its business"
    );
    let mut statuses = BTreeMap::new();
    for seen in crowd.join_all().await {
        for (said, times) in seen {
            *statuses.entry(said).or_insert(0) += times;
        }
    }
    let known = ["202 ", "409 key-in-flight", "503 unavailable"];
    assert!(statuses.keys().all(|said| known.contains(&said.as_str())), "{statuses:?}");
    assert_eq!(accepted(), BUYERS * ORDERS, "{statuses:?}");
    world.until("all are reserved", BOUND, async || look::count(&world.database, RESERVED).await == accepted()).await;
    world.finish(BOUND).await;
}

/// Fault 27: a dead-letter queue is redriven after a week. Orders that have ended since are left alone, although
/// others have their numbers now; those that still waited are rejected, because their time is long over.
#[tokio::test(flavor = "multi_thread")]
async fn week_old_messages() {
    let world = hasty().await;
    let mut owner = world.database.another_owner().await;
    // Its holds are longer than the letters are dead.
    let (now, week_s) = (OffsetDateTime::now_utc(), i32::try_from(WEEK.as_secs()).unwrap());
    let product = seed::product(seed::store(&owner).await, 1_000).hold_seconds(week_s);
    let product = product.window(now - Duration::from_secs(60), now + WEEK * 4).insert(&mut owner).await;
    let workers = [("reserve-numbers", Queue::ReserveNumbers), ("release-numbers", Queue::ReleaseNumbers)];
    let start = || workers.iter().for_each(|(name, _)| world.mapping(name).start());
    start();
    let given_up = place(&world, &product, 10).await;
    assert_eq!(given_up.0.follow(given_up.1).await.unwrap()["state"], "reserved");
    world.note("both workers are broken");
    for (name, _) in workers {
        world.function(name).set(|settings| settings.program = "/bin/false".into());
        world.function(name).reap();
    }
    let mut orders = Vec::new();
    for number in 1..=5 {
        orders.push(place(&world, &product, number).await);
    }
    assert!(given_up.0.cancel(given_up.1).await);
    let dead = async || workers.map(|(_, queue)| world.sqs.dead(queue).len()) == [5, 1];
    world.until("all messages are dead", BOUND, dead).await;
    world.note("both workers are mended, and three orders and the cancellation are served after all");
    for (name, _) in workers {
        world.function(name).set(|settings| settings.program = bootstrap(name));
    }
    for (_, order) in &orders[..3] {
        world.sqs.put(Queue::ReserveNumbers, &message(&product, *order));
    }
    world.sqs.put(Queue::ReleaseNumbers, &message(&product, given_up.1));
    world.until("three are reserved", BOUND, async || look::count(&world.database, RESERVED).await == 3).await;
    assert!(orders[0].0.cancel(orders[0].1).await);
    let overdue = format!("update orders set expires_at = now(), sweep_at = now() where id = '{}'", orders[1].1);
    look::change(&world.database, &overdue, 1).await;
    world.schedule("expire-reservations").run_once().await.answer();
    world.until("one number is left", BOUND, async || look::taken(&world.database, &product).await == 1).await;
    for number in [1, 2, 10] {
        let (shopper, order) = place(&world, &product, number).await;
        assert_eq!(shopper.follow(order).await.unwrap()["state"], "reserved", "number {number} is sold again");
    }
    world.pass(WEEK - Duration::from_secs(3_600)).await;
    let before = ended(&world).await;
    world.note("the dead-letter queues are redriven");
    assert_eq!(workers.map(|(_, queue)| world.sqs.redrive(queue)), [5, 1]);
    world
        .until("the queues are empty", BOUND, async || Queue::ALL.iter().all(|queue| world.sqs.len(*queue) == 0))
        .await;
    for (shopper, order) in &orders[3..] {
        let seen = shopper.follow(*order).await.unwrap();
        assert_eq!((&seen["state"], &seen["reason"]["code"]), (&"rejected".into(), &"queued-too-long".into()));
    }
    let mut after = ended(&world).await;
    after.retain(|order, _| before.contains_key(order));
    assert_eq!(after, before, "what had ended is as it was");
    assert_eq!(look::taken(&world.database, &product).await, 4);
    world.finish(BOUND).await;
}

/// A world in which messages die within seconds.
async fn hasty() -> World {
    let world = World::start(Setup { scale: 2_000.0, duplicates: 0.0, ..Setup::default() }).await;
    world.jobs_at_once(1, Duration::from_secs(1));
    world
}

/// An order whose own message is lost, and with it the memory of having sent it.
async fn unsent(world: &World, shopper: &Shopper, product: &Product, number: i32) -> Uuid {
    world.sqs.fail(Call::Send, Fault::Forget, 1);
    let order = shopper.place(product.described.id, &wish(&[number], 0, "reject")).await.unwrap();
    look::change(&world.database, &format!("delete from outbox where order_id = '{order}'"), 1).await;
    order
}

/// A message as a later version may write it: more fields, in another order.
fn newer(message: &impl serde::Serialize) -> String {
    let mut newer = json!({ "priority": { "class": [1, 2] }, "note": "ñ \"v\":9", "sent_at": "2027-01-01T00:00:00Z" });
    for (name, value) in serde_json::to_value(message).unwrap().as_object().unwrap() {
        newer[name] = value.clone();
    }
    newer.to_string()
}

/// Buyers who place orders one after another while the schema changes: what they were told, and how often.
async fn shop(gateway: Gateway, ledger: Ledger, product: Product) -> BTreeMap<String, usize> {
    let mut seen = BTreeMap::new();
    for _ in 0..ORDERS {
        let shopper = Shopper::new(product.described.tenant_id, gateway.clone(), ledger.clone());
        let key = Uuid::now_v7().to_string();
        loop {
            let answer = shopper.try_place(product.described.id, &key, &wish(&[], 1, "reject")).await;
            let said = format!("{} {}", answer.status, code(&answer));
            *seen.entry(said).or_insert(0) += 1;
            if answer.status == 202 {
                break;
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    seen
}

/// One statement of a migration, tried until it gets its lock.
async fn additive(world: &World, owner: &Client, change: &str) {
    world.note(change);
    owner.batch_execute("set lock_timeout = '1s'").await.unwrap();
    let applied = async || owner.batch_execute(change).await.is_ok();
    world.until("the change is made", BOUND, applied).await;
}

/// A change that waits for a long reader, and everybody behind it.
async fn behind_a_reader(world: &World, owner: &Client) {
    let mut reader = world.database.another_owner().await;
    let reading = reader.transaction().await.unwrap();
    reading.query("select count(*) from orders", &[]).await.unwrap();
    owner.batch_execute("set lock_timeout = 0").await.unwrap();
    let change = "alter table orders add column campaign text";
    world.note(&format!("{change}, behind a reader"));
    let let_go = async {
        // Longer than anybody waits for a lock.
        world.until("others gave up", BOUND, async || gave_up(world)).await;
        reading.rollback().await.unwrap();
    };
    let (changed, ()) = futures::join!(owner.batch_execute(change), let_go);
    changed.unwrap();
}

/// Whether intake has met a lock that it did not get.
fn gave_up(world: &World) -> bool {
    !world.function("orders").log().with("lock timeout").is_empty()
}

/// The `migrate` function on this world's database.
async fn migrate(world: &World) -> Function {
    let name: String = world.database.owner().query_one("select current_database()::text", &[]).await.unwrap().get(0);
    let server = std::env::var("TIRADA_TEST_POSTGRES_URL").unwrap();
    let (server, _) = server.rsplit_once('/').unwrap();
    let mut settings: FunctionSettings = world.function("reconcile-orders").settings();
    settings.program = bootstrap("migrate");
    settings.concurrency = 2;
    settings.variables.insert("TIRADA_OWNER_DATABASE_URL".into(), format!("{server}/{name}"));
    Function::new("migrate", settings, world.gate())
}

async fn place(world: &World, product: &Product, number: i32) -> (Shopper, Uuid) {
    let shopper = world.shopper(product);
    let order = shopper.place(product.described.id, &wish(&[number], 0, "reject")).await.unwrap();
    (shopper, order)
}

/// Orders that are not queued, each with its state, version and the numbers that it owns.
async fn ended(world: &World) -> BTreeMap<Uuid, Value> {
    let sql = "select o.id, o.state, o.version,
            array(select number from taken_numbers t where t.order_id = o.id order by number) as owned
        from orders o where o.state <> 'queued'";
    let rows = world.database.owner().query(sql, &[]).await.unwrap();
    let order = |row: &tokio_postgres::Row| {
        let (state, version, owned): (String, i32, Vec<i32>) = (row.get(1), row.get(2), row.get(3));
        (row.get(0), json!([state, version, owned]))
    };
    rows.iter().map(order).collect()
}
