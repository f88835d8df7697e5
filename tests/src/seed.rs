//! Stores, products, buyers and orders for tests, with defaults that sell.

use std::time::Duration;

use domain::catalog::{Money, NewProduct, Range};
use domain::orders::{Fallback, Request, State};
use domain::payments::{AttemptState, Method, Observed};
use futures::stream::{self, StreamExt};
use store::Database;
use store::catalog::{self, Product};
use store::idempotency::Scope;
use store::orders::{Cancelled, NewOrder, Placed, place};
use store::payments::{Answer, NewAttempt, Started, record, start};
use tokio_postgres::Client;
use uuid::Uuid;

use crate::{TestDatabase, look};

/// A new store; its id.
pub async fn store(client: &Client) -> Uuid {
    let id = Uuid::now_v7();
    catalog::insert_store(client, id, &format!("store-{}", &id.simple().to_string()[16..]), "A store").await.unwrap();
    id
}

/// A product to be: on sale since an hour ago, for a day.
#[derive(Debug, Clone)]
pub struct ProductBuilder(NewProduct);

/// A product of so many numbers, from 1 on.
#[must_use]
pub fn product(tenant_id: Uuid, count: i32) -> ProductBuilder {
    let now = time::OffsetDateTime::now_utc();
    ProductBuilder(NewProduct {
        id: Uuid::now_v7(),
        tenant_id,
        campaign: "spring".into(),
        name: "A raffle".into(),
        range: Range { first: 1, count },
        padding: 5,
        price: Money { minor: 250, currency: "EUR".into() },
        opens_at: now - Duration::from_secs(3_600),
        closes_at: now + Duration::from_secs(24 * 3_600),
        zone: "Europe/Madrid".into(),
        hold_seconds: 900,
        numbers_per_order_max: 100,
        numbers_per_buyer_max: 100_000,
    })
}

impl ProductBuilder {
    /// The smallest number.
    #[must_use]
    pub const fn first(mut self, first: i32) -> Self {
        self.0.range.first = first;
        self
    }

    /// Most numbers of one buyer.
    #[must_use]
    pub const fn per_buyer(mut self, numbers: i32) -> Self {
        self.0.numbers_per_buyer_max = numbers;
        self
    }

    /// Most numbers of one order.
    #[must_use]
    pub const fn per_order(mut self, numbers: i32) -> Self {
        self.0.numbers_per_order_max = numbers;
        self
    }

    /// Price of one number, minor units, and its currency.
    #[must_use]
    pub fn price(mut self, minor: i64, currency: &str) -> Self {
        self.0.price = Money { minor, currency: currency.into() };
        self
    }

    /// Length of a hold.
    #[must_use]
    pub const fn hold_seconds(mut self, seconds: i32) -> Self {
        self.0.hold_seconds = seconds;
        self
    }

    /// The window of the sale.
    #[must_use]
    pub const fn window(mut self, opens_at: time::OffsetDateTime, closes_at: time::OffsetDateTime) -> Self {
        self.0.opens_at = opens_at;
        self.0.closes_at = closes_at;
        self
    }

    /// Writes it.
    pub async fn insert(self, client: &mut Client) -> Product {
        catalog::insert_product(client, &self.0).await.unwrap();
        catalog::require_product(client, self.0.id).await.unwrap()
    }
}

/// So many buyers.
#[must_use]
pub fn buyers(count: usize) -> Vec<Uuid> {
    (0..count).map(|_| Uuid::now_v7()).collect()
}

/// A request for exact numbers, all or nothing.
#[must_use]
pub fn exact(numbers: &[i32]) -> Request {
    Request::new(numbers.to_vec(), 0, Fallback::Reject).unwrap()
}

/// A request for random numbers, all or nothing.
#[must_use]
pub fn quick(quantity: i32) -> Request {
    Request::new(Vec::new(), quantity, Fallback::Reject).unwrap()
}

/// Places an order under a key of its own; what became of it, and the id that it has if it was accepted.
pub async fn try_order(client: &Client, product: &Product, buyer_id: Uuid, request: &Request) -> (Uuid, Placed) {
    let id = Uuid::now_v7();
    let (product_id, tenant_id) = (product.described.id, product.described.tenant_id);
    let key = id.to_string();
    let order = NewOrder { id, product_id, tenant_id, buyer_id, request, key: &key };
    (id, place(client, &order, &[]).await.unwrap())
}

/// Places an order that must be accepted; its id.
pub async fn order(client: &Client, product: &Product, buyer_id: Uuid, request: &Request) -> Uuid {
    let (id, placed) = try_order(client, product, buyer_id, request).await;
    assert!(matches!(placed, Placed::Accepted { .. }), "{request:?} was {placed:?}");
    id
}

/// Places many orders, several at once, each of which must be accepted; their ids, in the order of the wishes.
pub async fn orders(database: &Database, product: &Product, wishes: &[(Uuid, Request)], at_once: usize) -> Vec<Uuid> {
    let place = |(buyer_id, request): &(Uuid, Request)| {
        let (buyer_id, request) = (*buyer_id, request.clone());
        async move { order(&database.client().await.unwrap(), product, buyer_id, &request).await }
    };
    stream::iter(wishes.iter().map(place)).buffered(at_once).collect().await
}

/// Pays an order in cash, as staff would book it.
pub async fn pay_in_cash(database: &TestDatabase, product: &Product, order_id: Uuid) {
    let sql = "update products set gateways = array_append(array_remove(gateways, 'manual'), 'manual') where id = $1";
    database.owner().execute(sql, &[&product.described.id]).await.unwrap();
    let new = NewAttempt {
        id: Uuid::now_v7(),
        tenant_id: product.described.tenant_id,
        buyer_id: None,
        order_id,
        method: Method::Manual,
        return_url: None,
        key: "cash",
    };
    let mut client = database.app_client().await;
    let Started::New(attempt) = start(&mut client, &new).await.unwrap() else { panic!("it is being paid") };
    let paid = Observed {
        payment_id: format!("manual-{}", attempt.id),
        attempt_id: Some(attempt.id),
        state: AttemptState::Captured,
        amount_minor: attempt.amount_minor,
        currency: attempt.currency.clone(),
        captured_minor: attempt.amount_minor,
        refunded_minor: 0,
        decline_code: None,
        instructions: None,
        refunds: Vec::new(),
        disputes: Vec::new(),
    };
    record(&mut client, attempt.tenant_id, attempt.id, Answer::Observed(&paid)).await.unwrap();
    assert_eq!(look::order(database, order_id).await.state, State::Paid);
}

/// Cancels a buyer's order, under a key of its own.
///
/// # Errors
/// Those of [`store::orders::cancel`].
pub async fn cancel(client: &mut Client, tenant_id: Uuid, subject_id: Uuid, id: Uuid) -> domain::Result<Cancelled> {
    let key = Uuid::now_v7().to_string();
    let scope = Scope { tenant_id, subject_id, route: "cancel", key: &key };
    store::orders::cancel(client, scope, id, Uuid::now_v7()).await
}
