//! Notices to buyers: how they are doing, and where they go.

use serde_json::{Value, json};
use store::Client;
use store::notices::{Counted, Stuck, count, list_stuck, measure, save_email};

use crate::cli::EmailArgs;
use crate::failure::Failure;
use crate::output::{Output, age, table};
use crate::products::require_store;

/// Lines of the list.
const LINES_MAX: i64 = 50;

/// `tirada notices`
pub(crate) async fn show(client: &Client) -> Result<Output, Failure> {
    let counted = count(client).await?;
    let measures = measure(client).await?;
    let stuck = list_stuck(client, LINES_MAX).await?;
    let text = [
        table(["KIND", "OUTCOME", "NOTICES"], counted.iter().map(count_row).collect()),
        format!("oldest owed: {}\nrefused by their provider: {}", age(measures.oldest), measures.failing),
        table(["ORDER", "KIND", "TRIES", "AGE", "PROVIDER"], stuck.iter().map(stuck_row).collect()),
    ]
    .join("\n\n");
    let json = json!({
        "last_day": counted.iter().map(count_json).collect::<Vec<_>>(),
        "oldest_owed_seconds": measures.oldest.map(|age| age.as_secs()),
        "failing": measures.failing,
        "stuck": stuck.iter().map(stuck_json).collect::<Vec<_>>(),
    });
    Ok(Output::new(text, json).wrong_if(measures.failing > 0))
}

/// `tirada buyer email`
pub(crate) async fn change_email(client: &mut Client, args: EmailArgs) -> Result<Output, Failure> {
    let EmailArgs { store: slug, phone, email } = args;
    let store = require_store(client, &slug).await?;
    save_email(client, store.id, &phone, email.as_ref()).await?;
    let text = if email.is_some() { "notices go to the phone and by mail" } else { "notices go to the phone only" };
    Ok(Output::new(text, json!({"store": slug, "mails": email.is_some()})))
}

fn outcome(counted: &Counted) -> &str {
    counted.outcome.as_deref().unwrap_or("owed")
}

fn count_row(counted: &Counted) -> [String; 3] {
    [counted.kind.word().to_owned(), outcome(counted).to_owned(), counted.notices.to_string()]
}

fn count_json(counted: &Counted) -> Value {
    json!({"kind": counted.kind.word(), "outcome": outcome(counted), "notices": counted.notices})
}

fn stuck_row(stuck: &Stuck) -> [String; 5] {
    let Stuck { order_id, kind, attempts, failure, age: owed } = stuck;
    [order_id.to_string(), kind.word().to_owned(), attempts.to_string(), age(Some(*owed)), failure.clone()]
}

fn stuck_json(stuck: &Stuck) -> Value {
    json!({
        "order": stuck.order_id, "kind": stuck.kind.word(), "tries": stuck.attempts,
        "age_seconds": stuck.age.as_secs(), "provider": stuck.failure,
    })
}
