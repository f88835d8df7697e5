//! Brings the database to the schema of this release, before any other function of the release runs.
//!
//! Runs as a CloudFormation custom resource, which waits for an answer at a URL until it gets one: so every path
//! answers, failures and timeouts too. Run outside Lambda, it is a command that prints its report.

mod answer;
mod owner;

use std::time::Duration;

use domain::{Error, Result};
use edge::{Deadline, Environment};
use serde_json::Value;
use store::migrations::{self, Report};

pub use answer::Request;

/// Applies migrations and prepares the functions' role.
///
/// # Errors
/// Busy when the database is away, a fault when a migration fails.
pub async fn migrate(environment: &Environment) -> Result<Report> {
    let owner = owner::Owner::from_environment(environment).await?;
    let mut client = store::connect(owner.settings).await?;
    let report = migrations::run(&mut client).await?;
    migrations::prepare_role(&client, owner.app_password.as_ref()).await?;
    Ok(report)
}

/// Handles one event: a custom resource request is answered at its URL, anything else is a plain invocation.
///
/// # Errors
/// When a plain invocation fails, or when the answer could not be delivered: Lambda then tries the event again.
pub async fn handle(environment: &Environment, event: Value, deadline: Deadline) -> Result<Value> {
    let Some(request) = Request::parse(&event) else {
        return report_of(migrate(environment).await?);
    };
    let outcome = if request.is_delete() { Ok(Value::Null) } else { bounded(environment, deadline).await };
    if let Err(error) = &outcome {
        tracing::error!(error.message = error.chain(), "migration failed");
    }
    answer::send(&request, &outcome).await?;
    Ok(Value::Null)
}

/// Leaves time to answer, and survives a panic.
async fn bounded(environment: &Environment, deadline: Deadline) -> Result<Value> {
    let work = edge::panics::caught(migrate(environment));
    match tokio::time::timeout(deadline.left(), work).await {
        Ok(Ok(report)) => report_of(report?),
        Ok(Err(_)) => Err(Error::fault("the migration panicked")),
        Err(_) => Err(Error::busy("the migration did not finish in time")),
    }
}

fn report_of(report: Report) -> Result<Value> {
    serde_json::to_value(report).map_err(|error| Error::Fault(Box::new(error)))
}

/// How long the answer may take, each try.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
