//! What the operator does as staff could, for the audit log: the same words, and nobody of the store.

use domain::roles::Action;
use serde_json::Value;
use store::acts::{NewAct, Subject};
use uuid::Uuid;

/// An act of the operator. It has no key: what must happen once says so by itself.
pub(crate) fn act(
    tenant_id: Uuid,
    action: Action,
    (subject, subject_id): (Subject, Uuid),
    detail: Option<&Value>,
    reason: Option<&str>,
) -> NewAct {
    NewAct {
        tenant_id,
        staff_id: None,
        action,
        subject,
        subject_id,
        detail: detail.map(Value::to_string),
        reason: reason.map(str::to_owned),
        keyed: None,
    }
}
