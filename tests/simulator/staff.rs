//! Staff at work in the middle of a sale: one pauses it and opens it again, another is removed, and environments die.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use domain::roles::Role;
use serde_json::{Value, json};
use tests::http::Answer;
use tests::look;
use tests::simulator::{Function, Gateway, HttpRequest, Setup, World, code, wish};
use tests::staff::hire;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::crowd::Crowd;

const BOUND: Duration = Duration::from_secs(60);
const LANES: usize = 6;
/// Tries of one request before it is given up.
const TRIES_MAX: usize = 100;
/// How often whatever works is killed.
const BETWEEN_KILLS: Duration = Duration::from_millis(60);
const PAUSED: &str = "503 sales-paused";

/// Sends a request with this token, and again while whoever works on it dies; its answer, and how often it was sent.
async fn act(gateway: &Gateway, bearer: &str, method: &'static str, path: &str, body: &Value) -> (Answer, usize) {
    for sent in 1..=TRIES_MAX {
        let mut request = HttpRequest { method, path: path.to_owned(), ..HttpRequest::default() };
        request.headers.insert("authorization".into(), bearer.to_owned());
        if !body.is_null() {
            request.headers.insert("content-type".into(), "application/json".into());
            request.body = body.to_string();
        }
        let answer = gateway.send(request).await;
        if answer.status < 500 {
            return (answer, sent);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{method} {path} is not answered");
}

/// Kills whatever works, again and again, until it is told to stop; how many processes.
fn kill(world: &World, stop: &Arc<AtomicBool>) -> JoinHandle<usize> {
    let functions = ["admin", "orders", "reserve-numbers", "staff"];
    let functions: Vec<Function> = functions.into_iter().map(|name| world.function(name).clone()).collect();
    let stop = Arc::clone(stop);
    tokio::spawn(async move {
        let mut killed = 0;
        while !stop.load(Ordering::Relaxed) {
            killed += functions.iter().map(Function::kill_busy).sum::<usize>();
            tokio::time::sleep(BETWEEN_KILLS).await;
        }
        killed
    })
}

/// Somebody who looks at the store's products all the time; the statuses of the answers, in their order.
fn look_on(world: &World, bearer: &str, stop: &Arc<AtomicBool>) -> JoinHandle<Vec<u16>> {
    let (gateway, bearer, stop) = (world.gateway.clone(), bearer.to_owned(), Arc::clone(stop));
    tokio::spawn(async move {
        let mut statuses = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            statuses.push(act(&gateway, &bearer, "GET", "/v1/admin/products", &Value::Null).await.0.status);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        statuses
    })
}

async fn database_time(world: &World) -> String {
    world.database.owner().query_one("select clock_timestamp()::text", &[]).await.unwrap().get(0)
}

fn refused_as_paused(world: &World) -> usize {
    world.ledger.retries().get(PAUSED).copied().unwrap_or_default()
}

async fn until_more(world: &World) {
    let so_far = world.ledger.acceptances().len();
    world.until("orders are accepted", BOUND, async || world.ledger.acceptances().len() > so_far + 100).await;
}

/// What the audit log has of somebody, with a text in its detail.
async fn logged(world: &World, staff_id: Uuid, action: &str, detail: &str) -> usize {
    let sql = format!(
        "select count(*) from audit_log
            where staff_id = '{staff_id}' and action = '{action}' and coalesce(detail, '') like '%{detail}%'"
    );
    usize::try_from(look::count(&world.database, &sql).await).unwrap()
}

/// A sale is paused and opened again, and an operator is removed, while buyers order and environments are killed. From
/// the answer on nothing is accepted until the sale is open again, and buyers are told why; whoever was removed is
/// nobody from the next request on; each act is in the audit log, and nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn a_sale_is_paused_and_an_operator_removed() {
    let world = World::start(Setup::default()).await;
    let product = world.product(50_000).await;
    let (tenant_id, id) = (product.described.tenant_id, product.described.id);
    let owner = hire(&world.database, tenant_id, Role::Owner).await;
    let operator = hire(&world.database, tenant_id, Role::Operator).await;
    let leaver = hire(&world.database, tenant_id, Role::Operator).await;
    world.run();
    let crowd = Crowd::gather(&world, &product, LANES, Duration::from_millis(5));
    until_more(&world).await;
    assert_eq!(refused_as_paused(&world), 0);
    let stop = Arc::new(AtomicBool::new(false));
    let (killing, looking) = (kill(&world, &stop), look_on(&world, &leaver.bearer, &stop));

    let path = format!("/v1/admin/products/{id}/intake");
    let switch = async |bearer: &str, intake: &str| {
        let body = json!({ "intake": intake, "reason": "moved to tomorrow" });
        act(&world.gateway, bearer, "PUT", &path, &body).await
    };
    world.note("the sale is paused");
    let (paused, pauses) = switch(&operator.bearer, "paused").await;
    assert_eq!(paused.status, 204, "{}", paused.text());
    let from = database_time(&world).await;
    let told = async || {
        let refused = world.shopper(&product).try_place(id, "paused", &wish(&[], 1, "reject")).await;
        assert_ne!(refused.status, 202, "nothing is accepted");
        (refused.status, code(&refused).as_str()) == (503, "sales-paused")
    };
    world.until("buyers are told why", BOUND, told).await;
    world.until("all are told why", BOUND, async || refused_as_paused(&world) >= LANES).await;
    let until = database_time(&world).await;
    world.note("the sale is open again");
    let (open, opens) = switch(&operator.bearer, "open").await;
    assert_eq!(open.status, 204, "{}", open.text());
    until_more(&world).await;
    let so_far = refused_as_paused(&world);

    world.note("an operator is removed");
    let path = format!("/v1/admin/staff/{}", leaver.id);
    let (removed, removals) = act(&world.gateway, &owner.bearer, "DELETE", &path, &Value::Null).await;
    // Who dies after the commit leaves the next try without anybody to remove.
    assert!(removed.status == 204 || (removed.status == 404 && removals > 1), "{}", removed.text());
    let (late, _) = switch(&leaver.bearer, "paused").await;
    assert_eq!(late.refusal(), (401, "unauthorized".to_owned()), "their next request");
    until_more(&world).await;
    stop.store(true, Ordering::Relaxed);
    let (killed, statuses) = (killing.await.unwrap(), looking.await.unwrap());
    let placed = i64::try_from(crowd.leave().await).unwrap();
    println!("{killed} processes were killed, {so_far} requests were refused as paused");
    assert!(killed > 0 && statuses.contains(&200));
    assert!(statuses.is_sorted() && statuses.iter().all(|status| matches!(*status, 200 | 401)), "{statuses:?}");
    assert_eq!(refused_as_paused(&world), so_far, "not before, not after");
    let meanwhile = format!("select count(*) from orders where created_at > '{from}' and created_at < '{until}'");
    assert_eq!(look::count(&world.database, &meanwhile).await, 0);

    // An act whose answer was lost was done once more.
    let action = "set_product_intake";
    let seen = (logged(&world, operator.id, action, "paused").await, logged(&world, operator.id, action, "open").await);
    assert!((1..=pauses).contains(&seen.0) && (1..=opens).contains(&seen.1), "{seen:?} of {pauses} and {opens}");
    assert_eq!(logged(&world, owner.id, "remove_staff", "").await, 1);
    let all = look::count(&world.database, "select count(*) from audit_log").await;
    assert_eq!(usize::try_from(all).unwrap(), seen.0 + seen.1 + 1, "and nothing of whoever was refused");
    world.drain(BOUND).await;
    let reserved = "select count(*) from orders where state = 'reserved'";
    assert_eq!(look::count(&world.database, reserved).await, placed);
    world.finish(BOUND).await;
}
