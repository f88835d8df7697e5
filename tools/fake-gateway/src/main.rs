//! The pretended payment gateway as a process of its own, for the local cloud: prints its address and serves until it
//! is told to stop.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use fake_gateway::{Account, FakeGateway};
use tokio::signal::unix::{SignalKind, signal};

/// How long answers under way may take after the signal.
const STOP_MAX: Duration = Duration::from_secs(3);

/// Serves Stripe's and Mercado Pago's wire formats on the loopback interface.
#[derive(Parser)]
struct Options {
    /// Port; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// An account: stripe:KEY:URL:SECRET or mercado-pago:TOKEN:URL:SECRET; an empty URL gets no events. More can be
    /// added while it runs.
    #[arg(long = "account")]
    accounts: Vec<Account>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    let gateway = match FakeGateway::start_on(options.port).await {
        Ok(gateway) => gateway,
        Err(error) => {
            eprintln!("The gateway cannot listen on port {}: {error}", options.port);
            return ExitCode::FAILURE;
        }
    };
    for account in options.accounts {
        gateway.add_account(account);
    }
    println!("{}", gateway.address());
    let mut terminate = signal(SignalKind::terminate()).expect("signals can be listened to");
    tokio::select! {
        _ = terminate.recv() => {}
        interrupted = tokio::signal::ctrl_c() => interrupted.expect("signals can be listened to"),
    }
    gateway.stop(STOP_MAX).await;
    ExitCode::SUCCESS
}
