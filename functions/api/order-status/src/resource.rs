//! An order as its buyer sees it.

use domain::catalog::{self, Range};
use domain::orders::{Fallback, State};
use domain::payments::{AttemptState, Gateway, Instructions, Method, RefundCause, RefundState, Use};
use edge::http::Money;
use serde::Serialize;
use store::orders::{Order, Place};
use store::payments::{PaymentOf, RefundOf};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::patience;

/// What was asked for.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Requested {
    /// Exact numbers.
    numbers: Vec<i32>,
    /// Random numbers besides.
    quantity: i32,
    /// What was to be done if exact numbers were taken: `reject`, `drop` or `replace`.
    #[schema(value_type = String, example = "reject")]
    fallback: Fallback,
}

/// Why an order was rejected.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Rejection)]
pub(crate) struct ReasonBody {
    /// Stable code, for programs.
    #[schema(example = "numbers-taken")]
    code: &'static str,
    /// Short sentence, for people.
    title: &'static str,
}

/// A place in the queue. It never rises.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Place)]
pub(crate) struct PlaceBody {
    /// 1 = next.
    position: i64,
    /// Counting stopped: the true place is `position` or more.
    or_more: bool,
    /// Roughly how long it may take; null while nothing moves.
    estimate_seconds: Option<u64>,
}

/// An order.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Order)]
pub(crate) struct OrderBody {
    /// Its id.
    id: Uuid,
    /// Its product.
    product_id: Uuid,
    /// `queued`, `reserved`, `paying`, `paid`, `rejected`, `cancelled`, `expired`, `refunding` or `refunded`.
    #[schema(value_type = String, example = "reserved")]
    state: State,
    /// What was asked for.
    requested: Requested,
    /// Numbers that it got. After it was cancelled or expired: the ones it had.
    numbers: Vec<i32>,
    /// The same as they are printed.
    #[schema(example = json!(["000042"]))]
    labels: Vec<String>,
    /// No number was free when the order was accepted: it gets some only if holds run out in time.
    only_held_stock: bool,
    /// Exact numbers that others had.
    lost_numbers: Vec<i32>,
    /// Which of `numbers` stand in for lost ones.
    substitutes: Vec<i32>,
    /// Numbers that were free when it lost some.
    suggestions: Vec<i32>,
    /// Those of `numbers` that went back to stock after they were paid.
    given_up: Vec<i32>,
    /// Why it was rejected.
    reason: Option<ReasonBody>,
    /// Price of one number, as it was when the order was accepted.
    unit_price: Money,
    /// Price of the numbers; null until they are reserved.
    total: Option<Money>,
    /// When it was accepted.
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    /// End of the hold: pay before it. Null until numbers are reserved.
    #[serde(with = "time::serde::rfc3339::option")]
    expires_at: Option<OffsetDateTime>,
    /// Whether its cancellation was asked for.
    cancel_requested: bool,
    /// Grows with every transition.
    version: i32,
}

/// The payment that counts, or the latest one.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PaymentOfOrder)]
pub(crate) struct PaymentBody {
    /// The attempt.
    id: Uuid,
    /// With whom.
    #[schema(value_type = String, example = "stripe")]
    gateway: Gateway,
    /// How.
    #[schema(value_type = String, example = "checkout")]
    method: Method,
    /// `created`, `open`, `processing`, `authorised`, `declined`, `cancelled`, `abandoned` or `captured`.
    #[schema(value_type = String, example = "open")]
    state: AttemptState,
    /// Whether the money paid for the order (`payment`) or goes back (`return`); null before it was taken.
    used: Option<&'static str>,
    /// What was asked for.
    amount: Money,
    /// What to do to pay; null when there is nothing to do.
    #[schema(value_type = Option<Object>)]
    instructions: Option<Instructions>,
    /// The gateway's word for why a try was refused.
    decline_code: Option<String>,
}

/// Money on its way back.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RefundOfOrder)]
pub(crate) struct RefundBody {
    /// The refund.
    id: Uuid,
    /// How much.
    amount: Money,
    /// Numbers that go back to stock for it.
    numbers: Vec<i32>,
    /// `staff`, `cancelled`, `late`, `duplicate`, `wrong-amount` or `elsewhere`.
    #[schema(value_type = String, example = "late")]
    cause: RefundCause,
    /// `created`, `pending`, `succeeded` or `failed`.
    #[schema(value_type = String, example = "pending")]
    state: RefundState,
}

/// An order and what its buyer may wait for.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OrderStatus {
    #[serde(flatten)]
    order: OrderBody,
    /// The payment that counts, or the latest one; null when none was tried.
    payment: Option<PaymentBody>,
    /// All money that goes or went back.
    refunds: Vec<RefundBody>,
    /// Its place in the queue; null in its first seconds and once it was served.
    place: Option<PlaceBody>,
    /// Seconds to wait before the next look; null once it has ended.
    #[schema(minimum = 2, maximum = 30)]
    poll_after: Option<u32>,
}

impl OrderStatus {
    /// The representation. Nothing in it depends on when it was read, so it stays the same while nothing happens.
    pub(crate) fn new(order: Order, place: Option<Place>) -> Self {
        let poll_after = patience::poll_after(order.state, order.cancel_requested_at.is_some(), place.as_ref());
        Self { order: order.into(), payment: None, refunds: Vec::new(), place: place.map(PlaceBody::from), poll_after }
    }

