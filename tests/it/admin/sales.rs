//! Sold over the counter: by the way of every other order, under its rules, and booked once.

use domain::limits::{SALES_PER_MEMBER, SALES_PER_STORE};
use domain::login::Share;
use domain::roles::Role;
use futures::future::join_all;
use serde_json::{Value, json};
use tests::http::{self, Answer, Api, Buyer, is};
use tests::leaks::columns_with;
use tests::look::{self, count};
use tests::seed;
use tests::staff::{Member, hire};
use tests::till::{Policy, Till};
use uuid::Uuid;

const PHONE: &str = "+34600000001";
const NAME: &str = "A certain person";

/// A store with a counter, and somebody behind it.
struct Counter {
    till: Till,
    member: Member,
    admin: Api,
}

impl Counter {
    async fn open(make: impl FnOnce(seed::ProductBuilder) -> seed::ProductBuilder) -> Self {
        let till = Till::sell(Policy::default(), make).await;
        let member = hire(&till.database, till.product.described.tenant_id, Role::Operator).await;
        let admin = http::admin(till.database.app(8));
        Self { till, member, admin }
    }

    async fn sell(&self, key: &str, body: &Value) -> Answer {
        let path = format!("/v1/admin/products/{}/sales", self.till.product.described.id);
        self.member.send_under(&self.admin, key, "POST", &path, body).await
    }

    async fn book(&self, id: Uuid, key: &str) -> Answer {
        let path = format!("/v1/admin/orders/{id}/bookings");
        self.member.send_under(&self.admin, key, "POST", &path, &json!({ "reason": "cash at the desk" })).await
    }

    /// Sells and lets the order get its numbers.
    async fn sold(&self, key: &str, body: &Value) -> Uuid {
        let id = sale(&self.sell(key, body).await);
        self.serve().await;
        id
    }

    /// The relay tells the queue, the worker reserves.
    async fn serve(&self) {
        self.till.chain.reconcile().await;
        self.till.chain.reserve().await;
    }

    /// Makes a pot behind by so many sales, whatever it was.
    async fn behind(&self, pot: &str, share: Share, sales: u32) {
        let sql = "insert into login_limits (subject, full_until)
            values (md5($1::text)::uuid, now() + make_interval(secs => $2))
            on conflict (subject) do update set full_until = excluded.full_until";
        let seconds = share.one_per.as_secs_f64() * f64::from(sales);
        self.till.database.owner().execute(sql, &[&pot, &seconds]).await.unwrap();
    }

    async fn count(&self, sql: &str) -> i64 {
        count(&self.till.database, sql).await
    }
}

