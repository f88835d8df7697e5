//! Somebody who was erased stands in no file that is written afterwards, and files from before cannot be had any more.

use domain::exports::Cell;
use domain::messages::ExportMessage;
use serde_json::json;
use store::erasing::{ErasedBuyer, Whom, erase_buyer};
use store::exports::{Claim, Part, begin, claim, page, save_part};
use tests::look::count;
use uuid::Uuid;

use super::resume::{begun, claimed, put};
use super::{Archive, PHONE, lines};

async fn erase(archive: &Archive) {
    let phone = domain::login::Phone::parse(PHONE).unwrap();
    let mut client = archive.office.database.app_client().await;
    let erased = erase_buyer(&mut client, archive.office.tenant_id, &Whom::Phone(phone)).await.unwrap();
    assert!(matches!(erased, ErasedBuyer::Done(traces) if traces.is_known));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_erased_are_empty_cells() {
    let archive = Archive::open().await;
    let id = archive.reserved(&[42, 7]).await;
    tests::seed::pay_in_cash(&archive.office.database, &archive.product, id).await;
    let before = archive.ask("orders", "csv", "en").await;
    archive.work().await;
    assert!(archive.show(before).await["download"].is_string());
    erase(&archive).await;
    assert_eq!(archive.show(before).await["download"], json!(null), "nobody fetches it any more");
    let orders = lines(&archive.export("orders", "csv", "en").await);
    assert_eq!((orders.len(), &*orders[1][0], &*orders[1][1], &*orders[1][2]), (2, &*id.to_string(), "paid", ""));
    let numbers = lines(&archive.export("numbers", "csv", "en").await);
    assert_eq!((numbers.len(), &*numbers[1][0], &*numbers[1][3]), (3, "000007", ""));
    archive.office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_being_written_is_begun_anew() {
    let archive = Archive::open().await;
    let id = archive.reserved(&[42]).await;
    tests::seed::pay_in_cash(&archive.office.database, &archive.product, id).await;
    let export = archive.ask("orders", "csv", "en").await;
    // Somebody has written a part with the phone in it and is about to go on.
    let sql = "update exports set state = 'writing', claim = $1, claimed_until = now() + interval '2 minutes',
        upload_id = 'old', parts = '{\"etag\"}', cursor = 'x', rows_done = 1, bytes_done = 100, percent = 50,
        look_at = now() + interval '2 minutes'";
    archive.office.database.owner().execute(sql, &[&export]).await.unwrap();
    erase(&archive).await;
    let anew = "select count(*) from exports
        where claim is null and upload_id = 'old' and parts = '{}' and cursor is null and state = 'queued'";
    assert_eq!(count(&archive.office.database, anew).await, 1);
    archive.work().await;
    let orders = lines(&archive.file(export).await);
    assert_eq!((orders.len(), &*orders[1][2]), (2, ""));
    archive.office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_who_is_late_has_nothing_to_complete() {
    let archive = Archive::open().await;
    let id = archive.reserved(&[42]).await;
    tests::seed::pay_in_cash(&archive.office.database, &archive.product, id).await;
    let export = archive.ask("orders", "csv", "en").await;
    // All of it is written, with the phone in it; only to complete the upload takes its time.
    let slow = claimed(&archive, export).await.expect("nobody has it");
    let client = archive.office.database.app_client().await;
    let upload_id = begun(&archive, &slow).await;
    assert!(begin(&client, &slow, &upload_id).await.unwrap());
    let etag = put(&archive, &slow, &upload_id, PHONE).await;
    let part = Part { number: 1, etag: &etag, cursor: None, rows: 1, bytes: 12, percent: 99, is_last: true };
    assert!(save_part(&client, &slow, &part).await.unwrap());
    erase(&archive).await;
    archive.work().await;
    assert_eq!(archive.bucket.open_uploads(), 0, "or the phone would take the place of the file");
    let orders = lines(&archive.file(export).await);
    assert_eq!((orders.len(), &*orders[1][2]), (2, ""));
    archive.office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn to_forget_somebody_again_takes_no_file_away() {
    let archive = Archive::open().await;
    let id = archive.reserved(&[42]).await;
    tests::seed::pay_in_cash(&archive.office.database, &archive.product, id).await;
    let buyer_id = tests::look::order(&archive.office.database, id).await.buyer_id;
    erase(&archive).await;
    let export = archive.ask("orders", "csv", "en").await;
    archive.work().await;
    let mut client = archive.office.database.app_client().await;
    let again = erase_buyer(&mut client, archive.office.tenant_id, &Whom::Buyer(buyer_id)).await.unwrap();
    assert!(matches!(again, ErasedBuyer::Done(traces) if !traces.is_known && traces.exports == 0));
    assert!(archive.show(export).await["download"].is_string(), "it was written afterwards");
    archive.office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_begins_a_file_while_somebody_is_being_forgotten() {
    let archive = Archive::open().await;
    let (database, tenant_id) = (&archive.office.database, archive.office.tenant_id);
    let id = archive.reserved(&[42]).await;
    tests::seed::pay_in_cash(database, &archive.product, id).await;
    let message = ExportMessage::new(tenant_id, archive.ask("orders", "csv", "en").await);
    let waiting = async |wanted: i64| {
        let sql =
            "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
        count(database, sql).await >= wanted
    };
    // The line in the audit log is the last that an erasure writes.
    let mut owner = database.another_owner().await;
    let held_up = owner.transaction().await.unwrap();
    held_up.batch_execute("lock table audit_log in exclusive mode").await.unwrap();
    let phone = domain::login::Phone::parse(PHONE).unwrap();
    let mut operator = database.app_client().await;
    let erasing = tokio::spawn(async move { erase_buyer(&mut operator, tenant_id, &Whom::Phone(phone)).await });
    while !waiting(1).await {
        assert!(!erasing.is_finished(), "the erasure does not wait");
    }
    let worker = database.app_client().await;
    let claiming = tokio::spawn(async move { claim(&worker, &message, Uuid::now_v7()).await });
    while !waiting(2).await {
        assert!(!claiming.is_finished(), "rows would be read while the phone is there");
    }
    held_up.commit().await.unwrap();
    assert!(matches!(erasing.await.unwrap().unwrap(), ErasedBuyer::Done(_)));
    let Claim::Yours(claimed) = claiming.await.unwrap().unwrap() else { panic!("nobody else is there") };
    let found = page(&database.app_client().await, &claimed, None).await.unwrap();
    assert_eq!((found.rows.len(), &found.rows[0][2]), (1, &Cell::Empty));
    archive.office.database.finish().await;
}
