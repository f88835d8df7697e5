//! What is known of a store's buyers: changed, ended, or forgotten.

use domain::Reason;
use serde_json::json;
use store::Client;
use store::login::end_all;

use crate::cli::{BuyerAct, LogoutArgs};
use crate::confirm::Confirm;
use crate::failure::Failure;
use crate::output::Output;
use crate::products::require_store;
use crate::{erase, notices};

/// `tirada buyer`
pub(crate) async fn change(client: &mut Client, act: BuyerAct, confirm: Confirm) -> Result<Output, Failure> {
    match act {
        BuyerAct::Email(args) => notices::change_email(client, args).await,
        BuyerAct::Logout(args) => log_out(client, args).await,
        BuyerAct::Erase(args) => erase::buyer(client, args, confirm).await,
    }
}

async fn log_out(client: &mut Client, args: LogoutArgs) -> Result<Output, Failure> {
    let LogoutArgs { store: slug, phone } = args;
    let store = require_store(client, &slug).await?;
    let ended = end_all(client, store.id, &phone).await;
    let ended =
        ended.map_err(|error| Failure::explained(error, Reason::NotFound, "no buyer of the store has that phone"))?;
    Ok(Output::new(format!("{ended} sessions of store {slug} have ended"), json!({"store": slug, "ended": ended})))
}
