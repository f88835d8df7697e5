//! Orders: found, read, given up, given more time.

use domain::orders::State;
use domain::roles::Role;
use serde_json::{Value, json};
use store::catalog::Product;
use tests::chain::Chain;
use tests::http::is;
use tests::look::{self, count};
use tests::randomness;
use tests::seed::{exact, order, product};
use tests::staff::{Member, Office};
use uuid::Uuid;

const PHONE: &str = "+34600000001";

/// A store with a product, and somebody who helps its buyers.
struct Desk {
    office: Office,
    member: Member,
    product: Product,
    chain: Chain,
}

impl Desk {
    async fn open() -> Self {
        let office = Office::open().await;
        let member = office.hire(Role::Support).await;
        let product = product(office.tenant_id, 100).insert(&mut office.database.another_owner().await).await;
        let chain = Chain::new(&office.database, 1, 10, randomness::seed());
        Self { office, member, product, chain }
    }

    /// An order of a buyer for numbers, which it gets.
    async fn reserved(&self, buyer: Uuid, numbers: &[i32]) -> Uuid {
        let id = order(self.office.database.owner(), &self.product, buyer, &exact(numbers)).await;
        self.chain.put(&self.product, id);
        self.chain.run().await;
        id
    }

    /// Ids that a search finds.
    async fn find(&self, body: &Value) -> Vec<Uuid> {
        let answer = self.member.send(&self.office.admin, "POST", "/v1/admin/orders/search", body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let orders = answer.json()["orders"].as_array().unwrap().clone();
        orders.iter().map(|order| order["id"].as_str().unwrap().parse().unwrap()).collect()
    }

    async fn act(&self, id: Uuid, what: &str, key: &str, body: &Value) -> tests::http::Answer {
        self.member.send_under(&self.office.admin, key, "POST", &format!("/v1/admin/orders/{id}/{what}"), body).await
    }

    /// Makes what is owed due, and runs jobs and workers.
    async fn catch_up(&self) {
        self.office.database.owner().execute("update outbox set next_attempt_at = now()", &[]).await.unwrap();
        self.chain.reconcile().await;
        self.chain.run().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_is_found_by_what_its_buyer_can_name() {
    let desk = Desk::open().await;
    let buyer = Uuid::now_v7();
    let sql = "insert into buyers (id, tenant_id, phone) values ($1, $2, $3)";
    desk.office.database.owner().execute(sql, &[&buyer, &desk.office.tenant_id, &PHONE]).await.unwrap();
    let first = desk.reserved(buyer, &[5, 6]).await;
    let second = desk.reserved(buyer, &[7]).await;
    let other = desk.reserved(Uuid::now_v7(), &[8]).await;
    let product = desk.product.described.id;
    assert_eq!(desk.find(&json!({ "code": other })).await, [other]);
    assert_eq!(desk.find(&json!({ "phone": PHONE })).await, [second, first], "newest first");
    assert_eq!(desk.find(&json!({ "product": product, "number": 6 })).await, [first]);
    for nothing in [
        json!({ "code": Uuid::now_v7() }),
        json!({ "phone": "+34600000002" }),
        json!({ "product": product, "number": 9 }),
        json!({ "product": Uuid::now_v7(), "number": 6 }),
    ] {
        assert_eq!(desk.find(&nothing).await, Vec::<Uuid>::new(), "{nothing}");
    }
    let page = json!({ "phone": PHONE, "limit": 1 });
    let page = desk.member.send(&desk.office.admin, "POST", "/v1/admin/orders/search", &page).await.json();
    let next = json!({ "phone": PHONE, "limit": 1, "cursor": page["next_cursor"] });
    assert_eq!(desk.find(&next).await, [first]);
    for bad in [
        json!({}),
        json!({ "code": first, "phone": PHONE }),
        json!({ "number": 6 }),
        json!({ "phone": "600000001" }),
        json!({ "code": first, "limit": 0 }),
        json!({ "code": first, "cursor": "x" }),
    ] {
        let answer = desk.member.send(&desk.office.admin, "POST", "/v1/admin/orders/search", &bad).await;
        assert_eq!(answer.refusal(), is(422, "invalid"), "{bad}");
    }
    desk.office.database.finish_under_way().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_is_read_with_its_history() {
    let desk = Desk::open().await;
    let id = desk.reserved(Uuid::now_v7(), &[5]).await;
    let shown = desk.member.get(&desk.office.admin, &format!("/v1/admin/orders/{id}")).await.json();
    assert_eq!((&shown["state"], &shown["numbers"], &shown["total"]), (&json!("reserved"), &json!([5]), &json!("250")));
    let states: Vec<&Value> = shown["timeline"].as_array().unwrap().iter().map(|entry| &entry["to"]).collect();
    assert_eq!(states, ["queued", "reserved"]);
    assert_eq!((&shown["attempts"], &shown["refunds"], &shown["disputes"]), (&json!([]), &json!([]), &json!([])));
    desk.office.database.finish_under_way().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_is_given_up_for_its_buyer() {
    let desk = Desk::open().await;
    let because = json!({ "reason": "asked for by phone" });
    let queued = order(desk.office.database.owner(), &desk.product, Uuid::now_v7(), &exact(&[1])).await;
    let answer = desk.act(queued, "releases", "a", &because).await;
    assert_eq!((answer.status, answer.header("location")), (202, format!("/v1/admin/orders/{queued}").as_str()));
    assert_eq!(look::order(&desk.office.database, queued).await.state, State::Cancelled);
    let (_, events) = store::orders::history(desk.office.database.owner(), queued).await.unwrap();
    assert_eq!(events.last().unwrap().cause, "staff");

    let held = desk.reserved(Uuid::now_v7(), &[5]).await;
    for _ in 0..2 {
        assert_eq!(desk.act(held, "releases", "b", &because).await.status, 202, "the same request");
    }
    assert_eq!(desk.act(held, "releases", "c", &because).await.status, 202, "another, which changes nothing");
    let logged = "select count(*) from audit_log where action = 'release_order'";
    assert_eq!(count(&desk.office.database, logged).await, 2, "and is no act");
    assert_eq!(count(&desk.office.database, "select count(*) from outbox where queue = 'release-numbers'").await, 1);
    desk.catch_up().await;
    assert_eq!(look::order(&desk.office.database, held).await.state, State::Cancelled);
    assert_eq!(look::taken(&desk.office.database, &desk.product).await, 0);
    let other = desk.reserved(Uuid::now_v7(), &[6]).await;
    tests::seed::pay_in_cash(&desk.office.database, &desk.product, other).await;
    assert_eq!(desk.act(other, "releases", "d", &because).await.refusal(), is(409, "wrong-state"));
    desk.office.database.finish_under_way().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_is_extended_within_bounds_and_swept_at_its_new_end() {
    let desk = Desk::open().await;
    let id = desk.reserved(Uuid::now_v7(), &[5]).await;
    let before = look::order(&desk.office.database, id).await.expires_at.unwrap();
    let longer = |seconds: i32| json!({ "seconds": seconds, "reason": "the bank is down" });
    let answer = desk.act(id, "extensions", "a", &longer(3_600)).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(desk.act(id, "extensions", "a", &longer(3_600)).await.json(), answer.json(), "once per key");
    let after = look::order(&desk.office.database, id).await.expires_at.unwrap();
    assert_eq!(after - before, time::Duration::hours(1));
    for seconds in [0, -1, 86_401] {
        assert_eq!(desk.act(id, "extensions", "b", &longer(seconds)).await.refusal(), is(422, "invalid"), "{seconds}");
    }
    for day in 0..6 {
        assert_eq!(desk.act(id, "extensions", &format!("day-{day}"), &longer(86_400)).await.status, 200);
    }
    assert_eq!(desk.act(id, "extensions", "c", &longer(86_400)).await.refusal(), is(422, "limit-exceeded"));
    let mut owner = desk.office.database.another_owner().await;
    tests::simulator::time::pass(&mut owner, std::time::Duration::from_secs(1_000)).await;
    desk.chain.expire().await;
    assert_eq!(look::order(&desk.office.database, id).await.state, State::Reserved, "its old end is none");
    tests::simulator::time::pass(&mut owner, std::time::Duration::from_secs(7 * 86_400)).await;
    assert_eq!(desk.act(id, "extensions", "late", &longer(60)).await.refusal(), is(401, "unauthorized"), "all is over");
    desk.chain.expire().await;
    assert_eq!(look::order(&desk.office.database, id).await.state, State::Expired);
    assert_eq!(look::taken(&desk.office.database, &desk.product).await, 0);
    let again = tests::staff::hire(&desk.office.database, desk.office.tenant_id, Role::Support).await;
    let path = format!("/v1/admin/orders/{id}/extensions");
    assert_eq!(again.send(&desk.office.admin, "POST", &path, &longer(60)).await.refusal(), is(409, "wrong-state"));
    desk.office.database.finish().await;
}
