//! openpyxl reads our workbooks: every text is text for it too, whatever it begins with.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use aws_lambda_events::sqs::{SqsEvent, SqsMessage};
use domain::messages::ExportMessage;
use domain::roles::Role;
use edge::Deadline;
use edge::queue::MessageQueue;
use tests::bucket::FakeBucket;
use tests::queue::{Queues, Settings};
use tests::seed::{exact, order, product};
use tests::staff::Office;
use tests::{files, randomness};
use uuid::Uuid;

const NAMES: [&str; 8] =
    ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "a \"quoted\" name", "two\nlines", "Rifa de ñandúes \u{200f}عربي"];

/// Kind of cell, value, and whether it keeps an apostrophe in front.
type Cell = (String, String, bool);

/// The rows of a workbook.
fn read(workbook: &[u8]) -> Vec<Vec<Cell>> {
    let script = files::root().join("tests/oracles/sheets.py");
    let mut child = Command::new(crate::told("TIRADA_TEST_SDK_PYTHON"))
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // It reads everything before it writes anything.
    child.stdin.take().unwrap().write_all(workbook).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "sheets.py ended with {}", output.status);
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Writes a workbook of a product's orders.
async fn export(office: &Office, product_id: Uuid) -> Vec<u8> {
    let (id, member) = (Uuid::now_v7(), office.hire(Role::Finance).await);
    let sql = "insert into exports (id, tenant_id, product_id, staff_id, kind, format, language)
        values ($1, $2, $3, $4, 'numbers', 'xlsx', 'en')";
    office.database.owner().execute(sql, &[&id, &office.tenant_id, &product_id, &member.id]).await.unwrap();
    let queue = Arc::new(Queues::new(Settings::default(), randomness::seed())) as Arc<dyn MessageQueue>;
    let bucket = FakeBucket::start().await;
    let state = write_exports::State::new(office.database.app(1), bucket.writer(), queue);
    let mut message = SqsMessage::default();
    message.message_id = Some("1".into());
    message.body = Some(serde_json::to_string(&ExportMessage::new(office.tenant_id, id)).unwrap());
    let mut event = SqsEvent::default();
    event.records = vec![message];
    let response = write_exports::handle(&state, event, Deadline::after(Duration::from_secs(290))).await.unwrap();
    assert!(response.batch_item_failures.is_empty());
    let (_, file) = bucket.files().into_iter().next().expect("a file");
    file.bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn every_text_is_text() {
    let office = Office::open().await;
    let mut owner = office.database.another_owner().await;
    let made = product(office.tenant_id, 100).insert(&mut owner).await;
    owner.execute("update products set padding = 6", &[]).await.unwrap();
    let (buyer, phone) = (Uuid::now_v7(), "+34600000001");
    let sql = "insert into buyers (id, tenant_id, phone) values ($1, $2, $3)";
    owner.execute(sql, &[&buyer, &office.tenant_id, &phone]).await.unwrap();
    let id = order(&owner, &made, buyer, &exact(&[42])).await;
    let chain = tests::chain::Chain::new(&office.database, 1, 10, randomness::seed());
    chain.put(&made, id);
    chain.run().await;
    for name in NAMES {
        owner.execute("update products set name = $1", &[&name]).await.unwrap();
        let rows = read(&export(&office, made.described.id).await);
        assert_eq!(rows.len(), 2);
        let text = |value: &str| ("s".to_owned(), value.to_owned(), true);
        assert_eq!(rows[1][0], text("000042"));
        assert_eq!(rows[1][3], text(phone));
        assert_eq!(rows[1][4].0, "d", "a moment");
        assert_eq!(rows[1][5], text(name));
    }
    office.database.finish_under_way().await;
}
