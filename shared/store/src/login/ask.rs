//! Asking for a code: the pots, the asking session and its message in one statement, one commit.

use std::time::Duration;

use domain::limits::{LOGIN_CODE_GRACE, LOGIN_CODE_LIVES, LOGIN_TRIES_MAX};
use domain::login::{Language, Phone, Pot, Pots};
use domain::{Error, Reason, Result};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use crate::errors::from_postgres;
use crate::rows::column;
use crate::types::{FLOAT8, FLOAT8S, INT4, TEXT, UUID, UUIDS};

/// Who wants a code.
#[derive(Debug, Clone, Copy)]
pub struct Asking<'a> {
    /// Id of a new asking session, if one is made.
    pub id: Uuid,
    /// Slug of the store.
    pub store: &'a str,
    /// An asking session whose code is to be sent again, if it is still good and about the same phone.
    pub again: Option<Uuid>,
    /// Where the code goes.
    pub phone: &'a Phone,
    /// The language of the message.
    pub language: Language,
    /// The key that a new code is derived with.
    pub key_id: &'a str,
    /// The pots that the message takes from.
    pub pots: &'a Pots,
    /// What they are called in the database, in the same order.
    pub subjects: &'a [Uuid],
}

/// What became of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Asked {
    /// A message is owed.
    Owed {
        /// The asking session.
        id: Uuid,
        /// The store.
        tenant_id: Uuid,
        /// How long its code is still good.
        left: Duration,
        /// Whether it had been sent before.
        is_resend: bool,
    },
    /// A pot is empty.
    Limited {
        /// Which.
        pot: Pot,
        /// How long until it holds a message again.
        wait: Duration,
    },
}

/// Owes a message with a code. What was sent before stays as good as it was.
///
/// # Errors
/// Not-found when there is no such store, country-not-served, too-many-attempts when the asking session that is to be
/// sent again has no tries left; busy or fault from the database.
pub async fn ask(client: &Client, asking: &Asking<'_>) -> Result<Asked> {
    let sql = "select verdict, asking, of_tenant, message, seconds_left, pot, wait_seconds
        from ask_login_code($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";
    let params: [(&(dyn ToSql + Sync), _); 13] = [
        (&asking.store, TEXT),
        (&asking.id, UUID),
        (&asking.again, UUID),
        (&asking.phone.as_str(), TEXT),
        (&asking.phone.prefix(), TEXT),
        (&asking.language.tag(), TEXT),
        (&asking.key_id, TEXT),
        (&LOGIN_CODE_LIVES.as_secs_f64(), FLOAT8),
        (&LOGIN_CODE_GRACE.as_secs_f64(), FLOAT8),
        (&i32::from(LOGIN_TRIES_MAX), INT4),
        (&asking.subjects, UUIDS),
        (&asking.pots.intervals(), FLOAT8S),
        (&asking.pots.tolerances(), FLOAT8S),
    ];
    let row = client.query_typed_one(sql, &params).await.map_err(from_postgres)?;
    match column(&row, "verdict")? {
        "asked" => Ok(Asked::Owed {
            id: column(&row, "asking")?,
            tenant_id: column(&row, "of_tenant")?,
            left: seconds(&row, "seconds_left")?,
            is_resend: column::<i16>(&row, "message")? > 1,
        }),
        "limited" => {
            let pot = asking.pots.at(column(&row, "pot")?).ok_or_else(|| Error::fault("there is no such pot"))?;
            Ok(Asked::Limited { pot, wait: seconds(&row, "wait_seconds")? })
        }
        "no-store" => Err(Reason::NotFound.into()),
        "not-served" => Err(Reason::CountryNotServed.into()),
        "burned" => Err(Reason::TooManyAttempts.into()),
        verdict => Err(Error::fault(format!("unknown verdict {verdict:?}"))),
    }
}

fn seconds(row: &Row, name: &str) -> Result<Duration> {
    Duration::try_from_secs_f64(column(row, name)?).map_err(Error::fault)
}
