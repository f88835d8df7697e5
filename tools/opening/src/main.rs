//! The demonstration: an opening with hundreds of buyers at once against a running API, then the proof that nothing
//! was sold twice, that the money is right to the cent, and that abandoned holds came back.
//!
//! Acts as buyers over HTTP, and as the operator over the database: it makes the product, watches the connections,
//! gives money back and runs the auditor. Exits with 1 when an invariant is broken.

mod buyer;
mod counts;
mod gateway;
mod progress;
mod report;
mod sale;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use tokio::task::JoinHandle;

use counts::Counts;
use gateway::Gateway;
use progress::Progress;
use sale::Sale;

/// Runs an opening against the local cloud.
#[derive(Debug, Clone, Parser)]
pub(crate) struct Options {
    /// Virtual buyers.
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    buyers: u32,
    /// Numbers of the product.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(i32).range(100..=10_000_000))]
    numbers: i32,
    /// Seconds until the sale opens.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(2..=600))]
    opens_in: u32,
    /// Seconds that reserved numbers wait for their payment.
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u16).range(20..=3_600))]
    hold: u16,
    /// Seed of the buyers' behaviour; printed, so that a run can be repeated.
    #[arg(long)]
    seed: Option<u64>,
    /// Address of the API.
    #[arg(long, env = "TIRADA_API_URL")]
    api_url: String,
    /// Address of the pretended payment gateway, as the functions have it.
    #[arg(long, env = "TIRADA_SANDBOX_URL")]
    sandbox_url: String,
    /// Database, for the operator's part.
    #[arg(long, env = "TIRADA_DATABASE_URL", hide_env_values = true)]
    database_url: String,
    /// Issuer of the buyers' tokens.
    #[arg(long, env = "TIRADA_TOKEN_ISSUER")]
    issuer: String,
    /// Connections the deployment may hold at most; the template's output.
    #[arg(long, env = "TIRADA_DATABASE_CONNECTIONS_MAX", default_value_t = 90)]
    connections_max: i64,
}

/// Longest wait for the queue to drain.
const DRAIN_MAX: Duration = Duration::from_secs(600);
/// Longest wait until all has come to rest, after the holds ran out: sweep and reconciler run once a minute.
const REST_MAX: Duration = Duration::from_secs(300);
/// Orders that staff give back.
const REFUNDS_MAX: i64 = 4;

#[tokio::main]
async fn main() -> ExitCode {
    match run(Options::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("The opening could not be run: {error}");
            ExitCode::from(2)
        }
    }
}

async fn run(options: Options) -> Result<bool, Box<dyn Error>> {
    let seed = options.seed.unwrap_or_else(rand::random);
    let gateway = Arc::new(Gateway::open(&options.sandbox_url, &Sale::webhook_url(&options)).await?);
    let hold = Duration::from_secs(options.hold.into());
    gateway.repeat_events(options.buyers / 10).await?;
    let mut sale = Sale::announce(&options).await?;
    println!(
        "\nA product of {} numbers opens in {} s; {} buyers are waiting (seed {seed}).\n",
        options.numbers, options.opens_in, options.buyers
    );
    let counts = Arc::new(Counts::default());
    let shop = Arc::new(buyer::Shop::new(&options, &sale, &gateway)?);
    let crowd = buyer::crowd(&shop, &counts, seed, &options);
    let mut progress = Progress::new();
    let connections = sale.watch(&mut progress, &counts, &options, DRAIN_MAX).await?;
    progress.finish();
    gateway.heal().await?;
    let verdict = sale.audit().await?;
    let opening = sale.measure().await?;
    println!("{}", report::opening(&options, &counts, &opening, connections, &verdict));
    let refunds = sale.refund_some(REFUNDS_MAX).await?;
    println!(
        "\nStaff give {refunds} orders back. The holds of {} s run out, and the sweep, once a minute, brings back what \
         is not paid.\nSome buyers pay too late.\n",
        options.hold
    );
    let mut progress = Progress::new();
    let are_done = || crowd.iter().all(JoinHandle::is_finished);
    let returned = sale.wait_for_rest(&mut progress, &gateway, are_done, hold + REST_MAX).await?;
    progress.finish();
    let ledger = gateway.ledger().await?;
    let after = sale.audit_at_rest(&ledger).await?;
    let takings = sale.takings(&ledger).await?;
    println!("{}", report::money(&counts, refunds, &gateway.webhooks().await?, &takings));
    println!("{}", report::stock(&returned, &after));
    for buyer in crowd.into_iter().filter(JoinHandle::is_finished) {
        buyer.await?;
    }
    let sound =
        verdict.is_clean() && after.is_clean() && returned.is_complete() && takings.is_balanced() && counts.lost() == 0;
    println!("\n{}", if sound { "Every invariant holds." } else { "AN INVARIANT IS BROKEN." });
    Ok(sound)
}
