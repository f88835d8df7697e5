//! What stands in CSV files: harmless in a spreadsheet, and nothing lost.

use domain::exports::neutral;
use domain::orders::State;

use super::{Archive, PHONE, lines};

/// Names that somebody could give a product to have a spreadsheet compute them, or to have a file fall apart.
pub(super) const NAMES: [&str; 16] = [
    "=1+1",
    "=HYPERLINK(\"https://example.org\",\"prize\")",
    "+1+1",
    "-1+1",
    "@SUM(A1)",
    "\t=1+1",
    "\r=1+1",
    "\n=1+1",
    " =1+1",
    "\u{200f}=1+1",
    "\u{202e}+1+1",
    "＝1+1",
    "'=1+1",
    "a \"quoted\", name; with\ttabs",
    "two\r\nlines",
    "Rifa de ñandúes e corações \u{200f}عربي\u{200e}",
];

#[tokio::test(flavor = "multi_thread")]
async fn orders_are_written_with_their_phones_and_zeros() {
    let archive = Archive::open().await;
    let id = archive.reserved(&[42, 7]).await;
    let file = archive.export("orders", "csv", "pt-BR").await;
    assert_eq!(file.media_type, "text/csv; charset=utf-8");
    assert!(file.disposition.starts_with("attachment; filename=\"orders-"), "{}", file.disposition);
    let lines = lines(&file);
    assert_eq!((lines[0][0].as_str(), lines[0][2].as_str(), lines.len()), ("Pedido", "Telefone", 2));
    let order = tests::look::order(&archive.office.database, id).await;
    let line: Vec<&str> = lines[1].iter().map(String::as_str).collect();
    let (code, phone) = (id.to_string(), format!("'{PHONE}"));
    assert_eq!(line[..8], [code.as_str(), "reserved", &phone, "000007 000042", "", "250", "500", "EUR"]);
    let created = order.created_at.replace_nanosecond(0).unwrap();
    assert_eq!(line[8], created.format(&time::format_description::well_known::Rfc3339).unwrap());
    assert_eq!((line[10], line[11]), ("", "A raffle"));
    archive.office.database.finish_under_way().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_are_written_with_their_owners() {
    let archive = Archive::open().await;
    let id = archive.reserved(&[42, 7]).await;
    tests::seed::pay_in_cash(&archive.office.database, &archive.product, id).await;
    let mut client = archive.office.database.app_client().await;
    tests::operator::block(&mut client, &archive.product, &[8].into()).await.unwrap();
    let lines = lines(&archive.export("numbers", "csv", "es").await);
    assert_eq!(lines[0], ["Número", "Estado", "Pedido", "Teléfono", "Creado (UTC)", "Producto"]);
    let found: Vec<[&str; 3]> = lines[1..].iter().map(|line| [&*line[0], &*line[1], &*line[2]]).collect();
    let order = id.to_string();
    let paid = State::Paid.word();
    assert_eq!(found, [["000007", paid, &order], ["000008", "blocked", ""], ["000042", paid, &order]]);
    archive.office.database.finish_under_way().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_name_becomes_a_formula_and_none_is_lost() {
    let archive = Archive::open().await;
    archive.reserved(&[42]).await;
    for name in NAMES {
        archive.office.database.owner().execute("update products set name = $1", &[&name]).await.unwrap();
        let lines = lines(&archive.export("orders", "csv", "en").await);
        let cell = lines[1].last().unwrap();
        assert_eq!(*cell, neutral(name), "{name:?}");
        assert!(!cell.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']), "{name:?}");
        assert_eq!(cell.strip_prefix('\'').unwrap_or(cell), name);
        assert_eq!(lines[1].len(), lines[0].len(), "{name:?} broke the line");
    }
    archive.office.database.finish_under_way().await;
}
