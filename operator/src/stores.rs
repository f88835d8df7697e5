//! Stores: where their login codes may be sent, and what their buyers are told.

use domain::login::is_prefix;
use domain::notices::Kind;
use serde_json::json;
use store::Client;
use store::login::{list_prefixes, save_prefixes};
use store::notices::{list_kinds, save_kinds};

use crate::cli::{CountriesArgs, NoticesArgs, StoreAct};
use crate::failure::Failure;
use crate::output::Output;
use crate::products::require_store;

/// `tirada store`
pub(crate) async fn change(client: &Client, act: StoreAct) -> Result<Output, Failure> {
    match act {
        StoreAct::Countries(args) => countries(client, args).await,
        StoreAct::Notices(args) => notices(client, args).await,
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

async fn notices(client: &Client, args: NoticesArgs) -> Result<Output, Failure> {
    let NoticesArgs { store: slug, send, none } = args;
    let store = require_store(client, &slug).await?;
    if let Some(wanted) = if none { Some(Vec::new()) } else { send } {
        let wanted: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| wanted.contains(kind)).collect();
        save_kinds(client, store.id, &wanted).await?;
    }
    let words: Vec<&str> = list_kinds(client, store.id).await?.into_iter().map(Kind::word).collect();
    let shown = if words.is_empty() { "nothing".to_owned() } else { words.join(", ") };
    Ok(Output::new(format!("buyers of store {slug} are told: {shown}"), json!({"store": slug, "sends": words})))
}
