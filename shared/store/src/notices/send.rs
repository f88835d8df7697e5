//! Sending what is owed: claimed before, marked after, per channel. A sender that dies between the two has its notice
//! sent again by whoever comes next; none is lost while it is of use.

use domain::catalog::Range;
use domain::limits::{
    NOTICE_ATTEMPTS_MAX, NOTICE_BACKOFF_MAX, NOTICE_BACKOFF_MIN, NOTICE_CLAIM, NOTICE_LIVES, NOTICES_PER_BUYER,
    NOTICES_PER_PLATFORM,
};
use domain::login::{Language, Phone};
use domain::messages::NoticeMessage;
use domain::notices::{Event, Facts, Kind, Outcome};
use domain::orders::State;
use domain::schedule::wall_time;
use domain::staff::Email;
use domain::{Error, Reason, Result};
use time::OffsetDateTime;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use crate::errors::from_postgres;
use crate::rows::{column, one_word};
use crate::types::{BOOL, FLOAT8, FLOAT8S, INT2, TEXT, UUID};

/// Longest words of a provider that are kept, in characters.
const FAILURE_CHARS_MAX: usize = 200;

/// A notice to send now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// Which.
    pub message: NoticeMessage,
    /// Who gets it.
    pub buyer_id: Uuid,
    /// Where it goes.
    pub phone: Phone,
    /// Where it goes as well.
    pub email: Option<Email>,
    /// The language of the texts.
    pub language: Language,
    /// What it says.
    pub facts: Facts,
    /// Tries so far, this one included.
    pub attempts: i16,
    /// It has reached the phone's provider before, or the store does not serve the phone's country.
    pub phone_done: bool,
    /// It has reached the mail's provider before.
    pub email_done: bool,
    /// Somebody else had claimed it and not said what became of it: it may be sent twice.
    pub is_repeat: bool,
}

/// What there is to do for a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// This caller sends.
    Yours(Box<Claimed>),
    /// Nobody needs it any more; it has ended with that.
    Needless,
    /// Somebody else is sending.
    Busy,
    /// Nothing is owed: it has ended.
    Nothing,
}

/// A way to a buyer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// A message to the phone.
    Phone,
    /// Mail.
    Email,
}

/// Claims a notice for as long as sending may take, and reads what it says.
///
/// # Errors
/// Busy or fault from the database.
pub async fn claim(client: &Client, message: &NoticeMessage) -> Result<Claim> {
    // Both sides of the join have the claim as it was before. A buyer may be gone by now.
    let sql = "update notices n
        set claimed_until = now() + make_interval(secs => $4), attempts = least(n.attempts + 1, 1000)
        from notices before
            join orders o on o.id = before.order_id and o.tenant_id = before.tenant_id
            join products p on p.id = o.product_id
            join tenants t on t.id = o.tenant_id
            left join buyers b on b.id = o.buyer_id and b.tenant_id = o.tenant_id
        where n.tenant_id = $1 and n.order_id = $2 and n.kind = $3
            and before.order_id = n.order_id and before.kind = n.kind
            and n.outcome is null and n.created_at > now() - make_interval(secs => $5)
            and (n.claimed_until is null or n.claimed_until <= now())
            and (n.not_before is null or n.not_before <= now())
        returning n.attempts, before.claimed_until is not null as is_repeat,
            before.phone_sent_at is not null as phone_done, before.email_sent_at is not null as email_done,
            n.kind = any(t.notices) as is_wanted, t.phone_prefixes, t.name as store, p.name as product, p.padding, p.zone,
            o.state, o.reason, o.currency, o.expires_at, o.expires_at > now() as is_held,
            o.numbers, coalesce(o.given_up, '{}') as given_up,
            (select coalesce(sum(r.amount_minor), 0)::int8 from refunds r
                where r.order_id = o.id and r.state in ('pending', 'succeeded')) as refunded_minor,
            o.buyer_id, b.phone, b.email, b.language";
    let params: [(&(dyn ToSql + Sync), _); 5] = [
        (&message.tenant_id, UUID),
        (&message.order_id, UUID),
        (&message.kind.word(), TEXT),
        (&NOTICE_CLAIM.as_secs_f64(), FLOAT8),
        (&NOTICE_LIVES.as_secs_f64(), FLOAT8),
    ];
    let Some(row) = client.query_typed_opt(sql, &params).await.map_err(from_postgres)? else {
        return why_not(client, message).await;
    };
    if let Some(claimed) = claimed(&row, message)? {
        return Ok(Claim::Yours(Box::new(claimed)));
    }
    end(client, message, Outcome::Needless).await?;
    Ok(Claim::Needless)
}

