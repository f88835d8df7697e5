//! Numbers off sale, and on sale again.

use domain::catalog::Range;
use domain::roles::Role;
use serde_json::{Value, json};
use tests::http::is;
use tests::look::{count, taken};
use tests::seed::product;
use tests::staff::Office;

#[tokio::test(flavor = "multi_thread")]
async fn numbers_are_blocked_all_or_none_and_once_per_key() {
    let office = Office::open().await;
    let member = office.hire(Role::Operator).await;
    let sold = product(office.tenant_id, 10_000).insert(&mut office.database.another_owner().await).await;
    let act = async |what: &str, key: &str, numbers: Value| {
        let path = format!("/v1/admin/products/{}/{what}", sold.described.id);
        let body = json!({ "numbers": numbers, "reason": "kept for the jury" });
        member.send_under(&office.admin, key, "POST", &path, &body).await
    };
    assert_eq!(act("blocks", "1", json!([7, 77, 9_999])).await.status, 204);
    assert_eq!(act("blocks", "1", json!([7, 77, 9_999])).await.status, 204, "the same request");
    assert_eq!(act("blocks", "1", json!([8])).await.refusal(), is(422, "key-reused"));
    let refused = act("blocks", "2", json!([8, 77])).await;
    assert_eq!(refused.refusal(), is(409, "numbers-taken"));
    let [eight, other] = [8, 77].map(|number| Range::label(number, sold.described.padding));
    assert_eq!(refused.json()["detail"], format!("only free numbers can be blocked, not {other}"));
    assert_eq!(act("blocks", "3", json!([0])).await.refusal(), is(422, "out-of-range"));
    assert_eq!(act("blocks", "4", json!([])).await.refusal(), is(422, "invalid"));
    let many: Vec<i32> = (1..=1_001).collect();
    assert_eq!(act("blocks", "5", json!(many)).await.refusal(), is(422, "invalid"));
    assert_eq!(taken(&office.database, &sold).await, 3);
    let refused = act("unblocks", "6", json!([7, 8])).await;
    assert_eq!(refused.refusal(), is(409, "numbers-taken"));
    assert_eq!(refused.json()["detail"], format!("only blocked numbers can be unblocked, not {eight}"));
    assert_eq!(act("unblocks", "7", json!([7, 77])).await.status, 204);
    assert_eq!(taken(&office.database, &sold).await, 1);
    let acts = "select count(*) from audit_log where action in ('block_numbers', 'unblock_numbers')";
    assert_eq!(count(&office.database, acts).await, 2, "one per act that was done");
    office.database.finish().await;
}
