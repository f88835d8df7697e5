//! Reading columns by name.

use domain::{Error, Result};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

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