async fn why_not(client: &Client, message: &NoticeMessage) -> Result<Claim> {
    let sql = "select claimed_until > now() as is_claimed from notices
        where tenant_id = $1 and order_id = $2 and kind = $3 and outcome is null";
    let params: [(&(dyn ToSql + Sync), _); 3] =
        [(&message.tenant_id, UUID), (&message.order_id, UUID), (&message.kind.word(), TEXT)];
    let row = client.query_typed_opt(sql, &params).await.map_err(from_postgres)?;
    let is_claimed = row.map(|row| column::<Option<bool>>(&row, "is_claimed")).transpose()?.flatten();
    // One that is too old is ended, and counted, by the reconciler, which also owes again what a provider refused.
    Ok(if is_claimed == Some(true) { Claim::Busy } else { Claim::Nothing })
}

/// What is to be sent; none when it is no longer true, or wanted, or there is nobody to get it.
fn claimed(row: &Row, message: &NoticeMessage) -> Result<Option<Claimed>> {
    let phone: Option<&str> = column(row, "phone")?;
    let state = one_word(row, "state", State::from_word)?;
    let (Some(phone), true, true) = (phone, column(row, "is_wanted")?, message.kind.is_true_of(state)) else {
        return Ok(None);
    };
    let Some(event) = event(row, message.kind)? else { return Ok(None) };
    let phone = Phone::parse(phone).ok_or_else(|| Error::fault("a phone is not in E.164"))?;
    let email = column::<Option<&str>>(row, "email")?.and_then(Email::parse);
    // Staff may have entered any phone, and messages to some countries cost much.
    let is_served = column::<Vec<&str>>(row, "phone_prefixes")?.contains(&phone.prefix());
    if !is_served && email.is_none() {
        return Ok(None);
    }
    let language: Option<&str> = column(row, "language")?;
    Ok(Some(Claimed {
        message: *message,
        buyer_id: column(row, "buyer_id")?,
        email,
        language: language.and_then(Language::from_tag).unwrap_or_else(|| phone.language()),
        phone,
        facts: Facts { store: column(row, "store")?, product: column(row, "product")?, event },
        attempts: column(row, "attempts")?,
        phone_done: column(row, "phone_done")? || !is_served,
        email_done: column(row, "email_done")?,
        is_repeat: column(row, "is_repeat")?,
    }))
}

fn event(row: &Row, kind: Kind) -> Result<Option<Event>> {
    Ok(match kind {
        Kind::Reserved => {
            let (until, is_held): (Option<OffsetDateTime>, Option<bool>) =
                (column(row, "expires_at")?, column(row, "is_held")?);
            match until.filter(|_| is_held == Some(true)) {
                Some(until) => {
                    Some(Event::Reserved { numbers: labels(row)?, until: wall_time(until, column(row, "zone")?)? })
                }
                None => None,
            }
        }
        Kind::Paid => Some(Event::Paid { numbers: labels(row)? }),
        Kind::Rejected => Some(Event::Rejected { reason: one_word(row, "reason", Reason::from_code)? }),
        Kind::Expired => Some(Event::Expired),
        Kind::Refunded => {
            let minor: i64 = column(row, "refunded_minor")?;
            // A refund that was accepted may have failed since.
            (minor > 0).then_some(Event::Refunded { minor, currency: column(row, "currency")? })
        }
    })
}

/// The numbers that are the buyer's, as they are printed.
fn labels(row: &Row) -> Result<Vec<String>> {
    let (numbers, given_up): (Vec<i32>, Vec<i32>) = (column(row, "numbers")?, column(row, "given_up")?);
    let padding: i16 = column(row, "padding")?;
    let left = numbers.into_iter().filter(|number| !given_up.contains(number));
    Ok(left.map(|number| Range::label(number, padding)).collect())
}

