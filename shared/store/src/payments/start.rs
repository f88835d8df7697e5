//! A buyer starts to pay: the attempt is recorded before anybody is asked for money.

use domain::limits::{
    ATTEMPTS_PER_ORDER_MAX, ATTEMPTS_PER_ORDER_WITH_STAFF_MAX, CREATE_UNANSWERED_FOR, PAYMENT_MARGIN, STRIPE_WAITS_MAX,
};
use domain::orders::State;
use domain::payments::{CaptureMode, Gateway, Method, fingerprint};
use domain::{Reason, Result};
use serde_json::json;
use time::OffsetDateTime;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Transaction};
use uuid::Uuid;

use super::attempts::{Attempt, COLUMNS, attempt_from};
use super::moves;
use crate::acts::{NewAct, log, record};
use crate::errors::{from_postgres, is_lock_timeout};
use crate::notices::owing;
use crate::numbers::{Failure, repair};
use crate::rows::{column, one_word};
use crate::types::{BYTEA, FLOAT8, INT2, INT8, TEXT, TIMESTAMPTZ, UUID};
use crate::{products, switches};

/// What a buyer asks for.
#[derive(Debug, Clone, Copy)]
pub struct NewAttempt<'a> {
    /// Id of the attempt, should one be made.
    pub id: Uuid,
    /// The buyer's tenant.
    pub tenant_id: Uuid,
    /// The buyer; none when staff book a payment.
    pub buyer_id: Option<Uuid>,
    /// The order.
    pub order_id: Uuid,
    /// How it shall be paid.
    pub method: Method,
    /// Where a gateway's page sends the buyer afterwards.
    pub return_url: Option<&'a str>,
    /// The idempotency key.
    pub key: &'a str,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Started {
    /// Recorded now: the gateway is to be asked.
    New(Attempt),
    /// Asked for before under the same key.
    Known(Attempt),
    /// Another attempt is open. It is marked as given up and must be closed at its gateway before a new one.
    Close(Attempt),
    /// The order costs nothing and is paid, now or before.
    Free,
}

struct Order {
    state: State,
    total_minor: i64,
    currency: String,
    cancel_requested: bool,
    expires_at: Option<OffsetDateTime>,
    hold_over: bool,
    product_id: Uuid,
    numbers: Vec<i32>,
    gateways: Vec<String>,
    capture: CaptureMode,
    next_number: i16,
}

/// Records an attempt to pay an order, or finds what stands in its way.
///
/// # Errors
/// Not-found, wrong-state, hold-expired, method-unavailable, too-many-attempts, key-reused, reserving-halted for an
/// order that costs nothing, busy-as-a-rejection (409) when a worker has the order now, or busy or fault.
pub async fn start(client: &mut Client, new: &NewAttempt<'_>) -> Result<Started> {
    started(client, new, None).await
}

/// The same as an act of staff, which is logged with the attempt, or with the payment of what costs nothing.
///
/// # Errors
/// As [`start`], and those of a key.
pub async fn start_by(client: &mut Client, new: &NewAttempt<'_>, act: &NewAct) -> Result<Started> {
    started(client, new, Some(act)).await
}

async fn started(client: &mut Client, new: &NewAttempt<'_>, act: Option<&NewAct>) -> Result<Started> {
    match once(client, new, act).await {
        Err(failure @ (Failure::Disagreement(_) | Failure::Miscounted(_))) => {
            let sql = "select product_id from orders where id = $1 and tenant_id = $2";
            let params: [(&(dyn ToSql + Sync), _); 2] = [(&new.order_id, UUID), (&new.tenant_id, UUID)];
            let row = client.query_typed_one(sql, &params).await.map_err(from_postgres)?;
            let product = products::find(client, new.tenant_id, column(&row, "product_id")?).await?;
            repair(client, &product, &failure).await?;
            once(client, new, act).await.map_err(Failure::into_error)
        }
        other => other.map_err(Failure::into_error),
    }
}

