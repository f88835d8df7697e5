//! `tirada`: what an operator may do to a running system, from a terminal or a script.
//!
//! One module per kind of act. Whatever changes something goes through the same store functions as the system's own
//! work, so that no command can break a lock order or an invariant. Results go to standard output, everything else
//! to standard error. Both go through `output`, for which a reader who has gone away is no fault.

#![deny(clippy::print_stdout, clippy::print_stderr, reason = "they panic when nobody reads any more")]

mod accounts;
mod acts;
mod buyers;
mod cli;
mod confirm;
mod erase;
mod failure;
mod history;
mod keys;
mod money;
mod notices;
mod numbers;
mod output;
mod pay;
mod policy;
mod products;
mod queues;
mod redrive;
mod refunds;
mod repair;
mod sqs;
mod staff;
mod stores;
mod switches;

pub use cli::Cli;
pub use failure::Failure;
pub use output::Output;

use cli::{Command, FindingAct};
use confirm::Confirm;
use edge::Environment;
use store::{Client, Database, Settings};

/// Does what the command line asks. Of the environment, where queues and gateways are and the keys that seal.
///
/// # Errors
/// [`Failure`], with the exit code that goes with it.
pub async fn run(cli: Cli, environment: &Environment) -> Result<Output, Failure> {
    let Cli { database_url, yes, command, .. } = cli;
    let confirm = Confirm { yes };
    let client = || connect(database_url.as_deref());
    match command {
        Command::Intake { act } => switches::intake(&mut client().await?, act, confirm).await,
        Command::Reserving { act } => switches::reserving(&mut client().await?, act).await,
        Command::Audit { product } => repair::audit(&mut client().await?, product).await,
        Command::Rebuild { product, force } => repair::rebuild(&mut client().await?, product, force, confirm).await,
        Command::Order { order } => history::show(&client().await?, order).await,
        Command::Numbers { act } => numbers::change(&mut client().await?, act).await,
        Command::Products { store, limit } => products::list(&client().await?, store.as_deref(), limit).await,
        Command::Gateway { act } => accounts::change(&mut client().await?, act, environment, confirm).await,
        Command::Keys { act } => keys::make(act),
        Command::Store { act } => stores::change(&mut client().await?, act).await,
        Command::Buyer { act } => buyers::change(&mut client().await?, act, confirm).await,
        Command::Staff { act } => staff::change(&mut client().await?, act, environment, confirm).await,
        Command::Product { act } => policy::change(&mut client().await?, act).await,
        Command::Pay(args) => pay::book(database(database_url.as_deref())?, args, environment).await,
        Command::Refund { act } => refunds::refund(&mut client().await?, act, confirm).await,
        Command::Payments { order } => money::show(&client().await?, order).await,
        Command::Queues => queues::show(&client().await?, environment).await,
        Command::Notices => notices::show(&client().await?).await,
        Command::Finding { act: FindingAct::Close { finding, reason } } => {
            queues::close_finding(&mut client().await?, finding, &reason).await
        }
        Command::Redrive(args) => redrive::redrive(args, environment).await,
    }
}

async fn connect(url: Option<&str>) -> Result<Client, Failure> {
    Ok(database(url)?.client().await?)
}

fn database(url: Option<&str>) -> Result<Database, Failure> {
    let missing = || Failure::usage("name the database with --database-url or TIRADA_DATABASE_URL");
    let url = url.filter(|url| !url.is_empty()).ok_or_else(missing)?;
    let settings = Settings::from_url(url).map_err(|_| {
        Failure::usage("the database URL cannot be read; it looks like postgres://user:password@host:5432/tirada")
    })?;
    Ok(Database::new(settings)?)
}