/// Takes a notice from its buyer's pot and from the platform's; false, and nothing taken, when one is empty.
///
/// # Errors
/// Busy or fault from the database.
pub async fn may_have(client: &Client, buyer_id: Uuid) -> Result<bool> {
    // Nothing personal: buyers' ids are random.
    let sql = "select pot is null as is_free
        from take_from_pots(array[md5('notices to ' || $1::text)::uuid, md5('notices')::uuid], $2, $3)";
    let shares = [NOTICES_PER_BUYER, NOTICES_PER_PLATFORM];
    let intervals = shares.map(|share| share.one_per.as_secs_f64());
    let tolerances = shares.map(|share| share.one_per.as_secs_f64() * f64::from(share.messages));
    let params: [(&(dyn ToSql + Sync), _); 3] =
        [(&buyer_id, UUID), (&intervals.as_slice(), FLOAT8S), (&tolerances.as_slice(), FLOAT8S)];
    column(&client.query_typed_one(sql, &params).await.map_err(from_postgres)?, "is_free")
}

/// Marks a notice as sent by one channel.
///
/// # Errors
/// Busy or fault from the database. Then it may be sent again.
pub async fn mark_sent(client: &Client, message: &NoticeMessage, channel: Channel) -> Result<()> {
    let sql = match channel {
        Channel::Phone => {
            "update notices set phone_sent_at = now() where tenant_id = $1 and order_id = $2 and kind = $3"
        }
        Channel::Email => {
            "update notices set email_sent_at = now() where tenant_id = $1 and order_id = $2 and kind = $3"
        }
    };
    let params: [(&(dyn ToSql + Sync), _); 3] =
        [(&message.tenant_id, UUID), (&message.order_id, UUID), (&message.kind.word(), TEXT)];
    client.execute_typed(sql, &params).await.map_err(from_postgres)?;
    Ok(())
}

/// Ends a notice. The first end counts.
///
/// # Errors
/// Busy or fault from the database.
pub async fn end(client: &Client, message: &NoticeMessage, outcome: Outcome) -> Result<()> {
    let sql = "update notices set outcome = $4, claimed_until = null
        where tenant_id = $1 and order_id = $2 and kind = $3 and outcome is null";
    let params: [(&(dyn ToSql + Sync), _); 4] =
        [(&message.tenant_id, UUID), (&message.order_id, UUID), (&message.kind.word(), TEXT), (&outcome.word(), TEXT)];
    client.execute_typed(sql, &params).await.map_err(from_postgres)?;
    Ok(())
}

/// Notes that a provider did not take a claimed notice: it is owed again after a backoff, or has ended, which is
/// answered, when it was the last try. The claim of one that may have left ends by itself, so that the next is counted
/// as repeated.
///
/// # Errors
/// Busy or fault from the database. Then the claim ends by itself, and it is owed again.
pub async fn note_failure(
    client: &Client,
    message: &NoticeMessage,
    failure: &str,
    may_have_left: bool,
) -> Result<bool> {
    let sql = "update notices n set failure = $4, claimed_until = case when $5 then n.claimed_until end,
            look_at = backoff.ends, not_before = backoff.ends, outcome = case when n.attempts >= $8 then $9 end
        from (select now() + make_interval(secs => least($6, $7 * power(2, least(attempts - 1, 10)))) as ends
            from notices where tenant_id = $1 and order_id = $2 and kind = $3) as backoff
        where n.tenant_id = $1 and n.order_id = $2 and n.kind = $3 and n.outcome is null
        returning n.outcome is not null as is_over";
    let failure: String = failure.chars().take(FAILURE_CHARS_MAX).collect();
    let params: [(&(dyn ToSql + Sync), _); 9] = [
        (&message.tenant_id, UUID),
        (&message.order_id, UUID),
        (&message.kind.word(), TEXT),
        (&failure, TEXT),
        (&may_have_left, BOOL),
        (&NOTICE_BACKOFF_MAX.as_secs_f64(), FLOAT8),
        (&NOTICE_BACKOFF_MIN.as_secs_f64(), FLOAT8),
        (&NOTICE_ATTEMPTS_MAX, INT2),
        (&Outcome::Failed.word(), TEXT),
    ];
    let row = client.query_typed_opt(sql, &params).await.map_err(from_postgres)?;
    Ok(row.map(|row| column::<bool>(&row, "is_over")).transpose()?.unwrap_or(false))
}
