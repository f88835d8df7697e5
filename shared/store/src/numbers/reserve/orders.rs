//! The orders of a group: locked on the way in, moved out of the queue on the way out.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::time::Duration;

use domain::limits::{ORDERS_PER_HOLD_MAX, QUEUE_DEADLINE};
use domain::numbers::{Ask, Decider, Decision};
use domain::orders::{Fallback, State};
use domain::{Reason, Result};
use rand::rngs::StdRng;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Transaction};
use uuid::Uuid;

use crate::errors::from_postgres;
use crate::notices::owing;
use crate::numbers::Served;
use crate::numbers::writes::expect;
use crate::rows::{column, one_word};
use crate::types::{FLOAT8, INT8, TEXTS, UUID, UUIDS};

/// A locked order, how long it waited, and whether that was too long.
pub(super) struct Locked {
    pub(super) ask: Ask,
    pub(super) queued: Duration,
    pub(super) too_late: Option<Reason>,
}

/// Locks queued orders that nobody else holds; they come back oldest first.
pub(super) async fn lock_orders(tx: &Transaction<'_>, product_id: Uuid, order_ids: &[Uuid]) -> Result<Vec<Locked>> {
    let sql = "with locked as (
            select id, product_id, buyer_id, requested_numbers, requested_quantity, fallback, created_at, queue_deadline
            from orders where id = any($1) and product_id = $2 and state = 'queued'
            order by id for no key update skip locked
        )
        select l.id, l.buyer_id, l.requested_numbers, l.requested_quantity, l.fallback,
            p.closes_at <= now() as sale_ended, greatest(l.queue_deadline, p.reserving_resumed_at + make_interval(secs => $3)) <= now() as overdue,
            extract(epoch from now() - l.created_at)::float8 as queued
        from locked l join products p on p.id = l.product_id order by l.created_at, l.id";
    let params: [(&(dyn ToSql + Sync), _); 3] =
        [(&order_ids, UUIDS), (&product_id, UUID), (&QUEUE_DEADLINE.as_secs_f64(), FLOAT8)];
    let rows = tx.query_typed(sql, &params).await.map_err(from_postgres)?;
    rows.iter().map(locked_from).collect()
}

fn locked_from(row: &Row) -> Result<Locked> {
    let too_late = if column(row, "sale_ended")? {
        Some(Reason::SaleEnded)
    } else if column(row, "overdue")? {
        Some(Reason::QueuedTooLong)
    } else {
        None
    };
    let mut numbers: Vec<i32> = column(row, "requested_numbers")?;
    numbers.sort_unstable();
    numbers.dedup();
    let ask = Ask {
        order_id: column(row, "id")?,
        buyer_id: column(row, "buyer_id")?,
        numbers,
        quantity: column(row, "requested_quantity")?,
        fallback: one_word(row, "fallback", Fallback::from_word)?,
    };
    let queued = Duration::try_from_secs_f64(column(row, "queued")?).unwrap_or_default();
    Ok(Locked { ask, queued, too_late })
}

/// Looks again at the orders that were not locked: one that has left the queue is done; one that is still queued is
/// in somebody else's hands, who may yet crash, so it must come again.
pub(super) async fn explain_missing(
    tx: &Transaction<'_>,
    product_id: Uuid,
    order_ids: &[Uuid],
    locked: &[Locked],
) -> Result<Vec<(Uuid, Served)>> {
    let here: HashSet<Uuid> = locked.iter().map(|order| order.ask.order_id).collect();
    let missing: Vec<Uuid> = order_ids.iter().copied().filter(|id| !here.contains(id)).collect();
    if missing.is_empty() {
        return Ok(Vec::new());
    }
    let sql = "select id, state from orders where id = any($1) and product_id = $2";
    let mut states = HashMap::new();
    for row in &tx.query_typed(sql, &[(&missing, UUIDS), (&product_id, UUID)]).await.map_err(from_postgres)? {
        states.insert(column::<Uuid>(row, "id")?, one_word(row, "state", State::from_word)?);
    }
    let explain = |id| match states.get(&id) {
        None => Served::Unknown,
        Some(State::Queued) => Served::Again,
        Some(_) => Served::Done,
    };
    Ok(missing.into_iter().map(|id| (id, explain(id))).collect())
}

/// What is written into one order.
pub(super) struct Verdict {
    pub(super) order_id: Uuid,
    state: State,
    pub(super) numbers: Vec<i32>,
    lost: Vec<i32>,
    substitutes: Vec<i32>,
    suggestions: Vec<i32>,
    reason: Option<Reason>,
}

