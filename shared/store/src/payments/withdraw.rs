//! Numbers of an order that cost nothing, taken back by staff: there is no money to give back for them.

use domain::catalog::Reserving;
use domain::orders::State;
use domain::{Reason, Result};
use tokio_postgres::Client;

use super::money::Money;
use super::moves;
use crate::acts::{NewAct, record};
use crate::catalog::Product;
use crate::errors::from_postgres;
use crate::numbers::{Failure, repair};
use crate::rows::column;
use crate::types::UUID;
use crate::{products, switches};

/// Puts numbers of a paid order that cost nothing back to stock, all that are left or some, as an act of staff or of the
/// platform's operator; returns which: none, when it was done under the act's key before. Without numbers the order
/// ends as refunded.
///
/// # Errors
/// Not-found, wrong-state when the order is not paid or cost something, numbers-taken when a number is not its own,
/// reserving-halted, those of a key, or busy or fault.
pub async fn withdraw(client: &mut Client, numbers: Option<&[i32]>, act: &NewAct) -> Result<Vec<i32>> {
    let (tenant_id, order_id) = (act.tenant_id, act.subject_id);
    let sql = "select product_id from orders where id = $1 and tenant_id = $2";
    let row = client.query_typed_opt(sql, &[(&order_id, UUID), (&tenant_id, UUID)]).await.map_err(from_postgres)?;
    let product = products::find(client, tenant_id, column(&row.ok_or(Reason::NotFound)?, "product_id")?).await?;
    match once(client, &product, numbers, act).await {
        Err(failure @ (Failure::Disagreement(_) | Failure::Miscounted(_))) => {
            repair(client, &product, &failure).await?;
            once(client, &product, numbers, act).await.map_err(Failure::into_error)
        }
        other => other.map_err(Failure::into_error),
    }
}

async fn once(
    client: &mut Client,
    product: &Product,
    numbers: Option<&[i32]>,
    act: &NewAct,
) -> std::result::Result<Vec<i32>, Failure> {
    let tx = client.transaction().await?;
    let mut money = Money::lock(&tx, act.tenant_id, act.subject_id).await?.ok_or(Reason::NotFound)?;
    if !record(&tx, act).await? {
        return Ok(Vec::new());
    }
    if money.order.state != State::Paid || money.order.total_minor != 0 {
        return Err(Reason::WrongState.into());
    }
    let owned = money.order.owned();
    let mut going = numbers.map_or_else(|| owned.clone(), <[i32]>::to_vec);
    going.sort_unstable();
    going.dedup();
    if going.is_empty() {
        return Err(Reason::WrongState.into());
    }
    if !going.iter().all(|number| owned.contains(number)) {
        return Err(Reason::NumbersTaken.into());
    }
    if switches::reserving(&tx, product.key).await? == Reserving::Halted {
        return Err(Reason::ReservingHalted.into());
    }
    moves::give_up(&tx, product, &mut money, &going).await?;
    // Nothing was paid and nothing goes back: it passes through both states.
    super::settle::complete(&mut money)?;
    money.write(&tx).await?;
    tx.commit().await?;
    Ok(going)
}
