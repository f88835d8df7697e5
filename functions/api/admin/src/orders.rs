//! `GET /v1/admin/orders/{order}`: an order with its history and its money.

use access::StaffAuth;
use axum::Json;
use axum::extract::State as Shared;
use domain::Reason;
use domain::orders::State as OrderState;
use domain::roles::Action;
use edge::Problem;
use edge::http::PathParams;
use serde::Serialize;
use store::orders::{Event, KnownBuyer, Order, find_buyer};
use store::payments::{Attempt, DisputeOf, Overview, RefundEntry, find_overview};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::State;

/// An order as staff see it. Amounts are minor units, as text.
#[derive(Serialize, ToSchema)]
pub(crate) struct StoreOrder {
    /// Its id, which is the code that its buyer has.
    id: Uuid,
    /// Its product.
    product_id: Uuid,
    /// Its buyer.
    buyer_id: Uuid,
    /// Where it is.
    #[schema(value_type = String, example = "paid")]
    state: &'static str,
    /// Exact numbers asked for.
    requested_numbers: Vec<i32>,
    /// Random numbers asked for.
    requested_quantity: i32,
    /// Numbers that it got.
    numbers: Vec<i32>,
    /// Those of them that went back to stock after they were paid.
    given_up: Vec<i32>,
    /// Exact numbers that others had.
    lost_numbers: Vec<i32>,
    /// Price of one number at acceptance.
    #[schema(example = "1000")]
    unit_price: String,
    /// Price of what it got; null before.
    #[schema(example = "3000")]
    total: Option<String>,
    /// ISO 4217.
    #[schema(example = "BRL")]
    currency: String,
    /// When it was accepted.
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    /// End of the hold.
    #[serde(with = "time::serde::rfc3339::option")]
    expires_at: Option<OffsetDateTime>,
    /// When it was given up.
    #[serde(with = "time::serde::rfc3339::option")]
    cancel_requested_at: Option<OffsetDateTime>,
    /// Why it was rejected.
    #[schema(value_type = Option<String>)]
    reason: Option<&'static str>,
}

impl From<Order> for StoreOrder {
    fn from(order: Order) -> Self {
        Self {
            id: order.id,
            product_id: order.product_id,
            buyer_id: order.buyer_id,
            state: order.state.word(),
            requested_numbers: order.requested_numbers,
            requested_quantity: order.requested_quantity,
            numbers: order.numbers,
            given_up: order.given_up,
            lost_numbers: order.lost_numbers,
            unit_price: order.unit_price_minor.to_string(),
            total: order.total_minor.map(|minor| minor.to_string()),
            currency: order.currency,
            created_at: order.created_at,
            expires_at: order.expires_at,
            cancel_requested_at: order.cancel_requested_at,
            reason: order.reason.map(Reason::code),
        }
    }
}

/// One line of an order's history.
#[derive(Serialize, ToSchema)]
struct TimelineEntry {
    /// The order's version after it.
    version: i32,
    /// The state before; null for the first.
    #[schema(value_type = Option<String>)]
    from: Option<&'static str>,
    /// The state after.
    #[schema(value_type = String, example = "paid")]
    to: &'static str,
    /// Who or what did it.
    #[schema(example = "settle-payment")]
    cause: String,
    /// When.
    #[serde(with = "time::serde::rfc3339")]
    at: OffsetDateTime,
}

impl From<Event> for TimelineEntry {
    fn from(event: Event) -> Self {
        Self {
            version: event.version,
            from: event.from_state.map(OrderState::word),
            to: event.to_state.word(),
            cause: event.cause,
            at: event.at,
        }
    }
}

/// One try to pay an order.
#[derive(Serialize, ToSchema)]
struct StoreAttempt {
    /// Its id, which is also the reference at the gateway.
    id: Uuid,
    /// With whom.
    #[schema(value_type = String, example = "stripe")]
    gateway: &'static str,
    /// How.
    #[schema(value_type = String, example = "card")]
    method: &'static str,
    /// Where it is.
    #[schema(value_type = String, example = "captured")]
    state: &'static str,
    /// What was to be paid.
    amount: String,
    /// What was taken.
    captured: String,
    /// What went back.
    refunded: String,
    /// The gateway's id.
    payment_id: Option<String>,
    /// The gateway's word for a refusal.
    decline_code: Option<String>,
    /// When it was recorded.
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
}

impl From<Attempt> for StoreAttempt {
    fn from(attempt: Attempt) -> Self {
        Self {
            id: attempt.id,
            gateway: attempt.gateway.word(),
            method: attempt.method.word(),
            state: attempt.state.word(),
            amount: attempt.amount_minor.to_string(),
            captured: attempt.captured_minor.to_string(),
            refunded: attempt.refunded_minor.to_string(),
            payment_id: attempt.payment_id,
            decline_code: attempt.decline_code,
            created_at: attempt.created_at,
        }
    }
}

