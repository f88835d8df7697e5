//! Stores: where their login codes may be sent.

use domain::login::is_prefix;
use serde_json::json;
use store::Client;
use store::login::{list_prefixes, save_prefixes};

use crate::cli::{CountriesArgs, StoreAct};
use crate::failure::Failure;
use crate::output::Output;
use crate::products::require_store;

/// `tirada store`
pub(crate) async fn change(client: &Client, act: StoreAct) -> Result<Output, Failure> {
    match act {
        StoreAct::Countries(args) => countries(client, args).await,
    }
}

async fn countries(client: &Client, args: CountriesArgs) -> Result<Output, Failure> {
    let CountriesArgs { store: slug, serve } = args;
    let store = require_store(client, &slug).await?;
    if let Some(mut wanted) = serve {
        if let Some(bad) = wanted.iter().find(|prefix| !is_prefix(prefix)) {
            return Err(Failure::refused(format!("{bad:?} is no country calling code; they look like 34 or 351")));
        }
        wanted.sort();
        wanted.dedup();
        save_prefixes(client, store.id, &wanted).await?;
    }
    let served = list_prefixes(client, store.id).await?;
    let text = format!("store {slug} sends login codes to +{}", served.join(", +"));
    Ok(Output::new(text, json!({"store": slug, "serves": served})))
}
