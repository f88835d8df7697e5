//! Notices whose turn has come: handed to the queue, or dropped when they are too old.

use domain::Result;
use domain::limits::{NOTICE_BACKOFF_MAX, NOTICE_GRACE, NOTICE_LIVES, NOTICES_PER_PASS_MAX};
use domain::messages::NoticeMessage;
use domain::notices::{Kind, Outcome};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use crate::errors::from_postgres;
use crate::rows::{column, one_word};
use crate::types::{FLOAT8, INT8, TEXT};

/// Owed notices that are due, oldest turn first, so many at most. Each is due again later: after a wait as long as it
/// is old, because its message may only be waiting in a long queue.
///
/// # Errors
/// Busy or fault from the database.
pub async fn claim_due(client: &Client) -> Result<Vec<NoticeMessage>> {
    let sql = "update notices n set look_at = now() + least(make_interval(secs => $2),
            greatest(make_interval(secs => $1), now() - n.created_at))
        from (select order_id, kind from notices where look_at <= now() and outcome is null
            order by look_at limit $3 for no key update skip locked) as due
        where n.order_id = due.order_id and n.kind = due.kind
        returning n.tenant_id, n.order_id, n.kind";
    let params: [(&(dyn ToSql + Sync), _); 3] = [
        (&NOTICE_GRACE.as_secs_f64(), FLOAT8),
        (&NOTICE_BACKOFF_MAX.as_secs_f64(), FLOAT8),
        (&NOTICES_PER_PASS_MAX, INT8),
    ];
    let rows = client.query_typed(sql, &params).await.map_err(from_postgres)?;
    let message = |row: &Row| -> Result<NoticeMessage> {
        let kind = one_word(row, "kind", Kind::from_word)?;
        Ok(NoticeMessage::new(column(row, "tenant_id")?, column(row, "order_id")?, kind))
    };
    rows.iter().map(message).collect()
}

/// Ends notices that are too old to be of use, among those whose turn comes next, so many at most; returns how many.
/// One that is being sent at this moment may still leave.
///
/// # Errors
/// Busy or fault from the database.
pub async fn drop_late(client: &Client) -> Result<u64> {
    let sql = "update notices n set outcome = $3, claimed_until = null
        from (select order_id, kind from notices where look_at <= now() and outcome is null
            order by look_at limit $2 for no key update skip locked) as due
        where n.order_id = due.order_id and n.kind = due.kind
            and n.created_at <= now() - make_interval(secs => $1)";
    let params: [(&(dyn ToSql + Sync), _); 3] =
        [(&NOTICE_LIVES.as_secs_f64(), FLOAT8), (&NOTICES_PER_PASS_MAX, INT8), (&Outcome::Late.word(), TEXT)];
    client.execute_typed(sql, &params).await.map_err(from_postgres)
}
