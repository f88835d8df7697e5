//! Cash and bank transfers, booked by staff.

use cashier::{Asked, Cashier};
use domain::orders::State;
use domain::payments::{AttemptState, BOOKED_BY_STAFF, Method, Step, next_step};
use domain::roles::Action;
use domain::{Error, Reason};
use edge::Environment;
use serde_json::json;
use store::Database;
use store::acts::Subject;
use store::payments::{Attempt, NewAttempt, Payable, Started, find_overview, find_payable, start_by};
use uuid::Uuid;

use crate::accounts::stage;
use crate::acts::act;
use crate::cli::PayArgs;
use crate::failure::Failure;
use crate::history;
use crate::output::{Output, minor};

/// Attempts that one command may call off before it books. There is at most one open.
const TURNS: usize = 3;

/// `tirada pay`
pub(crate) async fn book(database: Database, args: PayArgs, environment: &Environment) -> Result<Output, Failure> {
    let PayArgs { order: id, reason } = args;
    let cashier = Cashier::from_environment(stage(environment)?, environment, database.clone())?;
    let tenant_id = history::require(&database.client().await?, id).await?.tenant_id;
    for _ in 0..TURNS {
        let order = find(&database, tenant_id, id).await?;
        match begin(&database, id, &order, &reason).await? {
            Started::Free => return Ok(report(id, State::Paid, "it costs nothing", &reason)),
            Started::New(attempt) | Started::Known(attempt) => {
                if attempt.state != AttemptState::Captured {
                    cashier.take(Step::Create, &attempt, &order.description).await?;
                }
                return booked(&database, id, &attempt, &reason).await;
            }
            Started::Close(open) => close(&database, &cashier, open).await?,
        }
    }
    Err(Failure::busy("the buyer keeps starting other payments; try again"))
}

async fn find(database: &Database, tenant_id: Uuid, id: Uuid) -> Result<Payable, Failure> {
    let found = find_payable(&*database.client().await?, tenant_id, id).await?;
    found.ok_or_else(|| Failure::refused(format!("there is no order {id}")))
}

async fn begin(database: &Database, id: Uuid, order: &Payable, reason: &str) -> Result<Started, Failure> {
    let new = NewAttempt {
        id: Uuid::now_v7(),
        tenant_id: order.tenant_id,
        buyer_id: None,
        order_id: id,
        method: Method::Manual,
        return_url: None,
        key: BOOKED_BY_STAFF,
    };
    let act = act(order.tenant_id, Action::BookPayment, (Subject::Order, id), None, Some(reason));
    let started = start_by(&mut *database.client().await?, &new, &act).await;
    started.map_err(|error| match error {
        Error::Rejected(Reason::WrongState) => {
            let state = order.order.state.word();
            Failure::refused(format!("order {id} is {state}; only one that holds its numbers can be paid"))
        }
        Error::Rejected(Reason::HoldExpired) => {
            Failure::refused(format!("order {id} holds its numbers no longer, or only for seconds: it cannot be paid"))
        }
        Error::Rejected(Reason::TooManyAttempts) => {
            Failure::refused(format!("order {id} has been tried to be paid too often"))
        }
        Error::Rejected(Reason::MethodUnavailable) => Failure::refused(format!(
            "its product {} does not list the gateway manual (`tirada product payments`)",
            order.product_id
        )),
        other => other.into(),
    })
}

/// Calls off the buyer's open payment. What turns out to be paid needs no other.
async fn close(database: &Database, cashier: &Cashier, open: Attempt) -> Result<(), Failure> {
    let order = find(database, open.tenant_id, open.order_id).await?;
    let name = open.gateway.word();
    let step = next_step(order.order, open.view());
    let busy = || Failure::busy(format!("another payment, with {name}, is not called off yet; try again in a minute"));
    if step == Step::Wait {
        return Err(busy());
    }
    match cashier.take(step, &open, &order.description).await? {
        Asked::Answered(now) if !now.state.is_open() => Ok(()),
        _ => Err(busy()),
    }
}

async fn booked(database: &Database, id: Uuid, attempt: &Attempt, reason: &str) -> Result<Output, Failure> {
    let state = find(database, attempt.tenant_id, id).await?.order.state;
    let amount = minor(attempt.amount_minor, &attempt.currency);
    let overview = find_overview(&*database.client().await?, attempt.tenant_id, id).await?;
    let returned = overview.refunds.iter().any(|entry| entry.refund.attempt_id == attempt.id);
    let what = match state {
        _ if returned => format!("{amount} were booked and go back: hand them out (`tirada payments {id}`)"),
        State::Paying => format!("{amount} are booked; it waits until its product's numbers may change again"),
        _ => format!("{amount} are booked"),
    };
    Ok(report(id, state, &what, reason))
}

fn report(id: Uuid, state: State, what: &str, reason: &str) -> Output {
    let text = format!("order {id}: {} ({reason})\n{what}", state.word());
    Output::new(text, json!({"order": id, "state": state.word(), "reason": reason})).wrong_if(state != State::Paid)
}