    /// With what is known of its money.
    pub(crate) fn with_money(mut self, payment: Option<PaymentOf>, refunds: Vec<RefundOf>) -> Self {
        let currency = self.order.unit_price.currency().to_owned();
        let money = |minor| Money::from(catalog::Money { minor, currency: currency.clone() });
        self.payment = payment.map(|payment| PaymentBody {
            id: payment.id,
            gateway: payment.gateway,
            method: payment.method,
            state: payment.state,
            used: payment.used.map(Use::word),
            amount: money(payment.amount_minor),
            instructions: payment.instructions.filter(|_| payment.state == AttemptState::Open),
            decline_code: payment.decline_code,
        });
        let body = |refund: RefundOf| RefundBody {
            id: refund.id,
            amount: money(refund.amount_minor),
            numbers: refund.numbers,
            cause: refund.cause,
            state: refund.state,
        };
        self.refunds = refunds.into_iter().map(body).collect();
        self
    }

    pub(crate) fn poll_after(&self) -> Option<u32> {
        self.poll_after
    }
}

impl From<Order> for OrderBody {
    fn from(order: Order) -> Self {
        let money = |minor: i64| Money::from(catalog::Money { minor, currency: order.currency.clone() });
        let (unit_price, total) = (money(order.unit_price_minor), order.total_minor.map(money));
        let (numbers, quantity, fallback) = (order.requested_numbers, order.requested_quantity, order.fallback);
        Self {
            id: order.id,
            product_id: order.product_id,
            state: order.state,
            requested: Requested { numbers, quantity, fallback },
            labels: order.numbers.iter().map(|number| Range::label(*number, order.padding)).collect(),
            numbers: order.numbers,
            only_held_stock: order.only_held_stock,
            lost_numbers: order.lost_numbers,
            substitutes: order.substitutes,
            suggestions: order.suggestions,
            given_up: order.given_up,
            reason: order.reason.map(|reason| ReasonBody { code: reason.code(), title: reason.title() }),
            unit_price,
            total,
            created_at: order.created_at,
            expires_at: order.expires_at,
            cancel_requested: order.cancel_requested_at.is_some(),
            version: order.version,
        }
    }
}

impl From<Place> for PlaceBody {
    fn from(place: Place) -> Self {
        let Place { position, or_more, estimate } = place;
        Self { position, or_more, estimate_seconds: estimate.map(patience::estimate_seconds) }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use domain::Reason;
    use serde_json::{Value, json};

    use super::*;

    pub(crate) fn order(state: State) -> Order {
        let created_at = OffsetDateTime::UNIX_EPOCH;
        Order {
            id: Uuid::from_u128(7),
            tenant_id: Uuid::from_u128(1),
            product_id: Uuid::from_u128(3),
            product_key: 3,
            padding: 4,
            buyer_id: Uuid::from_u128(2),
            state,
            requested_numbers: vec![7, 77],
            requested_quantity: 1,
            fallback: Fallback::Replace,
            unit_price_minor: 1_000,
            currency: "BRL".into(),
            total_minor: None,
            created_at,
            queue_deadline: created_at + Duration::from_secs(900),
            numbers: vec![],
            only_held_stock: false,
            lost_numbers: vec![],
            substitutes: vec![],
            suggestions: vec![],
            given_up: vec![],
            reason: None,
            expires_at: None,
            cancel_requested_at: None,
            version: 1,
            read_at: created_at + Duration::from_secs(5),
        }
    }

    fn json_of(order: Order, place: Option<Place>) -> Value {
        serde_json::to_value(OrderStatus::new(order, place)).unwrap()
    }

    #[test]
    fn a_queued_order_reads_as_agreed() {
        let place = Place { position: 12, or_more: false, estimate: Some(Duration::from_millis(7_300)) };
        assert_eq!(
            json_of(order(State::Queued), Some(place)),
            json!({
                "id": Uuid::from_u128(7), "product_id": Uuid::from_u128(3), "state": "queued",
                "requested": {"numbers": [7, 77], "quantity": 1, "fallback": "replace"},
                "only_held_stock": false, "numbers": [], "labels": [], "lost_numbers": [], "substitutes": [], "suggestions": [],
                "given_up": [], "payment": null, "refunds": [],
                "reason": null, "unit_price": {"amount": "1000", "currency": "BRL"}, "total": null,
                "created_at": "1970-01-01T00:00:00Z", "expires_at": null, "cancel_requested": false,
                "place": {"position": 12, "or_more": false, "estimate_seconds": 10}, "poll_after": 2, "version": 1,
            })
        );
    }

    #[test]
    fn numbers_are_printed_and_reasons_explained() {
        let reserved = Order {
            numbers: vec![7, 501, 12_345],
            lost_numbers: vec![77],
            substitutes: vec![501],
            total_minor: Some(3_000),
            expires_at: Some(OffsetDateTime::UNIX_EPOCH + Duration::from_secs(600)),
            version: 2,
            ..order(State::Reserved)
        };
        let body = json_of(reserved, None);
        assert_eq!(body["labels"], json!(["0007", "0501", "12345"]));
        assert_eq!(body["total"], json!({"amount": "3000", "currency": "BRL"}));
        assert_eq!((&body["expires_at"], &body["poll_after"]), (&json!("1970-01-01T00:10:00Z"), &json!(5)));
        let rejected = Order { reason: Some(Reason::NumbersTaken), suggestions: vec![8], ..order(State::Rejected) };
        let body = json_of(rejected, None);
        assert_eq!(body["reason"]["code"], "numbers-taken");
        assert_eq!((&body["suggestions"], &body["poll_after"]), (&json!([8]), &Value::Null));
    }

    #[test]
    fn the_representation_is_the_same_whenever_it_is_read() {
        let later = Order { read_at: OffsetDateTime::UNIX_EPOCH + Duration::from_secs(500), ..order(State::Queued) };
        let place = |millis| Place { position: 40, or_more: false, estimate: Some(Duration::from_millis(millis)) };
        assert_eq!(json_of(order(State::Queued), Some(place(41_000))), json_of(later, Some(place(44_900))));
    }
}
