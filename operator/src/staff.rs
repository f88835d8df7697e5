//! Stores' staff: the first owner, and the one who has lost everything.

use domain::limits::{PAGE_MAX, STAFF_PER_STORE_MAX};
use domain::roles::Action;
use domain::{Error, Reason};
use edge::Environment;
use edge::one_time_link::OneTimeLink;
use edge::sealing::{SealingKeys, totp_context};
use serde_json::{Value, json};
use store::Client;
use store::acts::Subject;
use store::staff::{Invite, Invited, Member, NewLink, list_sealed};
use uuid::Uuid;

use crate::accounts::sealing_keys;
use crate::acts::act;
use crate::cli::{InviteArgs, MemberArgs, StaffAct};
use crate::confirm::Confirm;
use crate::erase;
use crate::failure::Failure;
use crate::output::{Output, instant, or_dash, table};
use crate::products::require_store;

/// `tirada staff`
pub(crate) async fn change(
    client: &mut Client,
    act: StaffAct,
    environment: &Environment,
    confirm: Confirm,
) -> Result<Output, Failure> {
    match act {
        StaffAct::Invite(args) => invite(client, args).await,
        StaffAct::Recover(args) => recover(client, args).await,
        StaffAct::List { store } => list(client, &store).await,
        StaffAct::Reseal => reseal(client, &sealing_keys(environment)?.0).await,
        StaffAct::Erase(args) => erase::staff(client, args, confirm).await,
    }
}

async fn invite(client: &mut Client, args: InviteArgs) -> Result<Output, Failure> {
    let InviteArgs { member: MemberArgs { store: slug, email, page }, role } = args;
    let store = require_store(client, &slug).await?;
    let link = OneTimeLink::new()?;
    let new = NewLink { id: Uuid::now_v7(), hash: &link.hash() };
    let invite = Invite { id: Uuid::now_v7(), email: &email, role, link: new };
    let (who, detail) = ((Subject::Staff, invite.id), json!({ "role": role }));
    let act = act(store.id, Action::InviteStaff, who, Some(&detail), None);
    let invited = store::staff::invite(client, &invite, &act).await.map_err(|error| {
        let text = format!("{} is staff of {slug} already; `tirada staff recover` lets them in again", email.as_str());
        Failure::explained(error, Reason::StaffExists, text)
    })?;
    let (Invited::Now { id, .. } | Invited::Before { id }) = invited;
    let link = link.address(&page);
    let text = format!(
        "{} is invited to {slug} as {}; the link, good for three days and once:\n{link}",
        email.as_str(),
        role.word()
    );
    Ok(Output::new(text, json!({"store": slug, "staff": id, "role": role, "link": link})))
}

async fn recover(client: &mut Client, args: MemberArgs) -> Result<Output, Failure> {
    let MemberArgs { store: slug, email, page } = args;
    let store = require_store(client, &slug).await?;
    let found = store::staff::find_by_email(client, store.id, &email).await?;
    let unknown = || Failure::refused(format!("{} is not staff of {slug}", email.as_str()));
    let id = found.ok_or_else(unknown)?.id;
    let link = OneTimeLink::new()?;
    let new = NewLink { id: Uuid::now_v7(), hash: &link.hash() };
    let act = act(store.id, Action::RecoverStaff, (Subject::Staff, id), None, None);
    let made = store::staff::recover(client, new, &act).await;
    made.map_err(|error| {
        let text = format!("{} has not joined yet: invite them again", email.as_str());
        Failure::explained(error, Reason::NotFound, text)
    })?;
    let link = link.address(&page);
    let text = format!("the link for {}, good for three days and once:\n{link}", email.as_str());
    Ok(Output::new(text, json!({"store": slug, "staff": id, "link": link})))
}

async fn list(client: &Client, slug: &str) -> Result<Output, Failure> {
    let store = require_store(client, slug).await?;
    let most = usize::try_from(STAFF_PER_STORE_MAX).map_err(Error::fault)?;
    let found = store::staff::list(client, store.id, None, most).await?;
    let rows = found.iter().map(row).collect();
    let all: Vec<Value> = found.iter().map(in_json).collect();
    Ok(Output::new(table(["ID", "ADDRESS", "ROLE", "INVITED", "JOINED"], rows), json!({"store": slug, "staff": all})))
}

async fn reseal(client: &Client, keys: &SealingKeys) -> Result<Output, Failure> {
    let (mut resealed, mut current, mut unopened) = (0, 0, Vec::new());
    let mut after = None;
    loop {
        let page = list_sealed(client, after, PAGE_MAX).await?;
        after = page.last().map(|one| one.staff_id);
        if after.is_none() {
            break;
        }
        for one in &page {
            let context = totp_context(one.tenant_id, one.staff_id);
            match keys.open(&context, &one.sealed) {
                _ if keys.is_current(&one.sealed) => current += 1,
                Ok(secret) if store::staff::reseal(client, one, &keys.seal(&context, &secret)?).await? => resealed += 1,
                // Set up anew meanwhile.
                Ok(_) => current += 1,
                Err(_) => unopened.push(one.staff_id),
            }
        }
    }
    let mut text = format!("{resealed} secrets sealed again; {current} were sealed with the first key before");
    for id in &unopened {
        text.push_str(&format!("\nno key opens the secret of {id}: let them recover"));
    }
    let json = json!({"resealed": resealed, "current": current, "unopened": unopened});
    Ok(Output::new(text, json).wrong_if(!unopened.is_empty()))
}

fn row(member: &Member) -> [String; 5] {
    [
        member.id.to_string(),
        member.email.clone(),
        member.role.word().to_owned(),
        instant(member.created_at),
        or_dash(member.joined_at.map(instant)),
    ]
}

fn in_json(member: &Member) -> Value {
    json!({
        "id": member.id, "email": member.email, "role": member.role, "invited_at": instant(member.created_at),
        "joined_at": member.joined_at.map(instant),
    })
}
