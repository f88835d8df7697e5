//! What is known of somebody at a store, and what stands in the way of forgetting it.

use domain::limits::UNDER_WAY_NAMED_MAX;
use domain::login::Phone;
use domain::{Error, Result};
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::errors::from_postgres;
use crate::rows::column;
use crate::types::{INT8, TEXT, UUID};

/// Somebody at a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whom {
    /// Whoever has this phone.
    Phone(Phone),
    /// The buyer with this id, known or forgotten.
    Buyer(Uuid),
}

impl Whom {
    fn phone(&self) -> Option<&str> {
        match self {
            Self::Phone(phone) => Some(phone.as_str()),
            Self::Buyer(_) => None,
        }
    }

    fn buyer_id(&self) -> Option<Uuid> {
        match self {
            Self::Phone(_) => None,
            Self::Buyer(id) => Some(*id),
        }
    }
}

/// What there is of somebody, counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traces {
    /// Their id; none when nobody has it.
    pub buyer_id: Option<Uuid>,
    /// Whether their phone is known, with name and address where there are some.
    pub is_known: bool,
    /// Sessions, living and ended.
    pub sessions: i64,
    /// Asking sessions.
    pub login_codes: i64,
    /// Orders, which stay.
    pub orders: i64,
    /// Orders with texts beside them: keys, notes, addresses to go back to.
    pub texts: i64,
    /// Exports that may have their phone in them and can be fetched, or are being written.
    pub exports: i64,
    /// Orders under way, the first of them: while there are any nobody is forgotten.
    pub under_way: Vec<Uuid>,
    /// Where the codes went.
    pub(super) phone: Option<Phone>,
}

/// Exports that may hold phones.
pub(super) const FILES: &str = "(e.state = 'writing' or (e.state = 'ready' and e.expires_at > now()))";

/// Orders that have texts beside them which somebody wrote: the keys that clients choose, where buyers go after paying,
/// what they have to do to pay, notes of staff, and what providers said.
pub(super) const WITH_TEXTS: &str = "(o.idempotency_key not like 'erased %'
    or exists (select from payment_attempts a where a.order_id = o.id
        and (a.requested_under not like '% %' or a.return_url is not null or a.instructions is not null))
    or exists (select from refunds r where r.order_id = o.id and r.note is not null)
    or exists (select from notices n where n.order_id = o.id and (n.outcome is null or n.failure is not null)))";

/// What there is of somebody at a store.
///
/// # Errors
/// Busy or fault from the database.
pub async fn find_traces(client: &Client, tenant_id: Uuid, whom: &Whom) -> Result<Traces> {
    let sql = format!(
        "with person as (
            select id, phone from buyers where tenant_id = $1 and (phone = $2 or id = $3)
        ), whom as (
            select coalesce((select id from person), $3) as buyer_id, coalesce((select phone from person), $2) as phone
        ), ordered as (
            select o.id, o.product_id, {WITH_TEXTS} as has_texts
            from whom w join orders o on o.tenant_id = $1 and o.buyer_id = w.buyer_id
        )
        select w.buyer_id, w.phone, exists (select from person) as is_known,
            (select count(*) from sessions s where s.tenant_id = $1 and s.buyer_id = w.buyer_id) as sessions,
            (select count(*) from login_codes c where c.tenant_id = $1 and c.phone = w.phone) as login_codes,
            (select count(*) from ordered) as orders,
            (select count(*) from ordered where has_texts) as texts,
            (select count(*) from exports e where e.tenant_id = $1 and {FILES} and exists (select from person)
                and e.product_id in (select product_id from ordered)) as exports
        from whom w"
    );
    let (phone, buyer_id) = (whom.phone(), whom.buyer_id());
    let params: [(&(dyn ToSql + Sync), _); 3] = [(&tenant_id, UUID), (&phone, TEXT), (&buyer_id, UUID)];
    let row = client.query_typed_one(&sql, &params).await.map_err(from_postgres)?;
    let buyer_id: Option<Uuid> = column(&row, "buyer_id")?;
    let under_way = match buyer_id {
        Some(id) => list_under_way(client, tenant_id, id).await?,
        None => Vec::new(),
    };
    let phone: Option<&str> = column(&row, "phone")?;
    let read = |text| Phone::parse(text).ok_or_else(|| Error::fault("a phone is not in E.164"));
    Ok(Traces {
        buyer_id,
        is_known: column(&row, "is_known")?,
        sessions: column(&row, "sessions")?,
        login_codes: column(&row, "login_codes")?,
        orders: column(&row, "orders")?,
        texts: column(&row, "texts")?,
        exports: column(&row, "exports")?,
        under_way,
        phone: phone.map(read).transpose()?,
    })
}

/// Orders of a buyer in which something may still happen that the buyer must hear of, or the store must be able to say
/// whose it is: those that wait, hold numbers or are being paid, money that goes back or should, and disputes.
pub(super) async fn list_under_way(client: &Client, tenant_id: Uuid, buyer_id: Uuid) -> Result<Vec<Uuid>> {
    let sql = "select o.id from orders o
        where o.tenant_id = $1 and o.buyer_id = $2 and (
            o.state in ('queued', 'reserved', 'paying', 'refunding')
            or exists (select from payment_attempts a where a.order_id = o.id
                and (a.state in ('created', 'open', 'processing', 'authorised')
                    or (a.captured_minor > 0 and a.used is null)))
            or exists (select from refunds r where r.order_id = o.id
                and (r.state in ('created', 'pending') or (r.state = 'failed' and r.retried_as is null)))
            or exists (select from disputes d where d.order_id = o.id and d.state = 'open'))
        order by o.id limit $3";
    let params: [(&(dyn ToSql + Sync), _); 3] = [(&tenant_id, UUID), (&buyer_id, UUID), (&UNDER_WAY_NAMED_MAX, INT8)];
    let rows = client.query_typed(sql, &params).await.map_err(from_postgres)?;
    rows.iter().map(|row| column(row, "id")).collect()
}
