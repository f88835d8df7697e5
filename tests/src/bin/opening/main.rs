//! The demonstration: an opening with hundreds of buyers at once against a running API, then the proof that nothing
//! was sold twice and that abandoned holds came back.
//!
//! Acts as buyers over HTTP, and as the operator over the database: it makes the product, watches the connections
//! and runs the auditor. Exits with 1 when an invariant is broken.

mod buyer;
mod counts;
mod progress;
mod report;
mod sale;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;

use progress::Progress;

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
    /// Seconds that reserved numbers wait for a payment that never comes.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(i32).range(5..=3_600))]
    hold: i32,
    /// Seed of the buyers' behaviour; printed, so that a run can be repeated.
    #[arg(long)]
    seed: Option<u64>,
    /// Address of the API.
    #[arg(long, env = "TIRADA_API_URL")]
    api_url: String,
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
/// Longest wait for the holds to come back, after they ran out: the sweep runs once a minute.
const SWEEP_MAX: Duration = Duration::from_secs(180);

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
    let mut sale = sale::Sale::announce(&options).await?;
    println!(
        "\nA product of {} numbers opens in {} s; {} buyers are waiting (seed {seed}).\n",
        options.numbers, options.opens_in, options.buyers
    );
    let counts = Arc::new(counts::Counts::default());
    let shop = Arc::new(buyer::Shop::new(&options, &sale)?);
    let crowd = buyer::crowd(&shop, &counts, seed, &options);
    let mut progress = Progress::new();
    let connections = sale.watch(&mut progress, &counts, &options, DRAIN_MAX).await?;
    for buyer in crowd {
        buyer.await?;
    }
    progress.finish();
    let verdict = sale.audit().await?;
    let opening = sale.measure().await?;
    println!("{}", report::opening(&options, &counts, &opening, connections, &verdict));
    println!(
        "\nNobody pays: the holds of {} s run out, and the sweep, once a minute, brings the numbers back.\n",
        options.hold
    );
    let mut progress = Progress::new();
    let returned = sale.wait_for_stock(&mut progress, SWEEP_MAX).await?;
    progress.finish();
    let after = sale.audit().await?;
    println!("{}", report::stock(&returned, &after));
    let sound = verdict.is_clean() && after.is_clean() && returned.is_complete() && counts.lost() == 0;
    println!("\n{}", if sound { "Every invariant holds." } else { "AN INVARIANT IS BROKEN." });
    Ok(sound)
}
