//! How notices are doing, for metrics and operators.

use std::time::Duration;

use domain::limits::{NOTICE_LIVES, NOTICES_COUNTED_MAX};
use domain::notices::Kind;
use domain::{Error, Result};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use crate::errors::from_postgres;
use crate::rows::{column, one_word};
use crate::types::{FLOAT8, INT8};

/// What is owed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Measures {
    /// Age of the oldest owed notice; none when nothing is owed.
    pub oldest: Option<Duration>,
    /// Owed notices that a provider has refused.
    pub failing: i64,
}

/// Measures what is owed: among the `NOTICES_COUNTED_MAX` whose turn comes first.
///
/// # Errors
/// Busy or fault from the database.
pub async fn measure(client: &Client) -> Result<Measures> {
    let sql = "select extract(epoch from now() - min(created_at))::float8 as oldest,
            count(*) filter (where failure is not null) as failing
        from (select created_at, failure from notices where outcome is null order by look_at limit $1) as owed";
    let row = client.query_typed_one(sql, &[(&NOTICES_COUNTED_MAX, INT8)]).await.map_err(from_postgres)?;
    let oldest: Option<f64> = column(&row, "oldest")?;
    let oldest = oldest.map(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).map_err(Error::fault));
    Ok(Measures { oldest: oldest.transpose()?, failing: column(&row, "failing")? })
}

/// How many notices of a kind ended in one way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// Of which kind.
    pub kind: Kind,
    /// How they ended; none = they are owed.
    pub outcome: Option<String>,
    /// How many.
    pub notices: i64,
}

/// Counts the notices of the last day, the newest `NOTICES_COUNTED_MAX` of them.
///
/// # Errors
/// Busy or fault from the database.
pub async fn count(client: &Client) -> Result<Vec<Counted>> {
    let sql = "select kind, outcome, count(*) as notices from (
            select kind, outcome from notices where created_at > now() - make_interval(secs => $1)
            order by created_at desc limit $2) as latest
        group by kind, outcome order by kind, outcome nulls first";
    let params: [(&(dyn ToSql + Sync), _); 2] = [(&NOTICE_LIVES.as_secs_f64(), FLOAT8), (&NOTICES_COUNTED_MAX, INT8)];
    let rows = client.query_typed(sql, &params).await.map_err(from_postgres)?;
    let counted = |row: &Row| -> Result<Counted> {
        Ok(Counted {
            kind: one_word(row, "kind", Kind::from_word)?,
            outcome: column(row, "outcome")?,
            notices: column(row, "notices")?,
        })
    };
    rows.iter().map(counted).collect()
}

/// A notice that a provider has refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stuck {
    /// The order.
    pub order_id: Uuid,
    /// What about it.
    pub kind: Kind,
    /// Tries so far.
    pub attempts: i16,
    /// What the provider said last.
    pub failure: String,
    /// How long it has been owed.
    pub age: Duration,
}

/// Owed notices that a provider has refused, among those that [`measure`] looks at, so many at most.
///
/// # Errors
/// Busy or fault from the database.
pub async fn list_stuck(client: &Client, limit: i64) -> Result<Vec<Stuck>> {
    let sql = "select order_id, kind, attempts, failure, extract(epoch from now() - created_at)::float8 as age
        from (select order_id, kind, attempts, failure, created_at from notices where outcome is null
            order by look_at limit $1) as owed
        where failure is not null order by created_at, order_id, kind limit $2";
    let rows = client.query_typed(sql, &[(&NOTICES_COUNTED_MAX, INT8), (&limit, INT8)]).await.map_err(from_postgres)?;
    let stuck = |row: &Row| -> Result<Stuck> {
        Ok(Stuck {
            order_id: column(row, "order_id")?,
            kind: one_word(row, "kind", Kind::from_word)?,
            attempts: column(row, "attempts")?,
            failure: column(row, "failure")?,
            age: Duration::try_from_secs_f64(column::<f64>(row, "age")?.max(0.0)).map_err(Error::fault)?,
        })
    };
    rows.iter().map(stuck).collect()
}