async fn once(
    client: &mut Client,
    new: &NewAttempt<'_>,
    act: Option<&NewAct>,
) -> std::result::Result<Started, Failure> {
    let tx = client.transaction().await?;
    let order = lock_order(&tx, new).await?.ok_or(Reason::NotFound)?;
    if let Some((attempt, known_as)) = find_known(&tx, new).await? {
        if known_as != fingerprint(new.method, new.return_url) {
            return Err(Reason::KeyReused.into());
        }
        return Ok(Started::Known(attempt));
    }
    if order.total_minor == 0 && order.state == State::Paid {
        return Ok(Started::Free);
    }
    if !matches!(order.state, State::Reserved | State::Paying) || order.cancel_requested {
        return Err(Reason::WrongState.into());
    }
    if order.hold_over {
        return Err(Reason::HoldExpired.into());
    }
    if order.total_minor == 0 {
        write_down(&tx, act).await?;
        pay_nothing(&tx, new, &order).await?;
        tx.commit().await?;
        return Ok(Started::Free);
    }
    let served = |word: &String| {
        Gateway::from_word(word).filter(|gateway| gateway.serves(new.method) && new.method.takes(&order.currency))
    };
    // Before anything is called off for it.
    let gateway = order.gateways.iter().find_map(served).ok_or(Reason::MethodUnavailable)?;
    if let Some((open, is_new)) = give_up_open(&tx, new).await? {
        // Logged, but the key is not claimed: what staff want is still to be done under it.
        if let Some(act) = act.filter(|_| is_new) {
            let detail = json!({ "called_off": open.id.to_string() }).to_string();
            log(&tx, &NewAct { detail: Some(detail), ..act.clone() }).await?;
        }
        tx.commit().await?;
        return Ok(Started::Close(open));
    }
    let most = if new.buyer_id.is_some() { ATTEMPTS_PER_ORDER_MAX } else { ATTEMPTS_PER_ORDER_WITH_STAFF_MAX };
    if order.next_number > most {
        return Err(Reason::TooManyAttempts.into());
    }
    write_down(&tx, act).await?;
    let attempt = insert(&tx, new, &order, gateway).await?;
    if order.state == State::Reserved {
        let cause = if new.buyer_id.is_some() { "buyer" } else { "staff" };
        mark_paying(&tx, new, cause).await?;
    }
    tx.commit().await?;
    Ok(Started::New(attempt))
}

/// Logs what staff do. An attempt of theirs that is known was logged when it was made.
async fn write_down(tx: &Transaction<'_>, act: Option<&NewAct>) -> Result<()> {
    if let Some(act) = act {
        record(tx, act).await?;
    }
    Ok(())
}

async fn lock_order(tx: &Transaction<'_>, new: &NewAttempt<'_>) -> Result<Option<Order>> {
    let sql = "select o.state, coalesce(o.total_minor, 0) as total_minor, o.currency,
            o.cancel_requested_at is not null as cancelled, o.expires_at,
            coalesce(o.expires_at <= now() + make_interval(secs => $4), true) as hold_over, o.product_id, o.numbers,
            p.gateways, p.capture,
            (select coalesce(max(number), 0) + 1 from payment_attempts a where a.order_id = o.id)::int2 as next_number
        from orders o join products p on p.id = o.product_id
        where o.id = $1 and o.tenant_id = $2 and ($3::uuid is null or o.buyer_id = $3) for no key update of o";
    let params: [(&(dyn ToSql + Sync), _); 4] =
        [(&new.order_id, UUID), (&new.tenant_id, UUID), (&new.buyer_id, UUID), (&PAYMENT_MARGIN.as_secs_f64(), FLOAT8)];
    match tx.query_typed_opt(sql, &params).await {
        Ok(row) => row.as_ref().map(order_from).transpose(),
        Err(error) if is_lock_timeout(&error) => Err(Reason::Busy.into()),
        Err(error) => Err(from_postgres(error)),
    }
}

fn order_from(row: &Row) -> Result<Order> {
    Ok(Order {
        state: one_word(row, "state", State::from_word)?,
        total_minor: column(row, "total_minor")?,
        currency: column(row, "currency")?,
        cancel_requested: column(row, "cancelled")?,
        expires_at: column(row, "expires_at")?,
        hold_over: column(row, "hold_over")?,
        product_id: column(row, "product_id")?,
        numbers: column(row, "numbers")?,
        gateways: column(row, "gateways")?,
        capture: one_word(row, "capture", CaptureMode::from_word)?,
        next_number: column(row, "next_number")?,
    })
}

async fn find_known(tx: &Transaction<'_>, new: &NewAttempt<'_>) -> Result<Option<(Attempt, Vec<u8>)>> {
    let sql = format!(
        "select {COLUMNS}, fingerprint from payment_attempts
        where order_id = $1 and tenant_id = $3 and requested_under = $2"
    );
    let params: [(&(dyn ToSql + Sync), _); 3] = [(&new.order_id, UUID), (&new.key, TEXT), (&new.tenant_id, UUID)];
    let row = tx.query_typed_opt(&sql, &params).await.map_err(from_postgres)?;
    row.map(|row| Ok((attempt_from(&row)?, column(&row, "fingerprint")?))).transpose()
}

