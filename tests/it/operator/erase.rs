//! Forgetting a buyer: nothing says who it was, in no column of no table, and the accounting is as it was.

use serde_json::{Value, json};
use store::payments::RefundRequest;
use tests::http::{Answer, Buyer};
use tests::leaks::columns_with;
use tests::look::{change, count};
use tests::notices::log_in;
use tests::operator;
use tests::seed::{self, exact};
use tests::till::{Policy, Till};
use uuid::Uuid;

use super::Terminal;

const PHONE: &str = "+34600000001";
const DIGITS: &str = "34600000001";
const NAME: &str = "A certain person";
const EMAIL: &str = "certain-person@example.org";

/// Everything that must be the same afterwards, but for the columns that hold texts of clients and staff.
const ACCOUNTING: [(&str, &str); 8] = [
    ("orders", "idempotency_key"),
    ("order_events", ""),
    ("payment_attempts", "return_url,instructions,requested_under"),
    ("refunds", "note"),
    ("disputes", ""),
    ("taken_numbers", ""),
    ("buyer_holdings", ""),
    ("number_chunks", ""),
];

async fn accounting(till: &Till) -> Vec<String> {
    let mut tables = Vec::new();
    for (table, without) in ACCOUNTING {
        let row = format!("(to_jsonb(t) - '{{{without}}}'::text[])::text");
        let sql = format!("select coalesce(string_agg({row}, ' ' order by {row}), '') from {table} t");
        tables.push(till.database.owner().query_one(&sql, &[]).await.unwrap().get(0));
    }
    tables
}

async fn slug(till: &Till) -> String {
    let sql = "select slug from tenants where id = $1";
    till.database.owner().query_one(sql, &[&till.product.described.tenant_id]).await.unwrap().get(0)
}

/// A buyer who has left something everywhere: logged in, asked for another code, and written their phone into every key.
async fn somebody(till: &Till) -> Buyer {
    let (buyer, tenant_id) = (till.buyer(), till.product.described.tenant_id);
    let owner = till.database.owner();
    log_in(&till.database, tenant_id, buyer.id, PHONE).await;
    owner.execute("update buyers set name = $2, email = $3 where id = $1", &[&buyer.id, &NAME, &EMAIL]).await.unwrap();
    let sql = "insert into sessions (id, tenant_id, buyer_id, device_id, expires_at)
        values ($1, $2, $3, $1, now() + interval '1 hour')";
    owner.execute(sql, &[&Uuid::now_v7(), &tenant_id, &buyer.id]).await.unwrap();
    let sql = "insert into login_codes (id, tenant_id, phone, language, key_id, expires_at, look_at)
        values ($1, $2, $3, 'es', 'k', now() + interval '1 minute', now() + interval '1 hour')";
    owner.execute(sql, &[&Uuid::now_v7(), &tenant_id, &PHONE]).await.unwrap();
    buyer
}

async fn place(till: &Till, buyer: &Buyer, key: &str, numbers: [i32; 2]) -> Uuid {
    let body = json!({ "numbers": numbers }).to_string();
    buyer.place(&till.orders, till.product.described.id, key, body).await.accepted()
}

async fn check_out(till: &Till, buyer: &Buyer, order: Uuid) -> Answer {
    let body = json!({ "method": "checkout", "return_url": format!("https://store.example/orders?of={DIGITS}") });
    buyer.pay(&till.payments, order, &format!("pay-{DIGITS}"), body.to_string()).await
}

