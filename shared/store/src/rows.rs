//! Reading rows: columns by name, and transactions that may read many.

use domain::{Error, Result};
use tokio_postgres::types::FromSql;
use tokio_postgres::{Client, Row, Transaction};

use crate::errors::from_postgres;

/// The value of a column.
///
/// # Errors
/// A fault when the column is missing or of another type: the statement and the code disagree.
pub(crate) fn column<'a, T: FromSql<'a>>(row: &'a Row, name: &str) -> Result<T> {
    row.try_get(name).map_err(|error| Error::Fault(Box::new(error)))
}

/// The value of a text column that holds one of a few words.
///
/// # Errors
/// A fault when the word is unknown.
pub(crate) fn one_word<T>(row: &Row, name: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T> {
    let word: &str = column(row, name)?;
    parse(word).ok_or_else(|| Error::fault(format!("{name} has the unknown value {word:?}")))
}

/// A transaction that may read whole tables, which the functions' role avoids: for comparisons that need all rows.
pub(crate) async fn may_scan(client: &mut Client) -> Result<Transaction<'_>> {
    let tx = client.transaction().await.map_err(from_postgres)?;
    allow_scans(&tx).await?;
    Ok(tx)
}

/// From here on this transaction may read whole tables.
pub(crate) async fn allow_scans(tx: &Transaction<'_>) -> Result<()> {
    tx.query_typed("select set_config('enable_seqscan', 'on', true)", &[]).await.map_err(from_postgres)?;
    Ok(())
}
