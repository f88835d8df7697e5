//! The two switches.

use domain::Reason;
use domain::catalog::{Intake, Reserving};
use domain::roles::Action;
use serde_json::json;
use store::Client;
use store::acts::Subject;
use store::products::{switch_intake, switch_reserving};
use store::switches::{Switch, set_intake};

use crate::acts::act as made;
use crate::cli::{IntakeAct, IntakeArgs, ReservingAct, ReservingArgs, Target};
use crate::confirm::Confirm;
use crate::failure::Failure;
use crate::output::Output;
use crate::products::{require, require_store};

/// `tirada intake`
pub(crate) async fn intake(client: &mut Client, act: IntakeAct, confirm: Confirm) -> Result<Output, Failure> {
    let (intake, IntakeArgs { target, reason }) = match act {
        IntakeAct::Pause(args) => (Intake::Paused, args),
        IntakeAct::Resume(args) => (Intake::Open, args),
    };
    let (switch, name) = find_switch(client, &target).await?;
    if switch == Switch::Platform {
        confirm.ask(&format!("This sets intake to {} for every store.", intake.word()))?;
    }
    let detail = json!({ "intake": intake.word() });
    let act = |tenant_id, action, subject| made(tenant_id, action, subject, Some(&detail), Some(&reason));
    let set = match switch {
        // No store's: its reason stands with the switch.
        Switch::Platform => set_intake(client, switch, intake, Some(&reason)).await,
        Switch::Tenant(id) => {
            switch_intake(client, None, intake, &act(id, Action::SetStoreIntake, (Subject::Store, id))).await
        }
        Switch::Product(tenant_id, id) => {
            let act = act(tenant_id, Action::SetProductIntake, (Subject::Product, id));
            switch_intake(client, Some(id), intake, &act).await
        }
    };
    set.map_err(|error| Failure::explained(error, Reason::NotFound, format!("there is no {name}")))?;
    let text = format!("intake of {name}: {}", intake.word());
    Ok(Output::new(text, json!({"target": name, "intake": intake.word(), "reason": reason})))
}

async fn find_switch(client: &Client, target: &Target) -> Result<(Switch, String), Failure> {
    match target {
        Target { product: Some(id), .. } => {
            let tenant_id = require(client, *id).await?.described.tenant_id;
            Ok((Switch::Product(tenant_id, *id), format!("product {id}")))
        }
        Target { store: Some(slug), .. } => {
            Ok((Switch::Tenant(require_store(client, slug).await?.id), format!("store {slug}")))
        }
        Target { all: true, .. } => Ok((Switch::Platform, "the platform".into())),
        Target { .. } => Err(Failure::usage("name --product, --store or --all")),
    }
}

/// `tirada reserving`
pub(crate) async fn reserving(client: &mut Client, act: ReservingAct) -> Result<Output, Failure> {
    let (reserving, ReservingArgs { product, reason }) = match act {
        ReservingAct::Halt(args) => (Reserving::Halted, args),
        ReservingAct::Resume(args) => (Reserving::On, args),
    };
    let tenant_id = require(client, product).await?.described.tenant_id;
    let detail = json!({ "reserving": reserving.word() });
    let act = made(tenant_id, Action::SetReserving, (Subject::Product, product), Some(&detail), Some(&reason));
    switch_reserving(client, reserving, &act).await?;
    let open = store::findings::list_open(client, Some(product), 1).await?;
    let mut text = format!("reserving of product {product}: {}", reserving.word());
    if reserving == Reserving::On && !open.is_empty() {
        text.push_str("\nfindings are still open, so the auditor may halt it again: see `tirada queues`");
    }
    let json = json!({
        "product": product, "reserving": reserving.word(), "reason": reason, "findings_open": !open.is_empty(),
    });
    Ok(Output::new(text, json))
}
