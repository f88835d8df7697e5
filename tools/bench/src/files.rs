//! Exports of a million rows: the most memory that their writer ever holds, in each format.

use std::time::Duration;

use domain::messages::ExportMessage;
use domain::roles::Role;
use serde_json::{Value, json};
use store::numbers::rebuild;
use tests::bucket::FakeBucket;
use tests::template::Template;
use tests::{look, staff};
use uuid::Uuid;

use crate::environment::Environment;
use crate::run::Run;
use crate::settings::NUMBERS;
use crate::shop::Shop;

/// One round: the real bootstrap, with as much time for an invocation as the template gives it.
pub(crate) async fn round(run: &mut Run) {
    run.step("a million rows");
    let shop = Shop::open(NUMBERS).await;
    take_all(&shop).await;
    let template = Template::read("template.yaml");
    let function = template.function("write-exports");
    let timeout = Duration::from_secs(function.0.number("/Timeout"));
    let bucket = FakeBucket::start().await;
    let endpoint = bucket.endpoint();
    for format in ["csv", "xlsx"] {
        run.step(&format!("an export of a million rows as {format}"));
        let event = ask(&shop, format).await;
        let more = [("AWS_ENDPOINT_URL_S3", endpoint.as_str())];
        let mut environment = Environment::start(&template, function, &shop, timeout, &more).await;
        environment.invoke(event).await;
        let ready = format!(
            "select count(*) from exports where state = 'ready' and rows_done = {NUMBERS} and format = '{format}'"
        );
        assert_eq!(look::count(&shop.database, &ready).await, 1, "the file is there, with every row");
        run.add(&format!("export_memory.{format}"), environment.peak_rss_bytes());
    }
    shop.database.finish_under_way().await;
}

/// Takes every number off sale: a row each.
async fn take_all(shop: &Shop) {
    let sql = "insert into taken_numbers (product_key, number) select $1::integer, generate_series(1, $2::integer)";
    let mut owner = shop.database.another_owner().await;
    owner.execute(sql, &[&shop.product.key, &NUMBERS]).await.unwrap();
    rebuild(&mut owner, &shop.product).await.unwrap();
}

/// Asks for an export of the product's numbers; the event about it.
async fn ask(shop: &Shop, format: &str) -> Value {
    let described = &shop.product.described;
    let (id, member) = (Uuid::now_v7(), staff::hire(&shop.database, described.tenant_id, Role::Finance).await);
    let sql = "insert into exports (id, tenant_id, product_id, staff_id, kind, format, language)
        values ($1, $2, $3, $4, 'numbers', $5, 'en')";
    let owner = shop.database.owner();
    owner.execute(sql, &[&id, &described.tenant_id, &described.id, &member.id, &format]).await.unwrap();
    json!({ "Records": [{
        "messageId": id,
        "receiptHandle": "a-handle",
        "body": serde_json::to_string(&ExportMessage::new(described.tenant_id, id)).unwrap(),
        "attributes": { "ApproximateReceiveCount": "1", "MessageGroupId": described.tenant_id },
        "messageAttributes": {},
        "md5OfBody": "29c2d231de1f509a92d2117c80ab1fa3",
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:tirada-dev-write-exports",
        "awsRegion": "us-east-1",
    }] })
}
