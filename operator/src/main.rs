//! `tirada`, the operator's command.

use std::process::ExitCode;

use clap::Parser;
use edge::Environment;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let cli = operator::Cli::parse();
    let json = cli.json;
    match operator::run(cli, &Environment::process()).await {
        Ok(output) => output.print(json),
        Err(failure) => failure.print(json),
    }
}
