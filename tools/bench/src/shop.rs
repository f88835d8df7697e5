//! A product on sale in a database of its own, with orders that wait: what is measured starts from here.

use std::sync::Arc;

use domain::orders::{Fallback, Request};
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use serde_json::json;
use store::catalog::Product;
use store::orders::{NewOrder, Placed, place};
use tests::seed::ProductBuilder;
use tests::{TestDatabase, chain, seed};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::settings::{CONNECTIONS, NUMBERS_PER_ORDER, ORDERS_PER_BUYER};

/// What orders ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mix {
    /// Exact numbers and quick picks in turn.
    Both,
    /// Exact numbers only.
    Exact,
    /// Quick picks only.
    Quick,
}

/// Whether the outbox rows of placed orders are deleted, as intake does when it has sent their messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Acknowledge {
    Always,
    Never,
}

/// A store with one product.
pub(crate) struct Shop {
    pub(crate) database: TestDatabase,
    pub(crate) product: Product,
}

impl Shop {
    /// A product of so many numbers, all free.
    pub(crate) async fn open(numbers: i32) -> Self {
        Self::with(numbers, |product| product).await
    }

    /// The same, with something changed.
    pub(crate) async fn with(numbers: i32, change: impl FnOnce(ProductBuilder) -> ProductBuilder) -> Self {
        let database = TestDatabase::new().await;
        let mut client = database.another_owner().await;
        let tenant = seed::store(&client).await;
        let product = change(seed::product(tenant, numbers)).insert(&mut client).await;
        Self { database, product }
    }

    /// Places so many orders, several at once, and gives their ids, oldest first. Not measured, so it waits for no
    /// disk.
    pub(crate) async fn place(&self, count: usize, mix: Mix, rng: &mut StdRng) -> Vec<Uuid> {
        self.place_with(count, mix, Acknowledge::Always, rng).await
    }

    /// The same, and perhaps the messages are still owed.
    pub(crate) async fn place_with(
        &self,
        count: usize,
        mix: Mix,
        acknowledge: Acknowledge,
        rng: &mut StdRng,
    ) -> Vec<Uuid> {
        let wishes = wishes(self.product.described.range.count, count, mix, rng);
        let mut buyers: Vec<Uuid> = seed::buyers(count.div_ceil(ORDERS_PER_BUYER)).repeat(ORDERS_PER_BUYER);
        buyers.shuffle(rng);
        let all: Vec<(Uuid, Request)> = buyers.into_iter().zip(wishes).collect();
        let all = Arc::new(all);
        let mut tasks = JoinSet::new();
        for start in 0..CONNECTIONS {
            let client = self.database.another_owner().await;
            client.batch_execute("set synchronous_commit = off").await.unwrap();
            let (all, product) = (Arc::clone(&all), self.product.described.clone());
            tasks.spawn(async move {
                let mut placed = Vec::new();
                for (buyer_id, request) in all.iter().skip(start).step_by(CONNECTIONS) {
                    let id = Uuid::now_v7();
                    let key = id.to_string();
                    let (product_id, tenant_id) = (product.id, product.tenant_id);
                    let order = NewOrder { id, product_id, tenant_id, buyer_id: *buyer_id, request, key: &key };
                    // Each acknowledges the one before.
                    let published = placed.last().filter(|_| acknowledge == Acknowledge::Always);
                    let published: Vec<Uuid> = published.copied().into_iter().collect();
                    match place(&client, &order, &published).await.unwrap() {
                        Placed::Accepted { .. } => placed.push(id),
                        other => panic!("an order was {other:?}"),
                    }
                }
                if acknowledge == Acknowledge::Always {
                    client.execute("delete from outbox where id = $1", &[&placed.last()]).await.unwrap();
                }
                placed
            });
        }
        let mut ids = Vec::with_capacity(count);
        while let Some(ended) = tasks.join_next().await {
            ids.extend(ended.unwrap());
        }
        ids.sort_unstable();
        ids
    }

    /// The orders as events of the queue, in JSON, so many in each.
    pub(crate) fn events(&self, orders: &[Uuid], batch: usize) -> Vec<String> {
        let record = |id: &Uuid| {
            let message = chain::message(&self.product, *id);
            json!({
                "messageId": id,
                "receiptHandle": format!("AQEB{}{}", id.simple(), "x".repeat(300)),
                "body": message.body(),
                "attributes": {
                    "ApproximateReceiveCount": "1",
                    "SentTimestamp": "1795966066602",
                    "SenderId": "AROAEXAMPLEROLE:tirada-dev-orders",
                    "ApproximateFirstReceiveTimestamp": "1795966066642",
                    "MessageGroupId": message.tenant_id,
                },
                "messageAttributes": {},
                "md5OfBody": "29c2d231de1f509a92d2117c80ab1fa3",
                "eventSource": "aws:sqs",
                "eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:tirada-dev-reserve-numbers",
                "awsRegion": "us-east-1",
            })
        };
        let event = |ids: &[Uuid]| json!({ "Records": ids.iter().map(record).collect::<Vec<_>>() }).to_string();
        orders.chunks(batch).map(event).collect()
    }
}

/// Wishes of 1 to `NUMBERS_PER_ORDER` numbers. No two orders name the same number; one that a quick pick has drawn
/// before is replaced, so that every order gets as many as it asks for.
pub(crate) fn wishes(numbers: i32, count: usize, mix: Mix, rng: &mut StdRng) -> Vec<Request> {
    let mut all: Vec<i32> = (1..=numbers).collect();
    all.shuffle(rng);
    let mut left = all.as_slice();
    let mut wish = |position: usize| {
        let wanted = rng.random_range(1..=NUMBERS_PER_ORDER);
        let exact = match mix {
            Mix::Both => position.is_multiple_of(2),
            Mix::Exact => true,
            Mix::Quick => false,
        };
        if !exact {
            return seed::quick(wanted);
        }
        let (mine, rest) = left.split_at(usize::try_from(wanted).unwrap_or(0));
        left = rest;
        Request::new(mine.to_vec(), 0, Fallback::Replace).unwrap_or_else(|wrong| panic!("{wrong:?}"))
    };
    (0..count).map(&mut wish).collect()
}
