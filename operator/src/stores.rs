//! Stores: opened here, where their login codes may be sent, and what their buyers are told.

use domain::catalog::is_label;
use domain::limits::STORE_NAME_CHARS_MAX;
use domain::login::is_prefix;
use domain::notices::Kind;
use domain::roles::Action;
use domain::text::is_store_name;
use serde_json::json;
use store::Client;
use store::acts::Subject;
use store::login::{list_prefixes, save_prefixes};
use store::notices::list_kinds;
use store::stores::{SettingsChange, change_settings};
use uuid::Uuid;

use crate::acts::act;
use crate::cli::{CountriesArgs, NoticesArgs, OpenArgs, StoreAct};
use crate::failure::Failure;
use crate::output::Output;
use crate::products::require_store;

/// `tirada store`
pub(crate) async fn change(client: &mut Client, act: StoreAct) -> Result<Output, Failure> {
    match act {
        StoreAct::Open(args) => open(client, args).await,
        StoreAct::Countries(args) => countries(client, args).await,
        StoreAct::Notices(args) => notices(client, args).await,
    }
}

async fn open(client: &mut Client, args: OpenArgs) -> Result<Output, Failure> {
    let OpenArgs { store: slug, name } = args;
    if !is_label(&slug) {
        return Err(Failure::refused(format!("{slug:?} is no slug: 1 to 40 characters of a-z, 0-9 and -")));
    }
    if !is_store_name(&name) {
        return Err(Failure::refused(format!(
            "a store's name has 1 to {STORE_NAME_CHARS_MAX} characters on one line, none of them hidden, and no address"
        )));
    }
    if !store::stores::open(client, Uuid::now_v7(), &slug, &name).await? {
        return Err(Failure::refused(format!("there is a store {slug:?} already")));
    }
    let text = format!("store {slug} is open; tirada staff invite --store {slug} --email ADDRESS --role owner");
    Ok(Output::new(text, json!({"store": slug, "name": name})))
}

async fn countries(client: &mut Client, args: CountriesArgs) -> Result<Output, Failure> {
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

async fn notices(client: &mut Client, args: NoticesArgs) -> Result<Output, Failure> {
    let NoticesArgs { store: slug, send, none } = args;
    let store = require_store(client, &slug).await?;
    if let Some(wanted) = if none { Some(Vec::new()) } else { send } {
        let wanted: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| wanted.contains(kind)).collect();
        let detail = json!({ "notices": wanted.iter().map(|kind| kind.word()).collect::<Vec<_>>() });
        let act = act(store.id, Action::EditStore, (Subject::Store, store.id), Some(&detail), None);
        change_settings(client, &SettingsChange { notices: Some(wanted), ..SettingsChange::default() }, &act).await?;
    }
    let words: Vec<&str> = list_kinds(client, store.id).await?.into_iter().map(Kind::word).collect();
    let shown = if words.is_empty() { "nothing".to_owned() } else { words.join(", ") };
    Ok(Output::new(format!("buyers of store {slug} are told: {shown}"), json!({"store": slug, "sends": words})))
}