/// The order of an accepted sale.
fn sale(answer: &Answer) -> Uuid {
    assert_eq!(answer.status, 202, "{}", answer.text());
    let id = answer.json()["id"].as_str().unwrap().parse().unwrap();
    assert_eq!(answer.header("location"), format!("/v1/admin/orders/{id}"));
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sold_is_reserved_like_any_order_and_booked_once() {
    let counter = Counter::open(|product| product).await;
    let wanted = json!({ "phone": PHONE, "name": NAME, "numbers": [6, 5] });
    let first = counter.sell("a", &wanted).await;
    let id = sale(&first);
    let again = counter.sell("a", &json!({ "phone": PHONE, "numbers": [5, 6] })).await;
    assert_eq!((first.is_replay(), again.is_replay(), again.json()), (false, true, first.json()));
    for other in [
        json!({ "phone": PHONE, "numbers": [5, 7] }),
        json!({ "phone": "+34600000002", "name": "Another person", "numbers": [5, 6] }),
    ] {
        assert_eq!(counter.sell("a", &other).await.refusal(), is(422, "key-reused"), "{other}");
    }
    assert_eq!(counter.book(id, "early").await.refusal(), is(409, "wrong-state"));
    counter.serve().await;
    let shown = counter.member.get(&counter.admin, &format!("/v1/admin/orders/{id}")).await.json();
    assert_eq!((&shown["state"], &shown["numbers"]), (&json!("reserved"), &json!([5, 6])));
    assert_eq!(shown["buyer"], json!({ "phone": PHONE, "name": NAME }));
    assert_eq!(shown["timeline"][0]["cause"], "staff");

    for key in ["b", "b", "c"] {
        let booked = counter.book(id, key).await;
        assert_eq!((booked.status, &booked.json()["state"]), (200, &json!("paid")), "{}", booked.text());
    }
    assert_eq!(counter.count("select count(*) from payment_attempts where gateway = 'manual'").await, 1);
    assert_eq!(look::taken(&counter.till.database, &counter.till.product).await, 2);
    for action in ["sell_numbers", "book_payment"] {
        let logged = format!(
            "select count(*) from audit_log where action = '{action}' and subject = 'order' and subject_id = '{id}'
                and staff_id = '{}'",
            counter.member.id
        );
        assert_eq!(counter.count(&logged).await, 1, "{action}");
    }
    let owner = counter.till.database.owner();
    assert_eq!(columns_with(owner, &PHONE[1..]).await, [("buyers.phone".to_owned(), 1)], "and nowhere else");
    assert_eq!(columns_with(owner, NAME).await, [("buyers.name".to_owned(), 1)]);
    let buyer = look::order(&counter.till.database, id).await.buyer_id;
    let buyer = Buyer::with_id(counter.till.product.described.tenant_id, buyer);
    assert_eq!(counter.till.seen(&buyer, id).await["state"], "paid", "whoever logs in with that phone finds it");
    counter.till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_is_sold_to_whoever_comes_first_and_to_nobody_else() {
    let counter = Counter::open(|product| product).await;
    let (till, product_id) = (&counter.till, counter.till.product.described.id);
    for number in 1..=8 {
        let buyer = till.buyer();
        let wanted = json!({ "phone": PHONE, "numbers": [number] });
        let (key, body) = (number.to_string(), json!({ "numbers": [number] }).to_string());
        let placing = buyer.place(&till.orders, product_id, &key, body);
        let (sold, placed) = tokio::join!(counter.sell(&key, &wanted), placing);
        let (sold, placed) = (sale(&sold), placed.accepted());
        counter.serve().await;
        let orders = look::orders(&till.database, &[sold, placed]).await;
        let states: Vec<&str> = orders.iter().map(|order| order.state.word()).collect();
        assert!(states == ["reserved", "rejected"] || states == ["rejected", "reserved"], "{states:?}");
    }
    assert_eq!(look::taken(&till.database, &till.product).await, 8);
    counter.till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sale_said_many_times_at_once_is_one() {
    let counter = Counter::open(|product| product).await;
    let wanted = json!({ "phone": PHONE, "name": NAME, "quantity": 3 });
    let answers = join_all((0..8).map(|_| counter.sell("same", &wanted))).await;
    for answer in &answers {
        assert!(answer.status == 202 || answer.refusal() == is(409, "key-in-flight"), "{}", answer.text());
    }
    assert!(answers.iter().any(|answer| answer.status == 202));
    counter.serve().await;
    assert_eq!(counter.count("select count(*) from orders").await, 1);
    assert_eq!(counter.count("select count(*) from buyers").await, 1);
    assert_eq!(look::taken(&counter.till.database, &counter.till.product).await, 3);
    counter.till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_sells_and_their_store_have_pots() {
    let counter = Counter::open(|product| product.per_order(2)).await;
    let (of_member, of_store) =
        (format!("sales by {}", counter.member.id), format!("sales of {}", counter.member.tenant_id));
    let pots = "select count(*) from login_limits";
    let wrong = json!({ "phone": PHONE, "quantity": 3 });
    assert_eq!(counter.sell("wrong", &wrong).await.refusal(), is(422, "limit-exceeded"));
    assert_eq!(counter.count(pots).await, 0, "what is refused takes nothing");
    let first = json!({ "phone": PHONE, "quantity": 1 });
    sale(&counter.sell("first", &first).await);
    assert_eq!(counter.count(pots).await, 2);
    for (n, (name, pot, share)) in
        [("member", &of_member, SALES_PER_MEMBER), ("store", &of_store, SALES_PER_STORE)].into_iter().enumerate()
    {
        counter.behind(pot, share, share.messages + 60).await;
        let full = "select md5(string_agg(full_until::text, ' ' order by subject)) from login_limits";
        let owner = counter.till.database.owner();
        let before: String = owner.query_one(full, &[]).await.unwrap().get(0);
        let body = json!({ "phone": format!("+3460000001{n}"), "name": NAME, "quantity": 1 });
        let limited = counter.sell(name, &body).await;
        assert_eq!(limited.refusal(), is(429, "too-many-requests"), "{name}");
        let wait = limited.retry_after().unwrap();
        assert_eq!(limited.header("ratelimit"), format!("\"{name}\";r=0;t={wait}"));
        let window = share.one_per.as_secs() * u64::from(share.messages);
        assert_eq!(limited.header("ratelimit-policy"), format!("\"{name}\";q={};w={window}", share.messages));
        assert!((1..=share.one_per.as_secs() * 61 + 1).contains(&wait), "{name}: {wait}");
        assert!(counter.sell("first", &first).await.is_replay(), "{name}: what was sold is answered again");
        let after: String = owner.query_one(full, &[]).await.unwrap().get(0);
        assert_eq!(after, before, "{name}: neither took anything");
        assert_eq!(counter.count("select count(*) from orders").await, i64::try_from(n).unwrap() + 1, "{name}");
        assert_eq!(counter.count("select count(*) from buyers").await, i64::try_from(n).unwrap() + 1, "{name}");
        counter.behind(pot, share, share.messages - 1).await;
        sale(&counter.sell(name, &body).await);
        counter.behind(pot, share, 0).await;
    }
    let colleague = hire(&counter.till.database, counter.member.tenant_id, Role::Support).await;
    counter.behind(&of_member, SALES_PER_MEMBER, SALES_PER_MEMBER.messages + 60).await;
    let path = format!("/v1/admin/products/{}/sales", counter.till.product.described.id);
    sale(&colleague.send(&counter.admin, "POST", &path, &first).await);
    counter.serve().await;
    counter.till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rules_of_the_sale_hold_and_a_refusal_leaves_nobody() {
    let counter = Counter::open(|product| product.per_order(2)).await;
    let owner = counter.till.database.owner();
    let good = json!({ "phone": PHONE, "name": NAME, "numbers": [5] });
    for (change, back, refusal) in [
        ("update products set intake = 'paused'", "update products set intake = 'open'", is(503, "sales-paused")),
        ("update tenants set intake = 'paused'", "update tenants set intake = 'open'", is(503, "sales-paused")),
        ("update platform set intake = 'paused'", "update platform set intake = 'open'", is(503, "sales-paused")),
        (
            "update products set gateways = '{stripe}'",
            "update products set gateways = '{stripe,manual}'",
            is(422, "method-unavailable"),
        ),
        (
            "update products set closes_at = now()",
            "update products set closes_at = now() + interval '1 day'",
            is(409, "sale-closed"),
        ),
    ] {
        owner.execute(change, &[]).await.unwrap();
        assert_eq!(counter.sell("k", &good).await.refusal(), refusal, "{change}");
        owner.execute(back, &[]).await.unwrap();
    }
    for (body, refusal) in [
        (json!({ "phone": PHONE, "numbers": [1_001] }), is(422, "out-of-range")),
        (json!({ "phone": PHONE, "quantity": 3 }), is(422, "limit-exceeded")),
        (json!({ "phone": PHONE }), is(422, "invalid")),
        (json!({ "phone": "600000001", "quantity": 1 }), is(422, "invalid")),
        (json!({ "phone": PHONE, "name": " ", "quantity": 1 }), is(422, "invalid")),
        (json!({ "phone": PHONE, "name": "a\nb", "quantity": 1 }), is(422, "invalid")),
        (json!({ "phone": PHONE, "name": "\u{200b}", "quantity": 1 }), is(422, "invalid")),
        (json!({ "quantity": 1 }), is(422, "invalid")),
    ] {
        let answer = counter.sell("k", &body).await;
        assert_eq!(answer.refusal(), refusal, "{body}");
        assert!(!answer.text().contains("600000001"), "{}", answer.text());
    }
    for role in [Role::Finance, Role::Viewer] {
        let member = hire(&counter.till.database, counter.member.tenant_id, role).await;
        let path = format!("/v1/admin/products/{}/sales", counter.till.product.described.id);
        assert_eq!(member.send(&counter.admin, "POST", &path, &good).await.refusal(), is(403, "forbidden"));
    }
    for table in ["buyers", "orders", "audit_log", "idempotency_keys", "outbox"] {
        assert_eq!(counter.count(&format!("select count(*) from {table}")).await, 0, "{table}");
    }
    sale(&counter.sell("k", &good).await);
    counter.serve().await;
    counter.till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_that_the_buyer_has_begun_is_called_off_before_cash_is_booked() {
    let counter = Counter::open(|product| product).await;
    let till = &counter.till;
    let id = counter.sold("a", &json!({ "phone": PHONE, "quantity": 1 })).await;
    let buyer = Buyer::with_id(counter.member.tenant_id, look::order(&till.database, id).await.buyer_id);
    let open = till.open_payment(&buyer, id, "mine", "card").await;
    for _ in 0..2 {
        assert_eq!(counter.book(id, "b").await.refusal(), is(409, "payment-in-flight"));
    }
    let logged = "select count(*) from audit_log where action = 'book_payment'";
    let called_off = format!("{logged} and detail like '%called_off%'");
    assert_eq!(
        (counter.count(logged).await, counter.count(&called_off).await),
        (1, 1),
        "that a payment was called off"
    );
    let owner = till.database.owner();
    owner.execute("update products set gateways = '{stripe}'", &[]).await.unwrap();
    assert_eq!(counter.book(id, "never").await.refusal(), is(422, "method-unavailable"));
    owner.execute("update products set gateways = '{stripe,manual}'", &[]).await.unwrap();
    till.rest().await;
    till.is(id, "reserved").await;
    assert_eq!(counter.book(id, "b").await.json()["state"], "paid");
    assert_eq!(counter.count(logged).await, 2, "and that it was booked");
    assert!(till.gateway.pay(open).is_err(), "nobody can pay it any more");
    counter.till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_costs_nothing_is_handed_out() {
    let counter = Counter::open(|product| product.price(0, "BRL")).await;
    let id = counter.sold("a", &json!({ "phone": PHONE, "quantity": 2 })).await;
    for key in ["b", "c"] {
        assert_eq!(counter.book(id, key).await.json()["state"], "paid");
    }
    assert_eq!(counter.count("select count(*) from audit_log where action = 'book_payment'").await, 1);
    assert_eq!(counter.count("select count(*) from payment_attempts").await, 0);
    counter.till.finish().await;
}
