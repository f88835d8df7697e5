//! The HTTP functions, driven in process with real requests over a real database.

mod bad_input;
mod cancel;
mod catalog;
mod chunks;
mod idempotency;
mod place;
mod place_in_queue;
mod refusals;
mod status;
mod tokens;
mod undelivered;

use std::sync::Arc;

use store::catalog::Product;
use tests::chain::Chain;
use tests::http::{Api, Buyer};
use tests::seed::ProductBuilder;
use tests::{TestDatabase, http, randomness, seed};
use uuid::Uuid;

/// A product on sale, an environment of `orders`, and the chain behind it.
struct Shop {
    database: TestDatabase,
    tenant: Uuid,
    product: Product,
    chain: Chain,
    orders: Api,
}

impl Shop {
    /// Numbers 1 to 1,000.
    async fn open() -> Self {
        Self::with(|tenant| seed::product(tenant, 1_000)).await
    }

    async fn with(product: impl FnOnce(Uuid) -> ProductBuilder) -> Self {
        let database = TestDatabase::new().await;
        let mut client = database.another_owner().await;
        let tenant = seed::store(&client).await;
        let product = product(tenant).insert(&mut client).await;
        let chain = Chain::new(&database, 2, 10, randomness::seed());
        let orders = http::orders(database.app(4), chain.queues.clone());
        Self { database, tenant, product, chain, orders }
    }

    /// Another environment of `orders`, which remembers nothing of the first.
    fn another(&self) -> Api {
        http::orders(self.database.app(4), self.chain.queues.clone())
    }

    fn product_id(&self) -> Uuid {
        self.product.described.id
    }

    fn buyer(&self) -> Buyer {
        Buyer::new(self.tenant)
    }

    /// Places an order that is accepted.
    async fn order(&self, buyer: &Buyer, body: &str) -> Uuid {
        let key = Uuid::now_v7().to_string();
        buyer.place(&self.orders, self.product_id(), &key, body.to_owned()).await.accepted()
    }

    /// Makes everything that is owed due now.
    async fn make_outbox_due(&self) {
        self.database.owner().execute("update outbox set next_attempt_at = now()", &[]).await.unwrap();
    }

    /// Lets everything come to rest; then the auditor.
    async fn finish(self) {
        self.chain.run().await;
        self.make_outbox_due().await;
        self.chain.reconcile().await;
        self.chain.run().await;
        self.database.finish().await;
    }

    /// Books the order as paid in cash.
    async fn pay(&self, order_id: Uuid) {
        seed::pay_in_cash(&self.database, &self.product, order_id).await;
    }
}

/// A queue that nobody reads.
fn nowhere() -> Arc<tests::queue::Queues> {
    Arc::new(tests::queue::Queues::new(tests::queue::Settings::default(), 1))
}
