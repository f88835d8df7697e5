//! Stores' credentials at gateways: saved sealed, listed without their contents, sealed again after a rotation.

use std::fs::File;
use std::io::{Read, stdin};
use std::path::Path;

use domain::limits::{ACCOUNTS_REMEMBERED_FOR, PAGE_MAX};
use domain::payments::Gateway;
use edge::sealing::{SealingKeys, context};
use edge::{Environment, Stage};
use gateways::Credentials;
use serde_json::{Value, json};
use store::Client;
use store::payments::{Account, SealedAccount, list_accounts, list_sealed, reseal_account, save_account_as_operator};

use crate::cli::{CredentialsArgs, GatewayAct};
use crate::confirm::Confirm;
use crate::failure::Failure;
use crate::output::{Output, instant, table};
use crate::products::require_store;

/// Bytes of one store's credentials; usual ones have a few hundred.
const CREDENTIALS_BYTES_MAX: u64 = 8 * 1_024;

/// `tirada gateway`
pub(crate) async fn change(
    client: &mut Client,
    act: GatewayAct,
    environment: &Environment,
    confirm: Confirm,
) -> Result<Output, Failure> {
    match act {
        GatewayAct::Set(args) => set(client, args, environment, confirm).await,
        GatewayAct::List { store } => list(client, &store).await,
        GatewayAct::Reseal => reseal(client, &sealing_keys(environment)?.0).await,
    }
}

/// The stage, as functions read it.
pub(crate) fn stage(environment: &Environment) -> Result<Stage, Failure> {
    let stage = environment.parsed("TIRADA_STAGE", "local, dev, staging or prod")?;
    stage.ok_or_else(|| Failure::usage("TIRADA_STAGE is not set"))
}

pub(crate) fn sealing_keys(environment: &Environment) -> Result<(SealingKeys, Stage), Failure> {
    let stage = stage(environment)?;
    Ok((SealingKeys::from_json(&environment.required("TIRADA_SEALING_KEYS")?, stage)?, stage))
}

async fn set(
    client: &mut Client,
    args: CredentialsArgs,
    environment: &Environment,
    confirm: Confirm,
) -> Result<Output, Failure> {
    let CredentialsArgs { store: slug, gateway, credentials } = args;
    let name = gateway.word();
    let (keys, stage) = sealing_keys(environment)?;
    if gateway == Gateway::Sandbox && stage == Stage::Prod {
        return Err(Failure::refused("the sandbox gives numbers away for nothing: not in production"));
    }
    let json = read(&credentials)?;
    Credentials::parse(gateway, &json).map_err(|_| Failure::refused(wanted(gateway, &json)))?;
    let store = require_store(client, &slug).await?;
    if list_accounts(client, store.id).await?.iter().any(|known| known.gateway == gateway) {
        confirm.ask(&format!(
            "This replaces the credentials of store {slug} at {name}. With another account, what was paid before \
             cannot be looked at or refunded any more."
        ))?;
    }
    let sealed = keys.seal(&context(store.id, gateway), &json)?;
    save_account_as_operator(client, store.id, gateway, &sealed).await?;
    let webhook = format!("/v1/webhooks/{name}/{slug}");
    let text = format!(
        "credentials of store {slug} at {name}: saved; functions use them within {} s\nits webhooks go to {webhook}",
        ACCOUNTS_REMEMBERED_FOR.as_secs()
    );
    Ok(Output::new(text, json!({"store": slug, "gateway": name, "saved": true, "webhook_path": webhook})))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    let read = if path == Path::new("-") {
        stdin().lock().take(CREDENTIALS_BYTES_MAX + 1).read_to_end(&mut text)
    } else {
        File::open(path).and_then(|file| file.take(CREDENTIALS_BYTES_MAX + 1).read_to_end(&mut text))
    };
    read.map_err(|error| Failure::usage(format!("the credentials cannot be read from {}: {error}", path.display())))?;
    if text.len() as u64 > CREDENTIALS_BYTES_MAX {
        return Err(Failure::refused(format!("credentials have {CREDENTIALS_BYTES_MAX} bytes at most")));
    }
    Ok(text)
}

