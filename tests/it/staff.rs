//! How staff get in, and who they are.

mod links;
mod logs;
mod mail;
mod members;
mod passwords;
mod sessions;
mod sign_in;

use domain::roles::{Action, Role};
use domain::staff::Email;
use edge::one_time_link::OneTimeLink;
use edge::totp::TotpSecret;
use serde_json::Value;
use store::acts::{NewAct, Subject};
use store::staff::{Invite, Invited, NewLink, invite};
use tests::staff::{Office, now};
use uuid::Uuid;

/// The address of the first owner.
const OWNER: &str = "owner@example.org";

/// Invites somebody as the operator would; what the link bears.
async fn invited(office: &Office, email: &str, role: Role) -> String {
    let link = OneTimeLink::new().unwrap();
    let email = Email::parse(email).unwrap();
    let new = NewLink { id: Uuid::now_v7(), hash: &link.hash() };
    let invitation = Invite { id: Uuid::now_v7(), email: &email, role, link: new };
    let act = NewAct {
        tenant_id: office.tenant_id,
        staff_id: None,
        action: Action::InviteStaff,
        subject: Subject::Staff,
        subject_id: invitation.id,
        detail: None,
        reason: None,
        keyed: None,
    };
    let made = invite(&mut office.database.app_client().await, &invitation, &act).await.unwrap();
    assert!(matches!(made, Invited::Now { .. }), "{made:?}");
    link.address("x").split_once('#').unwrap().1.to_owned()
}

/// Invites somebody who accepts; what their app knows, and their session.
async fn joined(office: &Office, email: &str, role: Role) -> (TotpSecret, Value) {
    let link = invited(office, email, role).await;
    let secret = office.enrol(&link).await;
    let answer = office.sign_in(&link, &secret.password(now())).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    (secret, answer.json())
}

/// Lets somebody use any password again, as if time had passed.
async fn forget_steps(office: &Office) {
    office.database.owner().execute("update staff set totp_step = 0", &[]).await.unwrap();
}

/// The value of the `Authorization` header of a session.
fn bearer(session: &Value) -> String {
    format!("Bearer {}", session["access_token"].as_str().unwrap())
}
