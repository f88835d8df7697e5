//! Selling over the counter: staff place an order in a buyer's name. It goes the way of every other order, through the
//! same statement and the same queue, under the same rules.

use std::time::Duration;

use domain::limits::{SALES_PER_MEMBER, SALES_PER_STORE};
use domain::login::{Phone, Share};
use domain::orders::Request;
use domain::people::Name;
use domain::{Error, Reason, Result};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Transaction};
use uuid::Uuid;

use super::place::{NewOrder, Placed, explain, insert, replay};
use crate::acts::{Keyed, NewAct, Subject, claim_key, log};
use crate::errors::from_postgres;
use crate::rows::column;
use crate::types::{FLOAT8S, TEXT, UUID};

/// The pots that a sale takes from, by the names that they have for their store.
const POTS: [(&str, Share); 2] = [("member", SALES_PER_MEMBER), ("store", SALES_PER_STORE)];

/// What is sold to whom.
#[derive(Debug)]
pub struct NewSale<'a> {
    /// Id of the order, a UUIDv7.
    pub order_id: Uuid,
    /// The product.
    pub product_id: Uuid,
    /// Id of the buyer to be, if the phone has none at this store.
    pub buyer_id: Uuid,
    /// The buyer's phone: who logs in with it later finds the order.
    pub phone: &'a Phone,
    /// The buyer's name, in place of what was known before.
    pub name: Option<&'a Name>,
    /// What is asked for.
    pub request: &'a Request,
}

/// What became of a sale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sold {
    /// What becomes of every order.
    Placed(Placed),
    /// Who sells, or their store, has sold too much for now. Nothing was recorded.
    Limited(Empty),
}

/// A pot that is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Empty {
    /// What its store calls it.
    pub name: &'static str,
    /// What it holds.
    pub share: Share,
    /// How long until there is one again.
    pub wait: Duration,
}

/// Records an order of the act's staff for somebody, if the sale allows it; the buyer, the key and the line in the audit
/// log with it. It takes from the pots of who sells and of the store. A refusal leaves nothing, not even the buyer. The
/// relay sends its message within a minute.
///
/// # Errors
/// Not-found; method-unavailable for a product that cannot be paid in cash; those of a key, which names one person;
/// busy or fault from the database.
pub async fn sell(client: &mut Client, sale: &NewSale<'_>, act: &NewAct) -> Result<Sold> {
    let key = key_of(act)?;
    // Twice, as for buyers: the sale may change between the insert and the look at the reason.
    for _ in 0..2 {
        let tx = client.transaction().await.map_err(from_postgres)?;
        let is_new = claim_key(&tx, act).await?;
        let order = NewOrder {
            id: sale.order_id,
            product_id: sale.product_id,
            tenant_id: act.tenant_id,
            buyer_id: find_or_insert_buyer(&tx, act.tenant_id, sale).await?,
            request: sale.request,
            key: &key,
        };
        if !is_new {
            // What is asked for is the same; for whom, only the order knows.
            let other = Placed::Refused { reason: Reason::KeyReused, retry_after: None };
            return Ok(Sold::Placed(replay(tx.client(), &order).await?.unwrap_or(other)));
        }
        require_cash(&tx, act.tenant_id, sale.product_id).await?;
        if let Some(accepted) = insert(tx.client(), &order, &[], Duration::ZERO).await.map_err(from_postgres)? {
            let act = NewAct { subject: Subject::Order, subject_id: sale.order_id, ..act.clone() };
            // Last, because a store's sales wait for each other there, and together: one round trip.
            let ((), empty) = futures::future::try_join(log(&tx, &act), take(&tx, &act)).await?;
            if let Some(empty) = empty {
                return Ok(Sold::Limited(empty));
            }
            tx.commit().await.map_err(from_postgres)?;
            return Ok(Sold::Placed(accepted));
        }
        // Its key lives as long as the order, the act's only for a day.
        if let Some(known) = replay(tx.client(), &order).await? {
            return Ok(Sold::Placed(known));
        }
        if let Some(refused) = explain(tx.client(), &order).await? {
            return Ok(Sold::Placed(refused));
        }
    }
    Err(Error::busy("the sale changed between two looks at it, twice"))
}

/// The order's key. It has blanks, so that it is no buyer's.
fn key_of(act: &NewAct) -> Result<String> {
    match (act.staff_id, &act.keyed) {
        (Some(staff_id), Some(Keyed { key, .. })) => Ok(format!("sold by {staff_id} {key}")),
        _ => Err(Error::fault("a sale of nobody, or without a key")),
    }
}

async fn find_or_insert_buyer(tx: &Transaction<'_>, tenant_id: Uuid, sale: &NewSale<'_>) -> Result<Uuid> {
    let sql = "insert into buyers as b (id, tenant_id, phone, name) values ($1, $2, $3, $4)
        on conflict on constraint buyers_phone_unique do update set name = coalesce(excluded.name, b.name)
        returning id";
    let name = sale.name.map(Name::as_str);
    let params: [(&(dyn ToSql + Sync), _); 4] =
        [(&sale.buyer_id, UUID), (&tenant_id, UUID), (&sale.phone.as_str(), TEXT), (&name, TEXT)];
    column(&tx.query_typed_one(sql, &params).await.map_err(from_postgres)?, "id")
}

/// Takes a sale from the pots of who sells and of their store; or the one that is empty.
async fn take(tx: &Transaction<'_>, act: &NewAct) -> Result<Option<Empty>> {
    // Nothing personal: ids of staff are random.
    let sql = "select pot, wait_seconds from take_from_pots(
        array[md5('sales by ' || $1::text)::uuid, md5('sales of ' || $2::text)::uuid], $3, $4)";
    let intervals = POTS.map(|(_, share)| share.one_per.as_secs_f64());
    let tolerances = POTS.map(|(_, share)| share.one_per.as_secs_f64() * f64::from(share.messages));
    let params: [(&(dyn ToSql + Sync), _); 4] = [
        (&act.staff_id, UUID),
        (&act.tenant_id, UUID),
        (&intervals.as_slice(), FLOAT8S),
        (&tolerances.as_slice(), FLOAT8S),
    ];
    let row = tx.query_typed_one(sql, &params).await.map_err(from_postgres)?;
    let Some(place) = column::<Option<i32>>(&row, "pot")? else { return Ok(None) };
    let index = usize::try_from(place - 1).map_err(Error::fault)?;
    let (name, share) = *POTS.get(index).ok_or_else(|| Error::fault("there is no such pot"))?;
    let wait = Duration::try_from_secs_f64(column(&row, "wait_seconds")?).map_err(Error::fault)?;
    Ok(Some(Empty { name, share, wait }))
}

/// What nobody could book afterwards is not sold.
async fn require_cash(tx: &Transaction<'_>, tenant_id: Uuid, product_id: Uuid) -> Result<()> {
    let sql = "select 'manual' = any(gateways) or price_minor = 0 as takes_cash from products
        where id = $1 and tenant_id = $2";
    let params: [(&(dyn ToSql + Sync), _); 2] = [(&product_id, UUID), (&tenant_id, UUID)];
    let row = tx.query_typed_opt(sql, &params).await.map_err(from_postgres)?.ok_or(Reason::NotFound)?;
    if column(&row, "takes_cash")? { Ok(()) } else { Err(Reason::MethodUnavailable.into()) }
}
