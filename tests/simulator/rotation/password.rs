//! The password of the database changes in the middle of a sale.

use std::time::Duration;

use domain::messages::Queue;
use store::migrations::APP_ROLE;
use tests::look;
use tests::simulator::{OwnPostgres, Setup, World, code, wish};

use crate::crowd::Crowd;
use crate::outage::assert_nobody_crashed;

const BOUND: Duration = Duration::from_secs(60);
const LANES: usize = 6;
const URL: &str = "TIRADA_DATABASE_URL";
const RESERVED: &str = "select count(*) from orders where state = 'reserved'";

/// Another password, as an operator would set it.
async fn change(world: &World, password: &str) {
    world.note("the password is changed");
    let sql = format!("alter role {APP_ROLE} password '{password}'");
    world.database.owner().batch_execute(&sql).await.unwrap();
}

/// Deploys all functions with the new password.
fn deploy(world: &World, password: &str) {
    world.note("the functions are deployed with the new password");
    for function in world.functions() {
        function.deploy(|settings| {
            let place = settings.variables[URL].rsplit_once('@').expect("a URL with a password").1.to_owned();
            settings.variables.insert(URL.to_owned(), format!("postgres://{APP_ROLE}:{password}@{place}"));
        });
    }
}

async fn until_more(world: &World) {
    let so_far = world.ledger.acceptances().len();
    world.until("orders are accepted", BOUND, async || world.ledger.acceptances().len() > so_far + 100).await;
}

/// How often buyers were told to come back, which is all that they were told.
fn sent_away(world: &World) -> usize {
    let retries = world.ledger.retries();
    let known = ["503 unavailable", "409 key-in-flight"];
    assert!(retries.keys().all(|said| known.contains(&said.as_str())), "{retries:?}");
    assert!(world.ledger.refusals().is_empty(), "{:?}", world.ledger.refusals());
    retries.values().sum()
}

/// Fault 28: who is connected stays connected when the password changes, and the next deployment has the new one, so
/// that hardly anybody is sent away. At worst every connection is cut as well before anything is deployed: then
/// buyers are asked to come back and messages wait, and the deployment mends it. No accepted order is lost.
#[tokio::test(flavor = "multi_thread")]
async fn the_password_of_the_database_is_changed() {
    let server = OwnPostgres::start().await;
    server.ask_for_passwords().await;
    let world = World::start(Setup { server: Some(server.config()), ..Setup::default() }).await;
    let product = world.product(50_000).await;
    world.run();
    let crowd = Crowd::gather(&world, &product, LANES, Duration::from_millis(5));
    until_more(&world).await;
    change(&world, "the-second-password").await;
    deploy(&world, "the-second-password");
    until_more(&world).await;
    let few = sent_away(&world);
    assert!(few <= 2 * LANES, "{few} times a buyer was sent away");

    change(&world, "the-third-password").await;
    world.proxy.cut();
    let asked = async || sent_away(&world) > few;
    world.until("buyers are asked to come back", BOUND, asked).await;
    let refused = world.shopper(&product).try_place(product.described.id, "refused", &wish(&[], 1, "reject")).await;
    assert_eq!((refused.status, code(&refused).as_str()), (503, "unavailable"));
    assert!(refused.retry_after().is_some());
    deploy(&world, "the-third-password");
    until_more(&world).await;
    let placed = i64::try_from(crowd.leave().await).unwrap();
    sent_away(&world);
    world.drain(BOUND).await;
    assert_eq!(look::count(&world.database, RESERVED).await, placed, "each order that was accepted has its number");
    assert!(Queue::ALL.iter().all(|queue| world.sqs.dead(*queue).is_empty()), "no message died of it");
    assert_nobody_crashed(&world);
    world.finish(BOUND).await;
}
