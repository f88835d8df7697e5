//! The part of the command line that is about what buyers are told.

use clap::{Args, Subcommand};
use domain::login::Phone;
use domain::notices::Kind;
use domain::staff::Email;

use super::erase::EraseBuyerArgs;

#[derive(Debug, Args)]
pub(crate) struct NoticesArgs {
    /// The store
    #[arg(long, value_name = "SLUG")]
    pub(crate) store: String,
    /// Send these and no others: reserved,paid,rejected,expired,refunded
    #[arg(long, value_name = "KINDS", value_delimiter = ',', value_parser = kind, conflicts_with = "none")]
    pub(crate) send: Option<Vec<Kind>>,
    /// Send none
    #[arg(long)]
    pub(crate) none: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BuyerAct {
    /// Say where a buyer's notices go beside the phone; nowhere without an address
    Email(EmailArgs),
    /// End all of somebody's sessions, because a phone was lost, for example
    ///
    /// Access tokens are good for ten minutes more. Who has the phone's number can log in again.
    Logout(LogoutArgs),
    /// Forget somebody: phone, name, address, sessions and texts go, the accounting stays
    ///
    /// Refused while orders of theirs are under way. Whoever logs in again later is a new buyer. Run it again as often
    /// as you like. What gateways, providers of messages and files that were taken away know is theirs to forget.
    Erase(EraseBuyerArgs),
}

#[derive(Debug, Args)]
pub(crate) struct LogoutArgs {
    /// The store
    #[arg(long, value_name = "SLUG")]
    pub(crate) store: String,
    /// The phone that the buyer logs in with, as +5511900000001
    #[arg(long, value_name = "PHONE", value_parser = phone)]
    pub(crate) phone: Phone,
}

#[derive(Debug, Args)]
pub(crate) struct EmailArgs {
    /// The store
    #[arg(long, value_name = "SLUG")]
    pub(crate) store: String,
    /// The phone that the buyer logs in with, as +5511900000001
    #[arg(long, value_name = "PHONE", value_parser = phone)]
    pub(crate) phone: Phone,
    /// The address. Make sure that it is the buyer's: nobody proves it
    #[arg(long, value_name = "ADDRESS", value_parser = super::staff::email)]
    pub(crate) email: Option<Email>,
}

fn kind(word: &str) -> Result<Kind, String> {
    let words = Kind::ALL.map(Kind::word).join(", ");
    Kind::from_word(word).ok_or_else(|| format!("the kinds are {words}"))
}

pub(super) fn phone(text: &str) -> Result<Phone, String> {
    Phone::parse(text).ok_or_else(|| "phones look like +5511900000001".into())
}

#[cfg(test)]
mod tests {
    use crate::cli::tests::parse;

    #[test]
    fn only_known_kinds_phones_and_addresses_are_taken() {
        for good in [
            "store notices --store joe",
            "store notices --store joe --send paid,refunded",
            "store notices --store joe --none",
            "buyer email --store joe --phone +5511900000001",
            "buyer email --store joe --phone +5511900000001 --email a@example.org",
            "notices",
        ] {
            assert!(parse(good).is_ok(), "{good}");
        }
        for bad in [
            "store notices --store joe --send queued",
            "store notices --store joe --send paid --none",
            "buyer email --store joe --phone 5511900000001",
            "buyer email --store joe --phone +5511900000001 --email a@b",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