/// Marks the open attempt as given up, and says whether it was not before: a worker closes it even if this request is
/// never heard of again.
async fn give_up_open(tx: &Transaction<'_>, new: &NewAttempt<'_>) -> Result<Option<(Attempt, bool)>> {
    let sql = format!(
        "update payment_attempts set given_up_at = coalesce(given_up_at, now())
        where order_id = $1 and tenant_id = $2 and state in ('created', 'open', 'processing', 'authorised')
        returning {COLUMNS}, given_up_at = now() as is_new"
    );
    let params: [(&(dyn ToSql + Sync), _); 2] = [(&new.order_id, UUID), (&new.tenant_id, UUID)];
    let row = tx.query_typed_opt(&sql, &params).await.map_err(from_postgres)?;
    row.map(|row| Ok((attempt_from(&row)?, column(&row, "is_new")?))).transpose()
}

async fn insert(tx: &Transaction<'_>, new: &NewAttempt<'_>, order: &Order, gateway: Gateway) -> Result<Attempt> {
    let sql = format!(
        "insert into payment_attempts (id, tenant_id, order_id, number, gateway, method, capture, amount_minor,
            currency, return_url, expires_at, requested_under, fingerprint, look_at)
        values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, least($11, now() + make_interval(secs => $15)), $12, $13,
            now() + make_interval(secs => $14))
        returning {COLUMNS}"
    );
    let fingerprint = fingerprint(new.method, new.return_url);
    // A hold that staff made longer may last beyond what a gateway takes.
    let waits_max = matches!(gateway, Gateway::Stripe | Gateway::Sandbox).then(|| STRIPE_WAITS_MAX.as_secs_f64());
    let params: [(&(dyn ToSql + Sync), _); 15] = [
        (&new.id, UUID),
        (&new.tenant_id, UUID),
        (&new.order_id, UUID),
        (&order.next_number, INT2),
        (&gateway.word(), TEXT),
        (&new.method.word(), TEXT),
        (&order.capture.word(), TEXT),
        (&order.total_minor, INT8),
        (&order.currency, TEXT),
        (&new.return_url, TEXT),
        (&order.expires_at, TIMESTAMPTZ),
        (&new.key, TEXT),
        (&fingerprint.as_slice(), BYTEA),
        (&CREATE_UNANSWERED_FOR.as_secs_f64(), FLOAT8),
        (&waits_max, FLOAT8),
    ];
    attempt_from(&tx.query_typed_one(&sql, &params).await.map_err(from_postgres)?)
}

async fn mark_paying(tx: &Transaction<'_>, new: &NewAttempt<'_>, cause: &str) -> Result<()> {
    let sql = "with changed as (
            update orders set state = 'paying', version = version + 1
            where id = $1 and tenant_id = $3 and state = 'reserved'
            returning id, version
        )
        insert into order_events (order_id, version, from_state, to_state, cause)
        select id, version, 'reserved', 'paying', $2 from changed";
    let params: [(&(dyn ToSql + Sync), _); 3] = [(&new.order_id, UUID), (&cause, TEXT), (&new.tenant_id, UUID)];
    tx.execute_typed(sql, &params).await.map_err(from_postgres)?;
    Ok(())
}

/// An order that costs nothing needs no gateway.
async fn pay_nothing(tx: &Transaction<'_>, new: &NewAttempt<'_>, order: &Order) -> std::result::Result<(), Failure> {
    let product = products::find(tx.client(), new.tenant_id, order.product_id).await?;
    if switches::reserving(tx, product.key).await? == domain::catalog::Reserving::Halted {
        return Err(Reason::ReservingHalted.into());
    }
    moves::pay(tx, &product, &order.numbers).await?;
    let sql = format!(
        "with changed as (
            update orders set state = 'paid', version = version + 1
            where id = $1 and tenant_id = $2 and state = 'reserved'
            returning id, version, state, tenant_id, buyer_id
        ), noticed as ({})
        insert into order_events (order_id, version, from_state, to_state, cause)
        select id, version, 'reserved', 'paid', 'free' from changed",
        owing("changed")
    );
    tx.execute_typed(&sql, &[(&new.order_id, UUID), (&new.tenant_id, UUID)]).await?;
    Ok(())
}
