//! How money is doing, for metrics and alarms.

use std::time::Duration;

use domain::Result;
use tokio_postgres::Client;

use crate::errors::from_postgres;
use crate::rows::column;

/// What waits, and for how long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Measures {
    /// Age of the oldest attempt that no gateway has answered for.
    pub unanswered: Option<Duration>,
    /// Age of the oldest event that nobody has processed.
    pub inbox: Option<Duration>,
    /// Age of the oldest refund that is not over.
    pub refunding: Option<Duration>,
    /// Refunds that no gateway has accepted yet.
    pub refunds_created: i64,
    /// Refunds that a gateway has accepted and not finished.
    pub refunds_pending: i64,
    /// Refunds that failed and were not tried again: buyers who are owed.
    pub refunds_failed: i64,
}

/// Measures what waits.
///
/// # Errors
/// Busy or fault from the database.
pub async fn measure(client: &Client) -> Result<Measures> {
    let sql = "select
        (select extract(epoch from now() - min(created_at))::float8 from payment_attempts
            where state = 'created' and look_at is not null) as unanswered,
        (select extract(epoch from now() - min(received_at))::float8 from inbox where processed_at is null) as inbox,
        (select extract(epoch from now() - min(created_at))::float8 from refunds where look_at is not null) as refunding,
        (select count(*) from refunds where look_at is not null and state = 'created') as created,
        (select count(*) from refunds where look_at is not null and state = 'pending') as pending,
        (select count(*) from refunds where state = 'failed' and retried_as is null) as failed";
    let row = client.query_typed_one(sql, &[]).await.map_err(from_postgres)?;
    let age = |name: &str| -> Result<Option<Duration>> {
        let seconds: Option<f64> = column(&row, name)?;
        Ok(seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).ok()))
    };
    Ok(Measures {
        unanswered: age("unanswered")?,
        inbox: age("inbox")?,
        refunding: age("refunding")?,
        refunds_created: column(&row, "created")?,
        refunds_pending: column(&row, "pending")?,
        refunds_failed: column(&row, "failed")?,
    })
}
