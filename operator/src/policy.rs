//! How a product's orders may be paid.

use std::collections::BTreeSet;
use std::time::Duration;

use domain::payments::Gateway;
use gateways::check_hold;
use serde_json::{Value, json};
use store::Client;
use store::payments::{Policy, find_policy, list_accounts, save_policy_as_operator};

use crate::cli::{PolicyArgs, ProductAct};
use crate::failure::Failure;
use crate::output::{Output, table};
use crate::products::require;

/// `tirada product`
pub(crate) async fn change(client: &mut Client, act: ProductAct) -> Result<Output, Failure> {
    let ProductAct::Payments(args) = act;
    let PolicyArgs { product: id, gateways, capture, late_money, keep_disputed } = args;
    let product = require(client, id).await?;
    let new = Policy { gateways, capture, late_money, keeps_disputed: keep_disputed };
    let hold = Duration::from_secs(product.described.hold_seconds.unsigned_abs().into());
    check(&new, hold)?;
    let tenant_id = product.described.tenant_id;
    let accounts = list_accounts(client, tenant_id).await?;
    let has_account = |gateway: Gateway| accounts.iter().any(|account| account.gateway == gateway);
    if let Some(without) = new.gateways.iter().find(|one| **one != Gateway::Manual && !has_account(**one)) {
        let (slug, name) = (&product.store, without.word());
        return Err(Failure::refused(format!(
            "store {slug} has no credentials at {name}; first `tirada gateway set --store {slug} --gateway {name} \
             --credentials FILE`"
        )));
    }
    let before = find_policy(client, tenant_id, id).await?.unwrap_or_else(|| new.clone());
    save_policy_as_operator(client, tenant_id, id, &new).await?;
    let names = ["gateways", "capture", "late money", "disputed numbers"].map(str::to_owned);
    let rows = names.into_iter().zip(words(&before)).zip(words(&new));
    let rows = rows.map(|((name, then), now)| [name, then, now]).collect();
    let text = format!("product {id}: saved\n\n{}", table(["", "BEFORE", "NOW"], rows));
    Ok(Output::new(text, json!({"product": id, "before": in_json(&before), "now": in_json(&new)})))
}

/// Refuses what cannot be served, with the reason.
fn check(policy: &Policy, hold: Duration) -> Result<(), Failure> {
    let mut seen = BTreeSet::new();
    for gateway in &policy.gateways {
        if !seen.insert(*gateway) {
            return Err(Failure::refused(format!("{} is named twice", gateway.word())));
        }
        check_hold(*gateway, policy.capture, hold).map_err(|why| {
            Failure::refused(format!("{why}; the product holds numbers for {} seconds", hold.as_secs()))
        })?;
    }
    Ok(())
}

fn words(policy: &Policy) -> [String; 4] {
    let gateways: Vec<_> = policy.gateways.iter().map(|gateway| gateway.word()).collect();
    [
        if gateways.is_empty() { "none".into() } else { gateways.join(",") },
        policy.capture.word().to_owned(),
        policy.late_money.word().to_owned(),
        if policy.keeps_disputed { "kept" } else { "given up" }.to_owned(),
    ]
}

fn in_json(policy: &Policy) -> Value {
    json!({
        "gateways": policy.gateways, "capture": policy.capture, "late_money": policy.late_money,
        "keeps_disputed": policy.keeps_disputed,
    })
}

#[cfg(test)]
mod tests {
    use domain::payments::{CaptureMode, LateMoney};

    use super::*;

    #[test]
    fn what_a_gateway_cannot_serve_is_refused() {
        let check = |gateways: &[Gateway], capture, seconds| {
            let late_money = LateMoney::Refund;
            let policy = Policy { gateways: gateways.to_vec(), capture, late_money, keeps_disputed: false };
            check(&policy, Duration::from_secs(seconds)).map_err(|failure| failure.code())
        };
        use CaptureMode::{Automatic, Manual};
        assert_eq!(check(&[Gateway::Stripe, Gateway::MercadoPago, Gateway::Manual], Automatic, 900), Ok(()));
        assert_eq!(check(&[Gateway::Stripe], Manual, 900), Ok(()));
        assert_eq!(check(&[Gateway::Stripe], Automatic, 30), Err(3));
        assert_eq!(check(&[Gateway::Stripe, Gateway::MercadoPago], Manual, 900), Err(3));
        assert_eq!(check(&[Gateway::Stripe, Gateway::Stripe], Automatic, 900), Err(3));
    }
}
