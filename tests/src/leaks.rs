//! What belongs into no log, no error and no row: stores' secrets, buyers' tokens, numbers of cards and of phones.

use std::io::Write;
use std::sync::{Arc, Mutex};

use edge::telemetry::{filter, lines};
use tokio_postgres::Client;
use tracing::subscriber::DefaultGuard;

use crate::till::{MERCADO_PAGO_SECRET, MERCADO_PAGO_TOKEN};

/// How secrets begin: of gateways' accounts and events, of payments in a browser, of buyers' tokens.
const SECRETS: [&str; 12] = [
    "whsec_",
    "sk_test",
    "sk_live",
    "_secret_",
    MERCADO_PAGO_TOKEN,
    MERCADO_PAGO_SECRET,
    "APP_USR-",
    "eyJ",
    "trr_",
    "trd_",
    "trs_",
    "trl_",
];
/// Instructions are for the buyer: they hold the secret that the browser pays with.
const FOR_BUYERS: &str = "_secret_";

/// Digits of a card's number, of a phone's with its country.
const CARD: std::ops::RangeInclusive<usize> = 13..=19;
const PHONE: std::ops::RangeInclusive<usize> = 8..=15;

/// A log kept in memory.
#[derive(Clone, Default)]
pub struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    /// Until the guard is dropped, what this thread logs is kept here.
    #[must_use]
    pub fn listen(&self) -> DefaultGuard {
        let writer = self.clone();
        tracing::subscriber::set_default(lines(filter("trace"), move || writer.clone()))
    }

    /// What was logged.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The first such thing in a text.
#[must_use]
pub fn find(text: &str) -> Option<&'static str> {
    let secret = SECRETS.into_iter().find(|secret| text.contains(secret));
    secret.or_else(|| numbers(text).find_map(|(before, digits, after)| kind_of(before, digits, after)))
}

/// Such things in the text columns of all tables, one sentence each; not in the migrations' checksums.
pub async fn in_rows(owner: &Client) -> Vec<String> {
    let sql = "select table_name::text, column_name::text from information_schema.columns
        where table_schema = 'public' and table_name not like 'refinery%' and data_type in ('text', 'character varying', 'json', 'jsonb', 'ARRAY')";
    let mut found = Vec::new();
    for column in owner.query(sql, &[]).await.expect("the columns") {
        let (table, column): (String, String) = (column.get(0), column.get(1));
        let sql = format!("select {column}::text from {table} where {column} is not null");
        for row in owner.query(&sql, &[]).await.expect("the rows") {
            let text: String = row.get(0);
            if let Some(leak) = find(&text.replace(FOR_BUYERS, "")) {
                found.push(format!("{table}.{column} has {leak}: {text}"));
            }
        }
    }
    found
}

/// Columns of all tables that could hold a text, whatever it is kept as, with how many rows hold this one: in either
/// case of its letters, anywhere in them.
pub async fn columns_with(owner: &Client, text: &str) -> Vec<(String, i64)> {
    let sql = "select c.table_name::text, c.column_name::text, c.data_type = 'bytea'
        from information_schema.columns c join information_schema.tables t using (table_schema, table_name)
        where c.table_schema = 'public' and t.table_type = 'BASE TABLE'
            and c.data_type in ('text', 'character varying', 'character', 'json', 'jsonb', 'ARRAY', 'bytea')
        order by 1, 2";
    let mut found = Vec::new();
    for column in owner.query(sql, &[]).await.expect("the columns") {
        let (table, column, is_bytes): (String, String, bool) = (column.get(0), column.get(1), column.get(2));
        let holds = if is_bytes {
            format!("position(convert_to($1, 'UTF8') in {column}) > 0")
        } else {
            format!("strpos(lower({column}::text), lower($1)) > 0")
        };
        let sql = format!("select count(*) from {table} where {holds}");
        let rows: i64 = owner.query_one(&sql, &[&text]).await.expect(&sql).get(0);
        if rows > 0 {
            found.push((format!("{table}.{column}"), rows));
        }
    }
    found
}

/// Runs of digits, with the characters around them.
fn numbers(text: &str) -> impl Iterator<Item = (Option<char>, &str, Option<char>)> {
    let mut rest = 0;
    std::iter::from_fn(move || {
        let begin = rest + text[rest..].find(|c: char| c.is_ascii_digit())?;
        let end = text[begin..].find(|c: char| !c.is_ascii_digit()).map_or(text.len(), |length| begin + length);
        rest = end;
        Some((text[..begin].chars().next_back(), &text[begin..end], text[end..].chars().next()))
    })
}

fn kind_of(before: Option<char>, digits: &str, after: Option<char>) -> Option<&'static str> {
    if before == Some('+') && PHONE.contains(&digits.len()) {
        return Some("a phone's number");
    }
    // Part of an id, of a hash or of a measured value.
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-'));
    // Cards begin with 2 to 6; moments in milliseconds or microseconds, and ids made from them, with 1.
    let is_card = CARD.contains(&digits.len())
        && matches!(digits.as_bytes()[0], b'2'..=b'6')
        && is_valid(digits)
        && !is_part(before)
        && !is_part(after);
    is_card.then_some("a card's number")
}

/// The check digit of ISO/IEC 7812-1.
fn is_valid(digits: &str) -> bool {
    let values = digits.bytes().rev().map(|digit| u32::from(digit - b'0'));
    let sum: u32 =
        values.enumerate().map(|(at, value)| if at % 2 == 1 { value * 2 / 10 + value * 2 % 10 } else { value }).sum();
    sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_must_not_be_said_is_found() {
        for said in [
            "signed with whsec_abc",
            r#"{"authorization":"Bearer eyJhbGciOi"}"#,
            "pi_1_secret_2",
            r#"{"number":"4242424242424242"}"#,
            "card 378282246310005 refused",
            "call +5511987654321",
            "refreshed with trr_0b64",
            "mailed https://staff.example/#trl_0b64",
        ] {
            assert!(find(said).is_some(), "{said}");
        }
    }

    #[test]
    fn ids_moments_and_values_are_none_of_it() {
        for said in [
            "order 01939d2f-4242-7242-8242-424242424242",
            r#"{"Timestamp":1795966066601,"payment":"1795966066601000"}"#,
            "payment pi_4242424242424242",
            "0.4242424242424242",
            "4242424242424241",
            "2026-11-29T15:27:46+00:00",
        ] {
            assert_eq!(find(said), None, "{said}");
        }
    }
}
