//! Exports that are interrupted: no row is lost, none is written twice, and somebody always goes on.

use domain::exports::Failure;
use domain::messages::{ExportMessage, Queue};
use serde_json::json;
use store::exports::{Claim, Claimed, Part, begin, claim, fail, finish, page, save_part};
use tests::http::BUCKET;
use tests::look::{change, count};
use uuid::Uuid;

use super::{Archive, browser, lines};

/// So small that a page is more than a part.
const SMALL: usize = 100;

/// A part that is like no other, so that it is known again.
const SAVED: &str = "\u{feff}\"a\",\"b\",\"c\",\"d\",\"e\",\"f\"\r\n\"000150\",\"\",\"\",\"\",\"\",\"\"\r\n";

/// All numbers of some orders, from a file.
fn numbers(file: &tests::bucket::File) -> Vec<String> {
    lines(file)[1..].iter().map(|line| line[0].clone()).collect()
}

async fn many() -> Archive {
    let mut archive = Archive::open().await;
    archive.part_bytes = SMALL;
    archive.reserved(&(1..=100).collect::<Vec<_>>()).await;
    archive.reserved(&(101..=200).collect::<Vec<_>>()).await;
    archive
}

/// Claims an export past the worker; none when somebody has it.
pub(super) async fn claimed(archive: &Archive, id: Uuid) -> Option<Box<Claimed>> {
    let message = ExportMessage::new(archive.office.tenant_id, id);
    match claim(&archive.office.database.app_client().await, &message, Uuid::now_v7()).await.unwrap() {
        Claim::Yours(claimed) => Some(claimed),
        Claim::Nothing | Claim::GaveUp => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_that_is_away_costs_time_and_no_row() {
    let archive = many().await;
    let id = archive.ask("numbers", "csv", "en").await;
    // More than the client itself tries again.
    archive.bucket.refuse_parts(7);
    archive.work().await;
    let file = archive.file(id).await;
    let wanted: Vec<String> = (1..=200).map(|number| format!("{number:06}")).collect();
    assert_eq!(numbers(&file), wanted);
    assert_eq!(archive.show(id).await["rows"], json!(200));
    archive.office.database.finish_under_way().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_saved_is_not_written_again() {
    let archive = many().await;
    let id = archive.ask("numbers", "csv", "en").await;
    let client = archive.office.database.app_client().await;
    let first = claimed(&archive, id).await.expect("nobody has it");
    assert!(claimed(&archive, id).await.is_none(), "one writer at a time");
    // A writer that saved a part and died: what it wrote is in the file as it is.
    let upload_id = begun(&archive, &first).await;
    assert!(begin(&client, &first, &upload_id).await.unwrap());
    let etag = put(&archive, &first, &upload_id, SAVED).await;
    let bytes = i64::try_from(SAVED.len()).unwrap();
    let part = Part { number: 1, etag: &etag, cursor: Some("150"), rows: 150, bytes, percent: 15, is_last: false };
    assert!(save_part(&client, &first, &part).await.unwrap());
    assert!(!save_part(&client, &first, &part).await.unwrap(), "not twice");
    change(&archive.office.database, "update exports set claimed_until = now(), look_at = now()", 1).await;
    archive.work().await;
    let file = archive.file(id).await;
    let wanted: Vec<String> = (150..=200).map(|number| format!("{number:06}")).collect();
    assert_eq!(numbers(&file), wanted, "from where it stopped");
    assert_eq!(archive.show(id).await["rows"], json!(200));
    // The first writer was not dead, only slow.
    assert!(!save_part(&client, &first, &Part { number: 2, ..part }).await.unwrap());
    assert!(!finish(&client, &first).await.unwrap() && !fail(&client, &first, Failure::GaveUp).await.unwrap());
    archive.office.database.finish_under_way().await;
}

/// Begins an upload past the worker.
pub(super) async fn begun(archive: &Archive, claimed: &Claimed) -> String {
    let url = format!("{}/{BUCKET}/{}?uploads", archive.bucket.endpoint(), claimed.key());
    let text = browser().post(url).body("").send().await.unwrap().text().await.unwrap();
    text.split("<UploadId>").nth(1).unwrap().split('<').next().unwrap().to_owned()
}

/// Puts the first part past the worker; its ETag.
pub(super) async fn put(archive: &Archive, claimed: &Claimed, upload_id: &str, text: &str) -> String {
    let url = format!("{}/{BUCKET}/{}?partNumber=1&uploadId={upload_id}", archive.bucket.endpoint(), claimed.key());
    let answer = browser().put(url).body(text.to_owned()).send().await.unwrap();
    answer.headers()["etag"].to_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_was_lost_leaves_one_file() {
    let archive = many().await;
    let id = archive.ask("numbers", "csv", "en").await;
    archive.bucket.lose_completions(1);
    archive.work().await;
    assert_eq!(numbers(&archive.file(id).await).len(), 200);
    assert_eq!(archive.bucket.files().len(), 1);
    archive.office.database.finish_under_way().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_is_gone_is_begun_again() {
    let archive = many().await;
    let id = archive.ask("numbers", "csv", "en").await;
    let first = claimed(&archive, id).await.expect("nobody has it");
    let upload_id = begun(&archive, &first).await;
    let client = archive.office.database.app_client().await;
    assert!(begin(&client, &first, &upload_id).await.unwrap());
    let etag = put(&archive, &first, &upload_id, SAVED).await;
    let part = Part { number: 1, etag: &etag, cursor: Some("150"), rows: 150, bytes: 1, percent: 15, is_last: false };
    assert!(save_part(&client, &first, &part).await.unwrap());
    archive.bucket.forget_uploads();
    change(&archive.office.database, "update exports set claimed_until = now(), look_at = now()", 1).await;
    archive.work().await;
    assert_eq!(numbers(&archive.file(id).await).len(), 200);
    archive.office.database.finish_under_way().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_comes_often_writes_once() {
    let archive = many().await;
    let id = archive.ask("orders", "csv", "en").await;
    let message = ExportMessage::new(archive.office.tenant_id, id);
    let body = serde_json::to_string(&message).unwrap();
    for _ in 0..10 {
        archive.chain.queues.put_body(Queue::WriteExports, body.clone(), message.tenant_id.to_string());
    }
    archive.work().await;
    assert_eq!(lines(&archive.file(id).await).len(), 3);
    assert_eq!(archive.chain.queues.dead(Queue::WriteExports), Vec::<String>::new());
    let elsewhere = ExportMessage::new(Uuid::now_v7(), id);
    let client = archive.office.database.app_client().await;
    assert_eq!(claim(&client, &elsewhere, Uuid::now_v7()).await.unwrap(), Claim::Nothing, "another store's");
    archive.office.database.finish_under_way().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_never_works_is_given_up() {
    let archive = many().await;
    let id = archive.ask("numbers", "csv", "en").await;
    change(&archive.office.database, "update exports set tries = 20", 1).await;
    archive.work().await;
    let shown = archive.show(id).await;
    assert_eq!((&shown["state"], &shown["failure"]), (&json!("failed"), &json!("gave-up")));
    assert_eq!(shown["download"], json!(null));
    assert_eq!(archive.bucket.files().len(), 0);
    archive.work().await;
    assert_eq!(count(&archive.office.database, "select count(*) from exports where state = 'failed'").await, 1);
    archive.office.database.finish_under_way().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_are_found_among_those_of_others() {
    let archive = many().await;
    let other = tests::seed::product(archive.office.tenant_id, 10);
    let other = other.insert(&mut archive.office.database.another_owner().await).await;
    let buyer = archive.buyer().await;
    tests::seed::order(archive.office.database.owner(), &other, buyer, &tests::seed::quick(1)).await;
    let id = archive.ask("orders", "csv", "en").await;
    // Accepted after the export was asked for.
    archive.reserved(&[500]).await;
    let claimed = claimed(&archive, id).await.unwrap();
    let found = page(&archive.office.database.app_client().await, &claimed, None).await.unwrap();
    assert_eq!((found.rows.len(), found.next, found.percent), (2, None, 100));
    change(&archive.office.database, "update exports set claimed_until = now(), look_at = now()", 1).await;
    archive.work().await;
    assert_eq!(lines(&archive.file(id).await).len(), 3);
    archive.office.database.finish_under_way().await;
}