impl Verdict {
    /// `reserved`, or the code of the reason why not.
    pub(super) fn outcome(&self) -> &'static str {
        self.reason.map_or(self.state.word(), Reason::code)
    }

    pub(super) fn too_late(order: &Locked) -> Self {
        Self::new(order.ask.order_id, State::Rejected, order.too_late)
    }

    pub(super) fn decided(ask: &Ask, decision: &Decision, decider: &mut Decider<'_, StdRng>) -> Self {
        match decision {
            Decision::Reserved { numbers, lost, substitutes } => Self {
                numbers: numbers.clone(),
                lost: lost.clone(),
                substitutes: substitutes.clone(),
                suggestions: decider.suggest(lost),
                ..Self::new(ask.order_id, State::Reserved, None)
            },
            Decision::Rejected { reason, lost } => Self {
                lost: lost.clone(),
                suggestions: decider.suggest(lost),
                ..Self::new(ask.order_id, State::Rejected, Some(*reason))
            },
        }
    }

    fn new(order_id: Uuid, state: State, reason: Option<Reason>) -> Self {
        Self { order_id, state, reason, numbers: vec![], lost: vec![], substitutes: vec![], suggestions: vec![] }
    }
}

/// Moves locked orders out of the queue, with their history and the notices that their buyers are owed.
pub(super) async fn update_orders(tx: &Transaction<'_>, verdicts: &[Verdict]) -> Result<()> {
    if verdicts.is_empty() {
        return Ok(());
    }
    let ids: Vec<Uuid> = verdicts.iter().map(|v| v.order_id).collect();
    let states: Vec<&str> = verdicts.iter().map(|v| v.state.word()).collect();
    let lists =
        |of: fn(&Verdict) -> &[i32]| verdicts.iter().map(|v| array_text(of(v))).collect::<Vec<Option<String>>>();
    let (numbers, lost) = (lists(|v| &v.numbers), lists(|v| &v.lost));
    let (substitutes, suggestions) = (lists(|v| &v.substitutes), lists(|v| &v.suggestions));
    let reasons: Vec<Option<&str>> = verdicts.iter().map(|v| v.reason.map(Reason::code)).collect();
    let sql = format!(
        "with changed as (
            update orders o set state = new.state, numbers = coalesce(new.numbers::integer[], '{{}}'),
                lost_numbers = new.lost::integer[], substitutes = new.substitutes::integer[], suggestions = new.suggestions::integer[], reason = new.reason,
                total_minor = case new.state when 'reserved' then o.unit_price_minor * cardinality(new.numbers::integer[]) end,
                expires_at = case new.state when 'reserved' then now() + make_interval(secs => o.hold_seconds) end,
                sweep_at = case new.state when 'reserved' then now() + make_interval(secs => o.hold_seconds) end,
                sweep_attempts = 0, version = o.version + 1
            from unnest($1, $2, $3, $4, $5, $6, $7)
                as new (id, state, numbers, lost, substitutes, suggestions, reason)
            where o.id = new.id and o.state = 'queued'
            returning o.id, o.version, o.state, o.tenant_id, o.buyer_id, o.product_key, o.created_at, o.sweep_at
        ), dequeued as (
            delete from order_queue q using changed c
            where q.product_key = c.product_key and q.created_at = c.created_at and q.order_id = c.id
        ), held as (
            insert into holds (product_key, sweep_at, order_ids)
            select product_key, sweep_at, array_agg(id) from (
                select product_key, sweep_at, id, row_number() over () / $8 as part from changed where state = 'reserved'
            ) as reserved group by product_key, sweep_at, part
        ), noticed as ({})
        insert into order_events (order_id, version, from_state, to_state, cause)
        select id, version, 'queued', state, 'reserve-numbers' from changed",
        owing("changed")
    );
    let params: [(&(dyn ToSql + Sync), _); 8] = [
        (&ids, UUIDS),
        (&states, TEXTS),
        (&numbers, TEXTS),
        (&lost, TEXTS),
        (&substitutes, TEXTS),
        (&suggestions, TEXTS),
        (&reasons, TEXTS),
        (&ORDERS_PER_HOLD_MAX, INT8),
    ];
    let changed = tx.execute_typed(&sql, &params).await.map_err(from_postgres)?;
    expect(verdicts.len(), changed, "orders")
}

/// An array literal, none for an empty list: arrays of arrays of different lengths cannot be bound.
fn array_text(numbers: &[i32]) -> Option<String> {
    let (first, others) = numbers.split_first()?;
    let mut text = format!("{{{first}");
    for number in others {
        // Writing to a string cannot fail.
        let _ = write!(text, ",{number}");
    }
    text.push('}');
    Some(text)
}