/// Money on its way back.
#[derive(Serialize, ToSchema)]
struct StoreRefund {
    /// Its id.
    id: Uuid,
    /// Where it is: created, pending, succeeded or failed.
    #[schema(value_type = String, example = "succeeded")]
    state: &'static str,
    /// How much.
    amount: String,
    /// Numbers that go back to stock for it.
    numbers: Vec<i32>,
    /// Why: staff, cancelled, late, duplicate, wrong-amount or elsewhere.
    #[schema(value_type = String, example = "staff")]
    cause: &'static str,
    /// What staff wrote.
    note: Option<String>,
    /// The gateway's word for why it failed.
    failure: Option<String>,
    /// The refund that was made in place of this failed one.
    retried_as: Option<Uuid>,
    /// When it was recorded.
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
}

impl From<RefundEntry> for StoreRefund {
    fn from(entry: RefundEntry) -> Self {
        Self {
            id: entry.refund.id,
            state: entry.refund.state.word(),
            amount: entry.refund.amount_minor.to_string(),
            numbers: entry.refund.numbers,
            cause: entry.refund.cause.word(),
            note: entry.refund.note,
            failure: entry.refund.failure,
            retried_as: entry.retried_as,
            created_at: entry.created_at,
        }
    }
}

/// A buyer's bank wants money back.
#[derive(Serialize, ToSchema)]
struct StoreDispute {
    /// Its id.
    id: Uuid,
    /// Whose money.
    attempt_id: Uuid,
    /// Where it is: open, won or lost.
    #[schema(value_type = String, example = "open")]
    state: &'static str,
    /// How much.
    amount: String,
    /// When it was first heard of.
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
}

impl From<DisputeOf> for StoreDispute {
    fn from(dispute: DisputeOf) -> Self {
        Self {
            id: dispute.id,
            attempt_id: dispute.attempt_id,
            state: dispute.state.word(),
            amount: dispute.amount_minor.to_string(),
            created_at: dispute.created_at,
        }
    }
}

/// Who buys.
#[derive(Serialize, ToSchema)]
struct StoreBuyer {
    /// Their phone.
    #[schema(example = "+34600000000")]
    phone: String,
    /// Their name, if staff have entered one.
    name: Option<String>,
}

impl From<KnownBuyer> for StoreBuyer {
    fn from(buyer: KnownBuyer) -> Self {
        Self { phone: buyer.phone, name: buyer.name }
    }
}

/// An order with its history and its money.
#[derive(Serialize, ToSchema)]
pub(crate) struct InspectedOrder {
    #[serde(flatten)]
    order: StoreOrder,
    /// Who its buyer is; null when nobody knows, or when they were erased.
    buyer: Option<StoreBuyer>,
    /// Its history, oldest first.
    timeline: Vec<TimelineEntry>,
    /// Attempts to pay it, oldest first.
    attempts: Vec<StoreAttempt>,
    /// Refunds, oldest first.
    refunds: Vec<StoreRefund>,
    /// Disputes, oldest first.
    disputes: Vec<StoreDispute>,
}

/// Read an order with its history and its money.
#[utoipa::path(
    get, path = "/v1/admin/orders/{order}", tag = "admin", operation_id = "inspect_order",
    params(("order" = Uuid, Path, description = "The order")),
    responses(
        (status = 200, description = "The order", body = InspectedOrder),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 403, description = "forbidden", body = Problem),
        (status = 404, description = "not-found", body = Problem),
        (status = 503, description = "unavailable", body = Problem)),
    security(("staff" = []))
)]
pub(crate) async fn inspect(
    Shared(state): Shared<State>,
    auth: StaffAuth,
    PathParams(id): PathParams<Uuid>,
) -> Result<Json<InspectedOrder>, Problem> {
    let staff = auth.may(Action::InspectOrder)?;
    let client = state.database.client().await?;
    let (order, events) = store::orders::history_of(&client, staff.tenant_id, id).await?;
    let buyer = find_buyer(&client, staff.tenant_id, order.buyer_id).await?;
    let Overview { attempts, refunds, disputes, .. } = find_overview(&client, staff.tenant_id, id).await?;
    Ok(Json(InspectedOrder {
        buyer: buyer.map(StoreBuyer::from),
        order: order.into(),
        timeline: events.into_iter().map(TimelineEntry::from).collect(),
        attempts: attempts.into_iter().map(StoreAttempt::from).collect(),
        refunds: refunds.into_iter().map(StoreRefund::from).collect(),
        disputes: disputes.into_iter().map(StoreDispute::from).collect(),
    }))
}
