//! What is known of a store's buyers: changed, or forgotten.

use store::Client;

use crate::cli::BuyerAct;
use crate::confirm::Confirm;
use crate::failure::Failure;
use crate::output::Output;
use crate::{erase, notices};

/// `tirada buyer`
pub(crate) async fn change(client: &mut Client, act: BuyerAct, confirm: Confirm) -> Result<Output, Failure> {
    match act {
        BuyerAct::Email(args) => notices::change_email(client, args).await,
        BuyerAct::Erase(args) => erase::buyer(client, args, confirm).await,
    }
}
