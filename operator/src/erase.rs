//! People who are to be forgotten: buyers, and those who worked for a store. Nothing here prints who they were.

use serde_json::{Value, json};
use store::Client;
use store::erasing::{ErasedBuyer, ErasedStaff, Traces, Whom, erase_buyer, erase_staff, find_traces};
use uuid::Uuid;

use crate::cli::{EraseBuyerArgs, EraseStaffArgs, Person};
use crate::confirm::Confirm;
use crate::failure::Failure;
use crate::output::{Output, or_dash, table};
use crate::products::require_store;

/// `tirada buyer erase`
pub(crate) async fn buyer(client: &mut Client, args: EraseBuyerArgs, confirm: Confirm) -> Result<Output, Failure> {
    let EraseBuyerArgs { store: slug, person, dry_run } = args;
    let store = require_store(client, &slug).await?;
    let whom = whom(person)?;
    if dry_run {
        let traces = find_traces(client, store.id, &whom).await?;
        let text = format!("{}\n\nnothing was changed", shown(&traces));
        return Ok(Output::new(text, in_json(&slug, &traces, false)).wrong_if(!traces.under_way.is_empty()));
    }
    confirm.ask(&format!("This makes store {slug} forget somebody for good; their orders become nobody's."))?;
    match erase_buyer(client, store.id, &whom).await? {
        ErasedBuyer::UnderWay(orders) => Err(Failure::refused(under_way(&orders))),
        ErasedBuyer::Done(traces) if is_nothing(&traces) => {
            let text = format!("store {slug} knows nothing of them: erased before, or never there");
            Ok(Output::new(text, in_json(&slug, &traces, false)))
        }
        ErasedBuyer::Done(traces) => {
            let text = format!("{}\n\nerased; orders, money and history stay, and are nobody's", shown(&traces));
            Ok(Output::new(text, in_json(&slug, &traces, true)))
        }
    }
}

/// `tirada staff erase`
pub(crate) async fn staff(client: &mut Client, args: EraseStaffArgs, confirm: Confirm) -> Result<Output, Failure> {
    let EraseStaffArgs { store: slug, email } = args;
    let store = require_store(client, &slug).await?;
    confirm
        .ask(&format!("This makes store {slug} forget an address for good; what they did stays in the audit log."))?;
    match erase_staff(client, store.id, &email).await? {
        ErasedStaff::StillStaff => Err(Failure::refused(format!("they are staff of {slug}: remove them first"))),
        ErasedStaff::Done(ids) => {
            let text = if ids.is_empty() { "nobody who left has that address" } else { "erased" };
            Ok(Output::new(text, json!({"store": slug, "staff": ids, "erased": !ids.is_empty()})))
        }
    }
}

fn whom(person: Person) -> Result<Whom, Failure> {
    match person {
        Person { phone: Some(phone), .. } => Ok(Whom::Phone(phone)),
        Person { buyer: Some(id), .. } => Ok(Whom::Buyer(id)),
        Person { .. } => Err(Failure::usage("name --phone or --buyer")),
    }
}

fn is_nothing(traces: &Traces) -> bool {
    !traces.is_known && traces.texts == 0 && traces.login_codes == 0
}

fn under_way(orders: &[Uuid]) -> String {
    let ids: Vec<String> = orders.iter().map(Uuid::to_string).collect();
    format!(
        "orders of theirs are under way: they wait, hold numbers, are being paid, or their money goes back or is \
         disputed. Let them end, or give them up, then erase again: {}",
        ids.join(" ")
    )
}

fn shown(traces: &Traces) -> String {
    let row = |name: &str, value: String| [name.to_owned(), value];
    let known = if traces.is_known { "goes" } else { "-" };
    let mut text = table(
        ["BUYER", &or_dash(traces.buyer_id.map(|id| id.to_string()))],
        vec![
            row("phone, name, address", known.to_owned()),
            row("sessions that go", traces.sessions.to_string()),
            row("login codes that go", traces.login_codes.to_string()),
            row("orders that stay", traces.orders.to_string()),
            row("of which lose texts", traces.texts.to_string()),
            row("exports that cannot be fetched any more, or begin anew", traces.exports.to_string()),
        ],
    );
    if !traces.under_way.is_empty() {
        text.push_str(&format!("\n\n{}", under_way(&traces.under_way)));
    }
    text
}

fn in_json(slug: &str, traces: &Traces, erased: bool) -> Value {
    json!({
        "store": slug, "buyer": traces.buyer_id, "known": traces.is_known, "sessions": traces.sessions,
        "login_codes": traces.login_codes, "orders": traces.orders, "texts": traces.texts, "exports": traces.exports,
        "under_way": traces.under_way, "erased": erased,
    })
}