async fn refund(till: &Till, order_id: Uuid, numbers: Option<&[i32]>) {
    let tenant_id = till.product.described.tenant_id;
    let note = format!("{NAME} called");
    let request = RefundRequest { tenant_id, order_id, numbers, note: &note, refund_id: Uuid::now_v7() };
    operator::refund(&mut till.database.app_client().await, &request).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_says_who_it_was_and_the_accounting_stays() {
    let till = Till::open(Policy::default()).await;
    let (terminal, store) = (Terminal::of(&till), slug(&till).await);
    let elsewhere = seed::store(till.database.owner()).await;
    log_in(&till.database, elsewhere, Uuid::now_v7(), PHONE).await;
    let buyer = somebody(&till).await;

    let paid = place(&till, &buyer, &format!("order-{DIGITS}"), [1, 2]).await;
    till.chain.reserve().await;
    let answer = check_out(&till, &buyer, paid).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    till.gateway.pay(answer.json()["id"].as_str().unwrap()).unwrap();
    till.rest().await;
    till.is(paid, "paid").await;
    refund(&till, paid, Some(&[1])).await;
    till.rest().await;
    let queued = place(&till, &buyer, &format!("another-{DIGITS}"), [3, 4]).await;
    assert_eq!(buyer.cancel(&till.orders, queued, &format!("cancel-{DIGITS}")).await.status, 202);
    till.chain.reserve().await;
    let refused = format!("update notices set failure = 'no route to {PHONE}' where kind = 'paid'");
    change(&till.database, &refused, 1).await;
    // Somebody else's, which are to stay.
    let other = till.reserve(&till.buyer(), &exact(&[7])).await;

    let everywhere = columns_with(till.database.owner(), DIGITS).await;
    for column in [
        "buyers.phone",
        "idempotency_keys.key",
        "login_codes.phone",
        "notices.failure",
        "orders.idempotency_key",
        "payment_attempts.requested_under",
        "payment_attempts.return_url",
    ] {
        assert!(everywhere.iter().any(|(found, _)| found == column), "{column} was looked at: {everywhere:?}");
    }
    let before = accounting(&till).await;
    let erase = ["buyer", "erase", "--store", &store, "--phone", PHONE];
    let shown = terminal.done(&[&erase[..], &["--dry-run"]].concat()).await;
    assert_eq!((&shown["buyer"], &shown["known"], &shown["erased"]), (&json!(buyer.id), &json!(true), &json!(false)));
    assert_eq!((&shown["orders"], &shown["texts"], &shown["under_way"]), (&json!(2), &json!(2), &json!([])));
    assert_eq!(columns_with(till.database.owner(), DIGITS).await, everywhere, "only shown");

    let sure = [&erase[..], &["--yes"]].concat();
    let done = terminal.done(&sure).await;
    assert_eq!((&done["erased"], &done["sessions"], &done["login_codes"]), (&json!(true), &json!(1), &json!(1)));
    assert!(!done.to_string().contains(DIGITS), "{done}");
    let left = columns_with(till.database.owner(), DIGITS).await;
    assert_eq!(left, [("buyers.phone".to_owned(), 1)], "the other store's");
    let theirs = format!("select count(*) from buyers where tenant_id = '{elsewhere}'");
    assert_eq!(count(&till.database, &theirs).await, 1);
    for text in [NAME, EMAIL] {
        assert_eq!(columns_with(till.database.owner(), text).await, [], "{text}");
    }
    assert_eq!(accounting(&till).await, before);
    let logged = format!(
        "select count(*) from audit_log where action = 'erase_buyer' and subject = 'buyer'
            and subject_id = '{}' and staff_id is null and detail is null and reason is null",
        buyer.id
    );
    assert_eq!(count(&till.database, &logged).await, 1);

    let again = terminal.done(&sure).await;
    assert_eq!((&again["erased"], &again["buyer"]), (&json!(false), &Value::Null));
    let by_id = terminal.done(&["buyer", "erase", "--store", &store, "--buyer", &buyer.id.to_string(), "--yes"]).await;
    assert_eq!((&by_id["erased"], &by_id["orders"]), (&json!(false), &json!(2)));
    assert_eq!(count(&till.database, &logged).await, 1, "once");
    assert_eq!(accounting(&till).await, before);
    till.is(other, "reserved").await;
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_erased_while_something_of_theirs_is_under_way() {
    let till = Till::open(Policy::default()).await;
    let (terminal, store) = (Terminal::of(&till), slug(&till).await);
    let buyer = somebody(&till).await;
    let erase = ["buyer", "erase", "--store", &store, "--phone", PHONE, "--yes"];
    let refused = async |order: Uuid| {
        let (code, text) = terminal.refused(&erase).await;
        assert!(code == 3 && text.contains(&order.to_string()) && !text.contains(DIGITS), "{text}");
        let shown = terminal.run(&["buyer", "erase", "--store", &store, "--phone", PHONE, "--dry-run"]).await.unwrap();
        assert_eq!((shown.code(), &shown.json()["under_way"]), (1, &json!([order])));
    };
    let order = place(&till, &buyer, "k", [1, 2]).await;
    refused(order).await;
    till.chain.reserve().await;
    till.is(order, "reserved").await;
    refused(order).await;
    let attempt = till.open_payment(&buyer, order, "k", "card").await;
    till.is(order, "paying").await;
    refused(order).await;
    till.gateway.pay(attempt).unwrap();
    till.rest().await;
    refund(&till, order, None).await;
    refused(order).await;
    till.rest().await;
    till.is(order, "refunded").await;
    assert_eq!(terminal.done(&erase).await["erased"], json!(true));
    let nowhere = ["buyer", "erase", "--store", "nowhere", "--phone", PHONE, "--yes"];
    assert_eq!(terminal.refused(&nowhere).await.0, 3);
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erasure_that_was_cut_short_is_taken_up_again() {
    let till = Till::open(Policy::default()).await;
    let (terminal, store) = (Terminal::of(&till), slug(&till).await);
    let buyer = somebody(&till).await;
    let order = place(&till, &buyer, &format!("order-{DIGITS}"), [1, 2]).await;
    assert_eq!(buyer.cancel(&till.orders, order, "c").await.status, 202);
    till.chain.reserve().await;
    // The texts are gone, the person is not: as somebody leaves it who dies before the last transaction.
    let sql = "update orders set idempotency_key = 'erased ' || id::text";
    change(&till.database, sql, 1).await;
    let done = terminal.done(&["buyer", "erase", "--store", &store, "--phone", PHONE, "--yes"]).await;
    assert_eq!((&done["erased"], &done["texts"]), (&json!(true), &json!(0)));
    assert_eq!(columns_with(till.database.owner(), DIGITS).await, []);
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_only_asked_for_a_code_is_forgotten_as_well() {
    let till = Till::open(Policy::default()).await;
    let (terminal, store) = (Terminal::of(&till), slug(&till).await);
    somebody(&till).await;
    till.database.owner().batch_execute("delete from sessions; delete from buyers").await.unwrap();
    let erase = ["buyer", "erase", "--store", &store, "--phone", PHONE, "--yes"];
    let done = terminal.done(&erase).await;
    assert_eq!((&done["erased"], &done["login_codes"], &done["buyer"]), (&json!(true), &json!(1), &Value::Null));
    assert_eq!(terminal.done(&erase).await["erased"], json!(false));
    assert_eq!(columns_with(till.database.owner(), DIGITS).await, []);
    assert_eq!(count(&till.database, "select count(*) from audit_log").await, 0, "there is nobody to name");
    till.finish().await;
}
