//! Workbooks, read by a library that others use for theirs.

use std::io::Cursor;

use calamine::{Data, Reader, Xlsx, open_workbook_from_rs};
use serde_json::json;
use tests::bucket::File;

use super::cells::NAMES;
use super::{Archive, PHONE};

fn rows(file: &File) -> Vec<Vec<Data>> {
    let mut book: Xlsx<_> = open_workbook_from_rs(Cursor::new(file.bytes.clone())).unwrap();
    let names = book.sheet_names();
    assert_eq!(names.len(), 1);
    book.worksheet_range(&names[0]).unwrap().rows().map(<[Data]>::to_vec).collect()
}

fn text(text: &str) -> Data {
    Data::String(text.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn cells_say_what_they_are() {
    let archive = Archive::open().await;
    let id = archive.reserved(&[42]).await;
    let file = archive.export("orders", "xlsx", "es").await;
    assert_eq!(file.media_type, "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet");
    let rows = rows(&file);
    assert_eq!(rows[0][2], text("Teléfono"));
    assert_eq!(rows[1][..4], [text(&id.to_string()), text("reserved"), text(PHONE), text("000042")]);
    assert_eq!(rows[1][5..8], [Data::Float(250.0), Data::Float(250.0), text("EUR")]);
    assert!(matches!(rows[1][8], Data::DateTime(_)), "{:?}", rows[1][8]);
    assert_eq!(rows.len(), 2);
    let rows = self::rows(&archive.export("numbers", "xlsx", "en").await);
    assert_eq!(rows[1][..4], [text("000042"), text("reserved"), text(&id.to_string()), text(PHONE)]);
    archive.office.database.finish_under_way().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_name_becomes_a_formula_and_none_is_lost() {
    let archive = Archive::open().await;
    archive.reserved(&[42]).await;
    for name in NAMES {
        archive.office.database.owner().execute("update products set name = $1", &[&name]).await.unwrap();
        let file = archive.export("orders", "xlsx", "en").await;
        let rows = rows(&file);
        assert_eq!(rows[1].last(), Some(&text(name)), "{name:?}");
        let mut book: Xlsx<_> = open_workbook_from_rs(Cursor::new(file.bytes)).unwrap();
        let sheet = book.sheet_names()[0].clone();
        let formulas = book.worksheet_formula(&sheet).unwrap();
        assert!(formulas.rows().flatten().all(String::is_empty), "{name:?} became a formula");
    }
    archive.office.database.finish_under_way().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workbook_goes_by_parts_and_begins_again_after_a_crash() {
    let mut archive = Archive::open().await;
    archive.part_bytes = 2_000;
    archive.reserved(&(1..=100).collect::<Vec<_>>()).await;
    let id = archive.ask("numbers", "xlsx", "en").await;
    // As long as the bucket refuses, whatever was built is thrown away.
    archive.bucket.refuse_parts(7);
    archive.work().await;
    let file = archive.file(id).await;
    assert_eq!(rows(&file).len(), 101);
    assert!(archive.bucket.put().len() > 2, "{:?}", archive.bucket.put());
    assert_eq!(archive.bucket.open_uploads(), 0, "the upload of the first try was aborted");
    assert_eq!(archive.show(id).await["rows"], json!(100));
    archive.office.database.finish_under_way().await;
}
