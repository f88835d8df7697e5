//! Credentials: saved sealed, never shown, sealed again.

use std::path::PathBuf;

use domain::payments::Gateway;
use edge::Stage;
use edge::sealing::{DEVELOPMENT_KEYS, SealingKeys, context};
use serde_json::{Value, json};
use store::payments::{find_account, save_account};
use tests::look::count;
use tests::till::{Policy, Till};
use uuid::Uuid;

use super::Terminal;

/// A file with credentials, gone at the end of the test.
struct Secrets(PathBuf);

impl Secrets {
    fn new(text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tirada-{}.json", Uuid::now_v7()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Secrets {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

async fn slug(till: &Till) -> String {
    let sql = "select slug from tenants where id = $1";
    till.database.owner().query_one(sql, &[&till.product.described.tenant_id]).await.unwrap().get(0)
}

async fn sealed(till: &Till, gateway: Gateway) -> Option<Vec<u8>> {
    find_account(&till.database.app_client().await, till.product.described.tenant_id, gateway).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_are_saved_sealed_and_never_shown() {
    let till = Till::open(Policy::default()).await;
    let (terminal, store) = (Terminal::of(&till), slug(&till).await);
    let secrets = Secrets::new(r#"{"secret_key": "sk_sandbox_1", "webhook_secrets": ["whsec_sandbox_1"]}"#);
    let set = ["gateway", "set", "--store", &store, "--gateway", "sandbox", "--credentials", secrets.path()];
    let saved = terminal.done(&set).await;
    assert_eq!(saved["webhook_path"], format!("/v1/webhooks/sandbox/{store}"));
    let bytes = sealed(&till, Gateway::Sandbox).await.unwrap();
    assert!(!bytes.windows(9).any(|part| part == b"sandbox_1"), "sealed");
    let opened = till.cashier.credentials(till.product.described.tenant_id, Gateway::Sandbox).await.unwrap();
    assert_eq!(opened.webhook_secrets().len(), 1, "functions can open them");

    let (code, _) = terminal.refused(&set).await;
    assert_eq!((code, sealed(&till, Gateway::Sandbox).await), (3, Some(bytes)), "not replaced without a word");
    let again = terminal.done(&[&set[..], &["--yes"]].concat()).await;
    let listed = terminal.done(&["gateway", "list", "--store", &store]).await;
    let shown: Vec<(&Value, &Value)> =
        listed["gateways"].as_array().unwrap().iter().map(|one| (&one["gateway"], &one["version"])).collect();
    let [one, two] = [json!(1), json!(2)];
    let names = ["mercado-pago", "sandbox", "stripe"].map(Value::from);
    assert_eq!(shown, [(&names[0], &one), (&names[1], &two), (&names[2], &one)]);
    let logged = "select count(*) from audit_log where action = 'save_credentials' and subject_id = tenant_id
        and detail = '{\"gateway\":\"sandbox\"}'";
    assert_eq!(count(&till.database, logged).await, 2, "and not what was refused");
    for printed in [saved, again, listed] {
        assert!(!printed.to_string().contains("sandbox_1"), "{printed}");
    }
    assert_eq!(terminal.refused(&["gateway", "list", "--store", "nobody"]).await.0, 3);
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_credentials_are_refused_with_the_reason_and_without_a_secret() {
    let till = Till::open(Policy::default()).await;
    let (terminal, store) = (Terminal::of(&till), slug(&till).await);
    let set = async |terminal: &Terminal, gateway: &str, path: &str| {
        terminal.refused(&["gateway", "set", "--store", &store, "--gateway", gateway, "--credentials", path]).await
    };
    let long = format!("{{\"secret_key\": \"{}\"}}", "hunter2".repeat(2_000));
    for (text, said) in [
        ("hunter2", "not JSON: line 1"),
        (r#"{"secret_key": "hunter2"}"#, "webhook_secrets"),
        (r#"{"secret_key": "hunter2", "webhook_secrets": ["a", "b", "c"]}"#, "one or two"),
        (r#"{"secret_key": "hunter2", "webhook_secrets": ["a"], "hunter2": 1}"#, "and no more"),
        (&long, "8192 bytes"),
    ] {
        let secrets = Secrets::new(text);
        let (code, text) = set(&terminal, "sandbox", secrets.path()).await;
        assert!(code == 3 && text.contains(said) && !text.contains("hunter2"), "{code} {text}");
    }
    assert_eq!(set(&terminal, "sandbox", "/nowhere/at/all").await.0, 2);
    let good = Secrets::new(r#"{"secret_key": "sk_1", "webhook_secrets": ["whsec_1"]}"#);
    assert_eq!(set(&Terminal::of(&till).with("TIRADA_SEALING_KEYS", ""), "sandbox", good.path()).await.0, 2);
    assert_eq!(set(&Terminal::of(&till).with("TIRADA_STAGE", ""), "sandbox", good.path()).await.0, 2);
    let production = Terminal::of(&till).with("TIRADA_STAGE", "prod").with("TIRADA_SEALING_KEYS", &new_key());
    let (code, text) = set(&production, "sandbox", good.path()).await;
    assert!(code == 3 && text.contains("production"), "{text}");
    assert_eq!(sealed(&till, Gateway::Sandbox).await, None);
    till.finish().await;
}

fn new_key() -> String {
    json!({"keys": [{"id": "new", "key": "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="}]}).to_string()
}

/// The new key first, then the one that everything is sealed with.
fn both_keys() -> String {
    let [mut new, old]: [Value; 2] = [&new_key(), DEVELOPMENT_KEYS].map(|text| serde_json::from_str(text).unwrap());
    new["keys"].as_array_mut().unwrap().extend(old["keys"].as_array().unwrap().iter().cloned());
    new.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_seals_everything_again() {
    let till = Till::open(Policy::default()).await;
    let tenant_id = till.product.described.tenant_id;
    let terminal = Terminal::of(&till).with("TIRADA_SEALING_KEYS", &both_keys());
    let before = [sealed(&till, Gateway::Stripe).await, sealed(&till, Gateway::MercadoPago).await];
    let resealed = terminal.done(&["gateway", "reseal"]).await;
    assert_eq!((&resealed["resealed"], &resealed["current"]), (&json!(2), &json!(0)));
    let after = [sealed(&till, Gateway::Stripe).await, sealed(&till, Gateway::MercadoPago).await];
    let [old, new] = [DEVELOPMENT_KEYS, &new_key()].map(|keys| SealingKeys::from_json(keys, Stage::Local).unwrap());
    for (gateway, before, after) in
        [(Gateway::Stripe, &before[0], &after[0]), (Gateway::MercadoPago, &before[1], &after[1])]
    {
        let (before, after) = (before.as_ref().unwrap(), after.as_ref().unwrap());
        let context = context(tenant_id, gateway);
        assert_eq!(new.open(&context, after).unwrap(), old.open(&context, before).unwrap());
        assert!(old.open(&context, after).is_err());
    }
    let again = terminal.done(&["gateway", "reseal"]).await;
    assert_eq!((&again["resealed"], &again["current"]), (&json!(0), &json!(2)));
    let client = till.database.app_client().await;
    assert_eq!(sealed(&till, Gateway::Stripe).await, after[0], "nothing to do, nothing done");

    // One that no known key opens does not keep the others from being sealed.
    let lost = r#"{"keys": [{"id": "lost", "key": "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI="}]}"#;
    let lost = SealingKeys::from_json(lost, Stage::Local).unwrap().seal(&context(tenant_id, Gateway::Stripe), b"{}");
    save_account(&client, tenant_id, Gateway::MercadoPago, before[1].as_ref().unwrap()).await.unwrap();
    save_account(&client, tenant_id, Gateway::Stripe, &lost.unwrap()).await.unwrap();
    let output = terminal.run(&["gateway", "reseal"]).await.unwrap();
    assert_eq!((output.code(), &output.json()["resealed"]), (1, &json!(1)), "{output:?}");
    assert_eq!(output.json()["unopened"][0], format!("store {tenant_id} at stripe"));
    till.finish().await;
}
