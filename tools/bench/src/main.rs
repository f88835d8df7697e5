//! The benchmarks: how close Tirada is to the limit of its database, and how far ahead of the ways in which finite
//! stock is usually sold.
//!
//! Rounds of ours and of baselines take turns on one durable Postgres; the median of the rounds counts. Exits with 1
//! when a key could not be measured or a result was wrong. A floor that is missed is shown and is no failure.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on panics")]

mod baselines;
mod chart;
mod crowd;
mod environment;
mod files;
mod flood;
mod functions;
mod intake;
mod keys;
mod load;
mod logins;
mod machine;
mod ours;
mod rate;
mod repair;
mod report;
mod reserve;
mod run;
mod settings;
mod shop;
mod sizes;
mod webhooks;
mod workers;

use std::process::ExitCode;

use clap::Parser;
use tests::{TestDatabase, randomness};

use intake::Intake;
use keys::{Group, Key};
use reserve::Reserve;
use run::{Run, Samples};
use settings::{Volumes, WORKERS};

/// Measures, on the Postgres of `TIRADA_TEST_POSTGRES_URL`.
#[derive(Debug, Parser)]
struct Options {
    /// Rounds; the median counts. One round measures less of everything, to see that it works.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Groups of keys; all of them unless named.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Group>,
    /// Counts of reservation workers to try; the best is used.
    #[arg(long, value_delimiter = ',', default_values_t = WORKERS)]
    workers: Vec<usize>,
    /// Show what the WAL consists of.
    #[arg(long)]
    wal: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    let keys: Vec<Key> = keys::keys().into_iter().filter(|key| options.wants(key.group)).collect();
    let looked_at = TestDatabase::new().await;
    let machine = machine::describe(&looked_at).await;
    looked_at.finish().await;
    let samples = measure(&options).await;
    println!("{}\n{}", report::table(&keys, &samples), report::missed(&keys, &samples));
    if options.wal {
        println!("{}", report::explained(&samples));
    }
    let folder = tests::files::root().join("target/bench");
    report::write(&folder, &keys, &samples, &machine);
    chart::write(&folder, &samples);
    let complete = keys.iter().all(|key| samples.median(&key.name).is_some());
    if complete { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Options {
    fn wants(&self, group: Group) -> bool {
        self.only.is_empty() || self.only.contains(&group)
    }
}

/// Every round of every group that is wanted.
async fn measure(options: &Options) -> Samples {
    let volumes = if options.rounds == 1 { Volumes::SMOKE } else { Volumes::FULL };
    let mut run = Run::new(volumes, randomness::stream(randomness::seed(), 0));
    run.round("preparing".into());
    let mut reserve = None;
    if options.wants(Group::Reserve) {
        reserve = Some(Reserve::prepare(&mut run, &options.workers).await);
    }
    let mut intake = None;
    if options.wants(Group::Intake) {
        intake = Some(Intake::prepare().await);
    }
    for round in 1..=options.rounds {
        run.round(format!("round {round} of {}", options.rounds));
        if let Some(reserve) = &reserve {
            reserve.round(&mut run).await;
        }
        if let Some(intake) = &intake {
            intake.round(&mut run).await;
        }
        if options.wants(Group::Sizes) {
            sizes::round(&mut run).await;
        }
        if options.wants(Group::Repair) {
            repair::round(&mut run).await;
        }
        if options.wants(Group::Payments) {
            webhooks::round(&mut run).await;
        }
        if options.wants(Group::Tenants) {
            flood::round(&mut run).await;
        }
        // Memory does not differ from round to round, and a million rows take their time.
        if options.wants(Group::Files) && round == 1 {
            files::round(&mut run).await;
        }
        if options.wants(Group::Functions) {
            functions::round(&mut run).await;
        }
    }
    if let Some(reserve) = reserve {
        reserve.finish().await;
    }
    if let Some(intake) = intake {
        intake.finish().await;
    }
    run.finish()
}
