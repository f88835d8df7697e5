//! The part of the command line that is about stores' staff.

use clap::{Args, Subcommand};
use domain::roles::Role;
use domain::staff::Email;

use super::erase::EraseStaffArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum StaffAct {
    /// Invite somebody and print the link that lets them in
    ///
    /// For the first owner of a store; owners then invite the others. The link is good for three days and once. Who has
    /// not joined yet may be invited again: then only the last link is good.
    Invite(InviteArgs),
    /// Print a link with which somebody sets their one-time passwords up again
    ///
    /// For an owner who has lost them and whom no other owner can help.
    Recover(MemberArgs),
    /// List a store's staff
    List {
        /// The store
        #[arg(long, value_name = "SLUG")]
        store: String,
    },
    /// Seal the secrets of all stores' one-time passwords again, with the first of TIRADA_SEALING_KEYS
    ///
    /// For a rotation, as `gateway reseal`; once more three days later, because of invitations that were open.
    Reseal,
    /// Forget the address of somebody who was removed; what they did stays in the audit log
    Erase(EraseStaffArgs),
}

#[derive(Debug, Args)]
pub(crate) struct InviteArgs {
    #[command(flatten)]
    pub(crate) member: MemberArgs,
    /// owner, operator, finance, support or viewer
    #[arg(long, value_parser = role)]
    pub(crate) role: Role,
}

#[derive(Debug, Args)]
pub(crate) struct MemberArgs {
    /// The store
    #[arg(long, value_name = "SLUG")]
    pub(crate) store: String,
    /// Whose address
    #[arg(long, value_name = "ADDRESS", value_parser = email)]
    pub(crate) email: Email,
    /// The page that the link leads to
    #[arg(long, value_name = "URL", env = "TIRADA_STAFF_URL", default_value = "http://localhost:3000/sign-in")]
    pub(crate) page: String,
}

fn role(word: &str) -> Result<Role, String> {
    Role::from_word(word).ok_or_else(|| "owner, operator, finance, support or viewer".into())
}

pub(super) fn email(text: &str) -> Result<Email, String> {
    Email::parse(text).ok_or_else(|| "this is no address of mail".into())
}

#[cfg(test)]
mod tests {
    use crate::cli::tests::parse;

    #[test]
    fn only_addresses_and_roles_of_staff_are_taken() {
        assert!(parse("staff invite --store joe --email a@example.org --role owner").is_ok());
        assert!(parse("staff recover --store joe --email a@example.org --page https://example.org/x").is_ok());
        for bad in [
            "staff invite --store joe --email a@example.org",
            "staff invite --store joe --email a@example.org --role buyer",
            "staff invite --store joe --email a --role owner",
            "staff list",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
