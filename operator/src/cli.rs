//! The command line.

mod erase;
mod money;
mod notices;
mod staff;

use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use domain::messages::Queue;
use uuid::Uuid;

use crate::numbers::parse_numbers;

pub(crate) use erase::{EraseBuyerArgs, EraseStaffArgs, Person};
pub(crate) use money::{
    CredentialsArgs, GatewayAct, PayArgs, PolicyArgs, ProductAct, RefundAct, RefundAllArgs, RefundArgs, RetryArgs,
};
pub(crate) use notices::{BuyerAct, EmailArgs, LogoutArgs, NoticesArgs};
pub(crate) use staff::{InviteArgs, MemberArgs, StaffAct};

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  done, and something is wrong: findings, or what could not be moved, refunded, opened or paid yet
  2  the command line or its environment is not right
  3  refused: not found, not allowed in this state, or not confirmed; nothing was changed
  4  busy: the database or the queue did not answer or was locked; try again
  5  a fault; the text says where";

/// Operates Tirada: switches, audits, repairs, looks.
#[derive(Debug, Parser)]
#[command(name = "tirada", version, after_help = EXIT_CODES)]
pub struct Cli {
    /// Where the database is: postgres://user:password@host:5432/tirada, with ?sslmode=require for TLS
    #[arg(long, global = true, env = "TIRADA_DATABASE_URL", hide_env_values = true, value_name = "URL")]
    pub(crate) database_url: Option<String>,
    /// Print JSON instead of tables
    #[arg(long, global = true)]
    pub json: bool,
    /// Do not ask before wide or destructive acts
    #[arg(long, short, global = true)]
    pub(crate) yes: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Stop or accept new orders; accepted ones finish in either case
    Intake {
        #[command(subcommand)]
        act: IntakeAct,
    },
    /// Stop or allow everything that changes a product's numbers
    Reserving {
        #[command(subcommand)]
        act: ReservingAct,
    },
    /// Compare everything derived with the rows it derives from; exit code 1 when something is wrong
    ///
    /// Changes nothing. On a product that is selling, holdings and orders may be read while they change: look again.
    Audit {
        /// Only this product; otherwise all of them
        #[arg(long, value_name = "ID")]
        product: Option<Uuid>,
    },
    /// Rebuild a product's bitmap and counters from its rows and close its findings
    ///
    /// Halt reserving first, and resume it afterwards.
    Rebuild {
        /// The product
        #[arg(long, value_name = "ID")]
        product: Uuid,
        /// Also while reserving is on: correct, but buyers' orders wait for its locks
        #[arg(long)]
        force: bool,
    },
    /// Show an order and its history
    Order {
        /// The order
        #[arg(value_name = "ID")]
        order: Uuid,
    },
    /// Take free numbers off sale, or put them back; all of them or none
    Numbers {
        #[command(subcommand)]
        act: NumbersAct,
    },
    /// List products with their counters and switches
    Products {
        /// Only this store's
        #[arg(long, value_name = "SLUG")]
        store: Option<String>,
        /// Products at most
        #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..=10_000))]
        limit: u16,
    },
    /// Credentials of stores at payment gateways; never shown
    Gateway {
        #[command(subcommand)]
        act: GatewayAct,
    },
    /// Make keys for the functions
    Keys {
        #[command(subcommand)]
        act: KeysAct,
    },
    /// Change how a store works
    Store {
        #[command(subcommand)]
        act: StoreAct,
    },
    /// Change what is known of a store's buyers, or forget one
    Buyer {
        #[command(subcommand)]
        act: BuyerAct,
    },
    /// People who work for a store
    Staff {
        #[command(subcommand)]
        act: StaffAct,
    },
    /// Change how a product is sold
    Product {
        #[command(subcommand)]
        act: ProductAct,
    },
    /// Book cash or a bank transfer that has paid for an order
    ///
    /// The product must list the gateway manual. An open payment of the buyer's is called off first, with the credentials
    /// that TIRADA_STAGE and TIRADA_SEALING_KEYS open. Run it again as often as you like: an order is booked once.
    Pay(PayArgs),
    /// Give money back
    ///
    /// The gateway is asked within a minute; `payments` shows what it answered.
    Refund {
        #[command(subcommand)]
        act: RefundAct,
    },
    /// Show an order's payments, refunds and disputes
    Payments {
        /// The order
        #[arg(value_name = "ID")]
        order: Uuid,
    },
    /// Show how queues, outbox and auditor are doing
    ///
    /// Depths of the queues themselves are shown where their URLs are in the environment (see `redrive`).
    Queues,
    /// Show what became of the notices to buyers of the last day, and which of them their provider refuses
    Notices,
    /// What the auditor found
    Finding {
        #[command(subcommand)]
        act: FindingAct,
    },
    /// Move messages from a queue's DLQ back to the queue
    ///
    /// Each message is sent, then deleted: what is interrupted in between is sent twice, which workers tolerate. Run it
    /// again as often as you like.
    Redrive(RedriveArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum FindingAct {
    /// Close an open finding that you have dealt with; `queues` lists them
    Close {
        /// The finding
        #[arg(value_name = "ID")]
        finding: Uuid,
        /// What was done about it; kept with the finding
        #[arg(long, value_name = "TEXT", value_parser = reason)]
        reason: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum IntakeAct {
    /// Refuse new orders
    Pause(IntakeArgs),
    /// Accept new orders again
    Resume(IntakeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct IntakeArgs {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Why; kept with the switch
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub(crate) reason: String,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Target {
    /// One product
    #[arg(long, value_name = "ID")]
    pub(crate) product: Option<Uuid>,
    /// One store
    #[arg(long, value_name = "SLUG")]
    pub(crate) store: Option<String>,
    /// The whole platform
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReservingAct {
    /// Let nothing change the product's numbers
    Halt(ReservingArgs),
    /// Let workers serve the product again
    Resume(ReservingArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ReservingArgs {
    /// The product
    #[arg(long, value_name = "ID")]
    pub(crate) product: Uuid,
    /// Why; kept with the switch
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub(crate) reason: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum NumbersAct {
    /// Take free numbers off sale
    Block(NumbersArgs),
    /// Put blocked numbers back on sale
    Unblock(NumbersArgs),
}

#[derive(Debug, Args)]
pub(crate) struct NumbersArgs {
    /// The product
    #[arg(long, value_name = "ID")]
    pub(crate) product: Uuid,
    /// Which: 1,2,5-9
    #[arg(value_parser = parse_numbers, value_name = "NUMBERS")]
    pub(crate) numbers: Numbers,
    /// Why; kept in the store's audit log
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub(crate) reason: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysAct {
    /// Put a new key in front of the private keys that sign tokens; prints the public halves
    ///
    /// The file is for the secret; make it with a first run. Deploy the public halves as TokenKeys first, the secret
    /// afterwards, or tokens of the new key are refused meanwhile. No database is needed.
    Signing(SigningArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SigningArgs {
    /// The file with the private keys: a JWK set
    #[arg(long, value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The new key's name: its month, for example
    #[arg(long, value_name = "NAME", value_parser = kid)]
    pub(crate) kid: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreAct {
    /// Open a store, which sells nothing yet and has no staff
    ///
    /// Its owner comes next: tirada staff invite --store SLUG --email ADDRESS --role owner
    Open(OpenArgs),
    /// Show or change the countries that login codes and notices are sent to
    Countries(CountriesArgs),
    /// Show or change what buyers are told about their orders
    Notices(NoticesArgs),
}

#[derive(Debug, Args)]
pub(crate) struct OpenArgs {
    /// Its name in URLs, for good: 1 to 40 characters of a-z, 0-9 and -
    #[arg(long, value_name = "SLUG")]
    pub(crate) store: String,
    /// Its name for people, which its owner may change
    #[arg(long)]
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct CountriesArgs {
    /// The store
    #[arg(long, value_name = "SLUG")]
    pub(crate) store: String,
    /// Serve these and no others: country calling codes, as 34,351,55
    #[arg(long, value_name = "CODES", value_delimiter = ',')]
    pub(crate) serve: Option<Vec<String>>,
}

/// Numbers as written: single ones and runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Numbers(pub(crate) Vec<RangeInclusive<i32>>);

#[derive(Debug, Args)]
pub(crate) struct RedriveArgs {
    /// The queue: reserve-numbers, release-numbers, settle-payment, send-login-code, send-notice, write-exports or
    /// check-uploads
    #[arg(value_parser = queue)]
    pub(crate) queue: Queue,
    /// Messages at most
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) max: u32,
    /// The queue [env: TIRADA_QUEUE_<QUEUE>_URL, as TIRADA_QUEUE_RESERVE_NUMBERS_URL]
    #[arg(long, value_name = "URL")]
    pub(crate) queue_url: Option<String>,
    /// Its DLQ [env: TIRADA_QUEUE_<QUEUE>_DLQ_URL]
    #[arg(long, value_name = "URL")]
    pub(crate) dlq_url: Option<String>,
}

fn queue(name: &str) -> Result<Queue, String> {
    let names: Vec<_> = Queue::ALL.iter().map(|queue| queue.name()).collect();
    Queue::from_name(name).ok_or_else(|| format!("the queues are {}", names.join(", ")))
}

fn kid(text: &str) -> Result<String, String> {
    let fits = (1..=40).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if fits { Ok(text.to_owned()) } else { Err("1 to 40 letters, digits and hyphens".into()) }
}

fn reason(text: &str) -> Result<String, String> {
    let text = text.trim();
    if (1..=200).contains(&text.chars().count()) { Ok(text.to_owned()) } else { Err("1 to 200 characters".into()) }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    pub(super) fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(std::iter::once("tirada").chain(line.split(' ')))
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn an_intake_switch_belongs_to_exactly_one_thing() {
        let id = Uuid::nil();
        for good in [
            format!("intake pause --product {id} --reason x"),
            "intake resume --store joe --reason x --json".to_owned(),
            "intake pause --all --reason x --yes".to_owned(),
        ] {
            assert!(parse(&good).is_ok(), "{good}");
        }
        for bad in [
            "intake pause --reason x".to_owned(),
            "intake pause --all --store joe --reason x".to_owned(),
            format!("intake pause --all --product {id} --reason x"),
            "intake pause --all".to_owned(),
            "intake pause --product 7 --reason x".to_owned(),
        ] {
            assert!(parse(&bad).is_err(), "{bad}");
        }
        assert!(Cli::try_parse_from(["tirada", "intake", "pause", "--all", "--reason", "  "]).is_err());
    }

    #[test]
    fn queues_are_known_by_name_and_bounds_are_checked() {
        assert!(parse("redrive release-numbers --max 5").is_ok());
        for bad in ["redrive", "redrive other", "redrive release-numbers --max 0", "products --limit 0", "rebuild"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
