//! The part of the command line that is about money.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use domain::payments::{CaptureMode, Gateway, LateMoney};
use uuid::Uuid;

use super::{Numbers, reason};
use crate::numbers::parse_numbers;

#[derive(Debug, Subcommand)]
pub(crate) enum GatewayAct {
    /// Save a store's credentials at a gateway, in place of earlier ones
    ///
    /// Stripe and sandbox want {"secret_key": "…", "webhook_secrets": ["…"]}, mercado-pago "access_token" in place of
    /// "secret_key"; while a webhook secret is being replaced, both. They are sealed with the first of
    /// TIRADA_SEALING_KEYS (TIRADA_STAGE says which keys are allowed), and nothing shows them again. Functions use them
    /// within a minute.
    Set(CredentialsArgs),
    /// List the gateways that a store has credentials for
    List {
        /// The store
        #[arg(long, value_name = "SLUG")]
        store: String,
    },
    /// Seal the credentials of all stores again, with the first of TIRADA_SEALING_KEYS
    ///
    /// For a rotation: first give every function the new key before the old one, then do this, then take the old one
    /// away. Run it again as often as you like.
    Reseal,
}

#[derive(Debug, Args)]
pub(crate) struct CredentialsArgs {
    /// The store
    #[arg(long, value_name = "SLUG")]
    pub(crate) store: String,
    /// stripe, mercado-pago or sandbox
    #[arg(long, value_parser = account_gateway)]
    pub(crate) gateway: Gateway,
    /// A file with the credentials as JSON; - is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) credentials: PathBuf,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProductAct {
    /// Say how a product's orders may be paid, in place of what was said before
    ///
    /// Payments that have begun go on as they began.
    Payments(PolicyArgs),
}

#[derive(Debug, Args)]
pub(crate) struct PolicyArgs {
    /// The product
    #[arg(long, value_name = "ID")]
    pub(crate) product: Uuid,
    /// With whom, as stripe,manual; the first that serves the buyer's method is taken
    #[arg(long, value_delimiter = ',', required = true, value_parser = gateway)]
    pub(crate) gateways: Vec<Gateway>,
    /// When money is taken: automatic (at once), or manual (authorised first, taken while the order has its numbers)
    #[arg(long, value_parser = capture)]
    pub(crate) capture: CaptureMode,
    /// What money buys that comes when the numbers are gone: retake (the same if all are free), substitute (also others
    /// if the buyer allows it), or refund; what it cannot buy goes back
    #[arg(long, value_parser = late_money)]
    pub(crate) late_money: LateMoney,
    /// Buyers keep numbers whose money a lost dispute took away
    #[arg(long)]
    pub(crate) keep_disputed: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RefundAct {
    /// Give back the money of a paid order, or of some of its numbers; they return to stock
    ///
    /// Of one that cost nothing the numbers are taken back, at once.
    Order(RefundArgs),
    /// Give back the money of every paid order of a product
    ///
    /// Each order is a transaction of its own. Run it again as often as you like: what goes back already is left alone.
    All(RefundAllArgs),
    /// Try a failed refund again, or all of a product's that nobody has tried again
    Retry(RetryArgs),
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct RetryArgs {
    /// The refund
    #[arg(value_name = "ID")]
    pub(crate) refund: Option<Uuid>,
    /// All failed ones of this product
    #[arg(long, value_name = "ID")]
    pub(crate) product: Option<Uuid>,
}

#[derive(Debug, Args)]
pub(crate) struct RefundArgs {
    /// The order
    #[arg(value_name = "ID")]
    pub(crate) order: Uuid,
    /// Only these: 1,2,5-9
    #[arg(long, value_parser = parse_numbers, value_name = "NUMBERS")]
    pub(crate) numbers: Option<Numbers>,
    /// Why; kept with the refund
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub(crate) reason: String,
}

#[derive(Debug, Args)]
pub(crate) struct RefundAllArgs {
    /// The product
    #[arg(long, value_name = "ID")]
    pub(crate) product: Uuid,
    /// Why; kept with every refund
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub(crate) reason: String,
}

#[derive(Debug, Args)]
pub(crate) struct PayArgs {
    /// The order
    #[arg(value_name = "ID")]
    pub(crate) order: Uuid,
    /// Where the money is; kept in the store's audit log
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub(crate) reason: String,
}

fn gateway(word: &str) -> Result<Gateway, String> {
    one_of(word, Gateway::ALL, Gateway::word)
}

fn account_gateway(word: &str) -> Result<Gateway, String> {
    match gateway(word)? {
        Gateway::Manual => Err("what staff book needs no credentials".into()),
        other => Ok(other),
    }
}

fn capture(word: &str) -> Result<CaptureMode, String> {
    one_of(word, CaptureMode::ALL, CaptureMode::word)
}

fn late_money(word: &str) -> Result<LateMoney, String> {
    one_of(word, LateMoney::ALL, LateMoney::word)
}

fn one_of<T: Copy>(word: &str, all: &[T], name: impl Fn(T) -> &'static str) -> Result<T, String> {
    let names: Vec<_> = all.iter().map(|one| name(*one)).collect();
    all.iter().copied().find(|one| name(*one) == word).ok_or_else(|| format!("must be one of {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::super::tests::parse;
    use super::*;

    #[test]
    fn credentials_belong_to_a_gateway_that_asks_for_them() {
        assert!(parse("gateway set --store joe --gateway mercado-pago --credentials -").is_ok());
        for bad in [
            "gateway set --store joe --gateway manual --credentials -",
            "gateway set --store joe --gateway paypal --credentials -",
            "gateway set --store joe --gateway stripe",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_policy_is_said_in_full() {
        let line = |rest: &str| format!("product payments --product {} {rest}", Uuid::nil());
        let full = "--gateways stripe,manual --capture automatic --late-money retake";
        assert!(parse(&line(full)).is_ok() && parse(&line(&format!("{full} --keep-disputed"))).is_ok());
        for bad in [
            "--capture automatic --late-money retake",
            "--gateways stripe --late-money retake",
            "--gateways stripe --capture automatic",
            "--gateways stripe,cash --capture automatic --late-money retake",
            "--gateways stripe --capture later --late-money retake",
            "--gateways stripe --capture automatic --late-money keep",
        ] {
            assert!(parse(&line(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn money_goes_back_for_a_reason() {
        let id = Uuid::nil();
        for good in [
            format!("refund order {id} --reason x"),
            format!("refund order {id} --numbers 7,77 --reason x"),
            format!("refund all --product {id} --reason x --yes"),
            format!("refund retry {id}"),
            format!("refund retry --product {id}"),
            format!("pay {id} --reason x"),
        ] {
            assert!(parse(&good).is_ok(), "{good}");
        }
        for bad in [
            format!("refund order {id}"),
            "refund retry".to_owned(),
            format!("refund retry {id} --product {id}"),
            format!("refund order {id} --numbers x --reason x"),
            "refund all --reason x".to_owned(),
            format!("pay {id}"),
        ] {
            assert!(parse(&bad).is_err(), "{bad}");
        }
    }
}