/// Why credentials are refused. Quotes nothing of them.
fn wanted(gateway: Gateway, json: &[u8]) -> String {
    if let Err(error) = serde_json::from_slice::<Value>(json) {
        return format!("the credentials are not JSON: line {}, column {}", error.line(), error.column());
    }
    let key = if gateway == Gateway::MercadoPago { "access_token" } else { "secret_key" };
    format!(
        "credentials at {} are {{\"{key}\": \"…\", \"webhook_secrets\": [\"…\"]}} and no more: \
         one or two webhook secrets, and nothing empty or with blanks",
        gateway.word()
    )
}

async fn list(client: &Client, slug: &str) -> Result<Output, Failure> {
    let store = require_store(client, slug).await?;
    let accounts = list_accounts(client, store.id).await?;
    let row = |account: &Account| {
        [account.gateway.word().to_owned(), account.version.to_string(), instant(account.changed_at)]
    };
    let text = table(["GATEWAY", "VERSION", "CHANGED"], accounts.iter().map(row).collect());
    let in_json = |account: &Account| {
        json!({
            "gateway": account.gateway.word(), "version": account.version, "changed_at": instant(account.changed_at),
        })
    };
    let accounts: Vec<Value> = accounts.iter().map(in_json).collect();
    Ok(Output::new(text, json!({"store": slug, "gateways": accounts})))
}

#[derive(Debug, Default)]
struct Resealed {
    resealed: u32,
    /// Sealed with the first key before, or saved by somebody else meanwhile.
    current: u32,
    /// No known key opens them.
    unopened: Vec<String>,
}

async fn reseal(client: &Client, keys: &SealingKeys) -> Result<Output, Failure> {
    let mut done = Resealed::default();
    let mut after = None;
    loop {
        let page = list_sealed(client, after, PAGE_MAX).await?;
        for account in &page {
            reseal_one(client, keys, account, &mut done).await?;
        }
        after = page.last().map(|account| (account.tenant_id, account.gateway));
        if after.is_none() {
            break;
        }
    }
    let Resealed { resealed, current, unopened } = done;
    let mut text = format!("{resealed} credentials sealed again; {current} were sealed with the first key before");
    for account in &unopened {
        text.push_str(&format!("\nno key opens the credentials of {account}: save them again"));
    }
    if unopened.is_empty() {
        text.push_str("\nthe first key is enough from now on");
    }
    let wrong = !unopened.is_empty();
    Ok(Output::new(text, json!({"resealed": resealed, "current": current, "unopened": unopened})).wrong_if(wrong))
}

async fn reseal_one(
    client: &Client,
    keys: &SealingKeys,
    account: &SealedAccount,
    done: &mut Resealed,
) -> Result<(), Failure> {
    if keys.is_current(&account.sealed) {
        done.current += 1;
        return Ok(());
    }
    let context = context(account.tenant_id, account.gateway);
    let Ok(json) = keys.open(&context, &account.sealed) else {
        done.unopened.push(format!("store {} at {}", account.tenant_id, account.gateway.word()));
        return Ok(());
    };
    match reseal_account(client, account, &keys.seal(&context, &json)?).await? {
        true => done.resealed += 1,
        false => done.current += 1,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said_without_a_secret() {
        let broken = wanted(Gateway::Stripe, b"{\"secret_key\": sk_live_1}");
        assert_eq!(broken, "the credentials are not JSON: line 1, column 16");
        let other = wanted(Gateway::MercadoPago, b"{\"secret_key\": \"sk_live_1\"}");
        assert!(other.contains("access_token") && !other.contains("sk_live_1"), "{other}");
    }

    #[test]
    fn keys_want_a_stage() {
        let environment = |stage: &'static str| {
            Environment::from_lookup(move |name| match name {
                "TIRADA_STAGE" => Some(stage.to_owned()),
                "TIRADA_SEALING_KEYS" => Some(edge::sealing::DEVELOPMENT_KEYS.to_owned()),
                _ => None,
            })
        };
        assert!(sealing_keys(&environment("local")).is_ok());
        for bad in ["", "production", "prod"] {
            assert_eq!(sealing_keys(&environment(bad)).err().map(|failure| failure.code()), Some(2), "{bad}");
        }
    }
}
