//! Money back, as the API says it, at a store that can be paid.

use domain::catalog::Range;
use domain::payments::{ObservedRefund, RefundState};
use domain::roles::Role;
use serde_json::{Value, json};
use store::payments::{RefundAnswer, record_refund};
use tests::http::{self, Answer, is};
use tests::look::{self, count};
use tests::seed::exact;
use tests::staff::{Member, hire};
use tests::till::{Policy, Till};
use uuid::Uuid;

async fn refund(till: &Till, member: &Member, id: Uuid, key: &str, body: &Value) -> Answer {
    let admin = http::admin(till.database.app(1));
    member.send_under(&admin, key, "POST", &format!("/v1/admin/orders/{id}/refunds"), body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paid_order_goes_back_in_parts_and_once_per_key() {
    let till = Till::open(Policy::default()).await;
    let member = hire(&till.database, till.product.described.tenant_id, Role::Finance).await;
    let buyer = till.buyer();
    let id = till.reserve(&buyer, &exact(&[5, 6, 7])).await;
    tests::seed::pay_in_cash(&till.database, &till.product, id).await;
    let part = json!({ "numbers": [6], "reason": "asked for" });
    for _ in 0..2 {
        let answer = refund(&till, &member, id, "a", &part).await;
        assert_eq!(answer.status, 202, "{}", answer.text());
    }
    assert_eq!(count(&till.database, "select count(*) from refunds").await, 1);
    let other = json!({ "numbers": [7], "reason": "asked for" });
    assert_eq!(refund(&till, &member, id, "a", &other).await.refusal(), is(422, "key-reused"));
    // Its key is forgotten after a day, what was made under it is not.
    till.database.owner().execute("delete from idempotency_keys", &[]).await.unwrap();
    assert_eq!(refund(&till, &member, id, "a", &other).await.refusal(), is(422, "key-reused"));
    let refused = refund(&till, &member, id, "b", &json!({ "numbers": [5, 6, 9], "reason": "asked for" })).await;
    assert_eq!(refused.refusal(), is(409, "numbers-taken"));
    let [six, nine] = [6, 9].map(|number| Range::label(number, till.product.described.padding));
    let detail = format!("only numbers that the order still has can be refunded, not {six}, {nine}");
    assert_eq!(refused.json()["detail"], detail, "one goes back already, one never was its own");
    for bad in [json!({ "numbers": [], "reason": "x" }), json!({ "reason": "" }), json!({ "numbers": [6] })] {
        assert_eq!(refund(&till, &member, id, "c", &bad).await.refusal(), is(422, "invalid"), "{bad}");
    }
    till.rest().await;
    assert_eq!(refund(&till, &member, id, "d", &json!({ "reason": "all of it" })).await.status, 202);
    till.rest().await;
    till.is(id, "refunded").await;
    let admin = http::admin(till.database.app(1));
    let shown = member.get(&admin, &format!("/v1/admin/orders/{id}")).await.json();
    let amounts: Vec<&Value> = shown["refunds"].as_array().unwrap().iter().map(|refund| &refund["amount"]).collect();
    assert_eq!(amounts, ["250", "500"]);
    assert_eq!(shown["refunds"][0]["note"], "asked for");
    assert_eq!(look::taken(&till.database, &till.product).await, 0);
    assert_eq!(count(&till.database, "select count(*) from audit_log where action = 'refund_order'").await, 2);
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cash_that_was_handed_back_is_counted_once() {
    let till = Till::open(Policy::default()).await;
    let member = hire(&till.database, till.tenant_id(), Role::Finance).await;
    let admin = http::admin(till.database.app(1));
    let id = till.reserve(&till.buyer(), &exact(&[5, 6, 7])).await;
    tests::seed::pay_in_cash(&till.database, &till.product, id).await;
    let shown = async || member.get(&admin, &format!("/v1/admin/orders/{id}")).await.json();
    assert_eq!(shown().await["attempts"][0]["refunded"], "0");
    let part = json!({ "numbers": [6], "reason": "asked for" });
    for (key, body, back) in [("a", part, "250"), ("b", json!({ "reason": "all of it" }), "750")] {
        assert_eq!(refund(&till, &member, id, key, &body).await.status, 202);
        assert_ne!(shown().await["attempts"][0]["refunded"], back, "nobody has handed it out yet");
        till.rest().await;
        let refunds = shown().await["refunds"].clone();
        assert_eq!(shown().await["attempts"][0]["refunded"], back);
        // The same answers again.
        for made in refunds.as_array().unwrap() {
            let refund_id: Uuid = made["id"].as_str().unwrap().parse().unwrap();
            let heard = ObservedRefund {
                gateway_refund_id: format!("manual-{refund_id}"),
                refund_id: Some(refund_id),
                amount_minor: made["amount"].as_str().unwrap().parse().unwrap(),
                state: RefundState::Succeeded,
            };
            let mut client = till.database.app_client().await;
            let answer = RefundAnswer::Observed(&heard);
            record_refund(&mut client, till.tenant_id(), id, refund_id, answer).await.unwrap();
        }
        let attempts = shown().await["attempts"].clone();
        assert_eq!((&attempts[0]["captured"], &attempts[0]["refunded"]), (&json!("750"), &json!(back)));
    }
    till.is(id, "refunded").await;
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unpaid_order_has_nothing_to_give_back_and_a_free_one_its_numbers() {
    let till = Till::sell(Policy::default(), |product| product.price(0, "BRL")).await;
    let member = hire(&till.database, till.product.described.tenant_id, Role::Finance).await;
    let buyer = till.buyer();
    let id = till.reserve(&buyer, &exact(&[5, 6])).await;
    let part = json!({ "numbers": [5], "reason": "asked for" });
    assert_eq!(refund(&till, &member, id, "a", &part).await.refusal(), is(409, "wrong-state"));
    assert_eq!(till.pay(&buyer, id, "free", "card").await.status, 204);
    for _ in 0..2 {
        assert_eq!(refund(&till, &member, id, "b", &part).await.status, 202);
    }
    let refused = refund(&till, &member, id, "c", &part).await;
    assert_eq!(refused.refusal(), is(409, "numbers-taken"));
    let five = Range::label(5, till.product.described.padding);
    assert!(refused.json()["detail"].as_str().unwrap().ends_with(&format!(", not {five}")), "{}", refused.text());
    assert_eq!(look::order(&till.database, id).await.given_up, [5]);
    assert_eq!(count(&till.database, "select count(*) from audit_log").await, 1);
    till.finish().await;
}
