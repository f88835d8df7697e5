//! Auditing and rebuilding.

use domain::catalog::Reserving;
use serde_json::{Value, json};
use store::Client;
use store::audit::{Audit, Finding};
use uuid::Uuid;

use crate::confirm::Confirm;
use crate::failure::Failure;
use crate::output::{Output, or_dash, say, table};
use crate::products::{Listed, find, require};

/// `tirada audit`
pub(crate) async fn audit(client: &mut Client, product: Option<Uuid>) -> Result<Output, Failure> {
    let products = match product {
        Some(id) => vec![require(client, id).await?],
        None => find(client, None, usize::MAX).await?.into_iter().map(|Listed { product, .. }| product).collect(),
    };
    let mut audits = Vec::with_capacity(products.len());
    for (done, product) in products.iter().enumerate() {
        say(format_args!("auditing {} ({} of {})", product.described.id, done + 1, products.len()));
        audits.push((product.described.id, store::audit::product(client, product).await?));
    }
    Ok(report(&audits))
}

fn report(audits: &[(Uuid, Audit)]) -> Output {
    let summary = |(id, audit): &(Uuid, Audit)| {
        let verdict =
            if audit.findings.is_empty() { "clean".into() } else { format!("{} wrong", audit.findings.len()) };
        [id.to_string(), audit.chunks.to_string(), audit.numbers.to_string(), verdict]
    };
    let mut text = table(["PRODUCT", "CHUNKS", "NUMBERS", "VERDICT"], audits.iter().map(summary).collect());
    let findings: Vec<(Uuid, &Finding)> =
        audits.iter().flat_map(|(id, audit)| audit.findings.iter().map(|finding| (*id, finding))).collect();
    if !findings.is_empty() {
        let row = |(id, finding): &(Uuid, &Finding)| {
            [id.to_string(), finding.invariant.to_owned(), or_dash(finding.chunk), finding.detail.clone()]
        };
        let rows = findings.iter().map(row).collect();
        text.push_str(&format!("\n\n{}", table(["PRODUCT", "INVARIANT", "CHUNK", "FINDING"], rows)));
    }
    let products: Vec<Value> = audits.iter().map(|(id, audit)| json!({"product": id, "audit": audit})).collect();
    let json = json!({"products": products, "findings": findings.len()});
    Output::new(text, json).wrong_if(!findings.is_empty())
}

/// `tirada rebuild`
pub(crate) async fn rebuild(client: &mut Client, id: Uuid, force: bool, confirm: Confirm) -> Result<Output, Failure> {
    let product = require(client, id).await?;
    if product.reserving == Reserving::On {
        if !force {
            let hint = format!("reserving is on; first `tirada reserving halt --product {id} --reason …` (or --force)");
            return Err(Failure::refused(hint));
        }
        confirm.ask(&format!("Product {id} is selling; its orders will wait while this holds locks."))?;
    }
    let mended = store::numbers::rebuild_as_operator(client, &product).await?;
    let chunks = product.described.range.chunk_count();
    let mut text = format!("product {id}: {mended} of {chunks} chunks were wrong and are mended");
    if product.reserving == Reserving::Halted {
        text.push_str(&format!(
            "\nnext: `tirada audit --product {id}`, then `tirada reserving resume --product {id} --reason …`"
        ));
    }
    let json = json!({
        "product": id, "chunks": chunks, "mended": mended, "reserving": product.reserving.word(),
    });
    Ok(Output::new(text, json))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_set_the_exit_code() {
        let id = Uuid::from_u128(1);
        let clean = Audit { chunks: 2, numbers: 10_000, findings: vec![] };
        let finding = Finding { invariant: "I2", chunk: Some(1), detail: "wrongly free: 1 ([7])".into() };
        let wrong = Audit { findings: vec![finding], ..clean.clone() };
        assert_eq!(report(&[(id, clean.clone())]).code(), 0);
        let output = report(&[(id, clean), (id, wrong)]);
        assert_eq!((output.code(), &output.json()["findings"]), (1, &json!(1)));
        assert_eq!(output.json()["products"][1]["audit"]["findings"][0]["invariant"], "I2");
        assert_eq!(report(&[]).code(), 0);
    }
}
