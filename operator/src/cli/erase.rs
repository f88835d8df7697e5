//! The part of the command line that is about forgetting people.

use clap::Args;
use domain::login::Phone;
use domain::staff::Email;
use uuid::Uuid;

#[derive(Debug, Args)]
pub(crate) struct EraseBuyerArgs {
    /// The store
    #[arg(long, value_name = "SLUG")]
    pub(crate) store: String,
    #[command(flatten)]
    pub(crate) person: Person,
    /// Only show what there is of them, and what would be left
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Person {
    /// Whoever has this phone, as +5511900000001
    #[arg(long, value_name = "PHONE", value_parser = super::notices::phone)]
    pub(crate) phone: Option<Phone>,
    /// The buyer with this id, as orders show it
    #[arg(long, value_name = "ID")]
    pub(crate) buyer: Option<Uuid>,
}

#[derive(Debug, Args)]
pub(crate) struct EraseStaffArgs {
    /// The store
    #[arg(long, value_name = "SLUG")]
    pub(crate) store: String,
    /// The address that they had
    #[arg(long, value_name = "ADDRESS", value_parser = super::staff::email)]
    pub(crate) email: Email,
}

#[cfg(test)]
mod tests {
    use crate::cli::tests::parse;

    #[test]
    fn exactly_one_person_of_one_store_is_named() {
        let id = uuid::Uuid::nil();
        for good in [
            "buyer erase --store joe --phone +5511900000001".to_owned(),
            format!("buyer erase --store joe --buyer {id} --dry-run"),
            "staff erase --store joe --email a@example.org --yes".to_owned(),
        ] {
            assert!(parse(&good).is_ok(), "{good}");
        }
        for bad in [
            "buyer erase --store joe".to_owned(),
            "buyer erase --phone +5511900000001".to_owned(),
            format!("buyer erase --store joe --phone +5511900000001 --buyer {id}"),
            "buyer erase --store joe --phone 5511900000001".to_owned(),
            "staff erase --store joe".to_owned(),
        ] {
            assert!(parse(&bad).is_err(), "{bad}");
        }
    }
}
