//! Cash and bank transfers that staff book: the attempt is recorded and captured in one go, and no gateway is asked.

use domain::payments::{AttemptState, BOOKED_BY_STAFF, Method, Observed};
use domain::{Reason, Result};
use tokio_postgres::Client;
use uuid::Uuid;

use super::record::{Answer, record};
use super::start::{NewAttempt, Started, start_by};
use crate::acts::NewAct;
use crate::errors::from_postgres;
use crate::types::UUID;

/// Books that the order of an act has been paid. An order is booked once, however often it is said; one whose numbers
/// must not change at the moment waits for its payment to count.
///
/// # Errors
/// Those of [`super::start`] and of a key. Payment-in-flight while the buyer's own payment is not closed yet: it is given
/// up, and closed at its gateway within a minute. Busy or fault from the database; then the same may be booked again.
pub async fn book(client: &mut Client, act: &NewAct) -> Result<()> {
    let new = NewAttempt {
        id: Uuid::now_v7(),
        tenant_id: act.tenant_id,
        buyer_id: None,
        order_id: act.subject_id,
        method: Method::Manual,
        return_url: None,
        key: BOOKED_BY_STAFF,
    };
    match start_by(client, &new, act).await? {
        Started::Free => Ok(()),
        Started::New(attempt) | Started::Known(attempt) => {
            if attempt.state != AttemptState::Captured {
                let booked = Observed::booked_by_staff(attempt.id, attempt.amount_minor, &attempt.currency);
                record(client, act.tenant_id, attempt.id, Answer::Observed(&booked)).await?;
            }
            Ok(())
        }
        Started::Close(open) => {
            look_soon(client, act.tenant_id, open.id).await?;
            Err(Reason::PaymentInFlight.into())
        }
    }
}

/// The reconciler owes the order to the settling worker, which closes what was given up.
async fn look_soon(client: &Client, tenant_id: Uuid, attempt_id: Uuid) -> Result<()> {
    let sql = "update payment_attempts set look_at = least(look_at, now())
        where id = $1 and tenant_id = $2 and state in ('created', 'open', 'processing', 'authorised')";
    client.execute_typed(sql, &[(&attempt_id, UUID), (&tenant_id, UUID)]).await.map_err(from_postgres)?;
    Ok(())
}
