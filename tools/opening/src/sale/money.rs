//! The sale's money: what staff give back, when it has come to rest, and what the gateway and the orders say about it.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use domain::roles::Action;
use fake_gateway::Ledger;
use store::acts::{NewAct, Subject};
use store::payments::{RefundRequest, request_refund};
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::{Outcome, Returned, Sale, Verdict};
use crate::gateway::Gateway;
use crate::progress::Progress;

/// How often is looked whether everything has come to rest.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The sale's money at rest, minor units.
pub(crate) struct Takings {
    /// Taken, as the gateway says.
    pub(crate) captured_minor: i64,
    /// Given back, as the gateway says.
    pub(crate) refunded_minor: i64,
    /// What the gateway keeps of it for the store.
    pub(crate) kept_minor: i64,
    /// Payments that took money.
    pub(crate) payments: usize,
    /// Numbers that are sold.
    pub(crate) sold: i64,
    /// What they cost.
    pub(crate) price_minor: i64,
}

impl Takings {
    /// Whether the gateway keeps exactly the price of what is sold.
    pub(crate) fn is_balanced(&self) -> bool {
        self.kept_minor == self.price_minor && self.captured_minor - self.refunded_minor == self.kept_minor
    }
}

/// The audit entry of a refund that the platform's operator asks for.
const fn refund_of(request: &RefundRequest<'_>) -> NewAct {
    NewAct {
        tenant_id: request.tenant_id,
        staff_id: None,
        action: Action::RefundOrder,
        subject: Subject::Order,
        subject_id: request.order_id,
        detail: None,
        reason: None,
        keyed: None,
    }
}

impl Sale {
    /// Staff give some paid orders back, `orders_max` at most: every second one its first number only. How many.
    pub(crate) async fn refund_some(&mut self, orders_max: i64) -> Outcome<usize> {
        let sql = "select id, numbers from orders where product_key = $1 and state = 'paid' order by id limit $2";
        let params: [(&(dyn tokio_postgres::types::ToSql + Sync), _); 2] =
            [(&self.product.key, Type::INT4), (&orders_max, Type::INT8)];
        let rows = self.client.query_typed(sql, &params).await?;
        for (row, position) in rows.iter().zip(0..) {
            let numbers: Vec<i32> = row.get(1);
            let request = RefundRequest {
                tenant_id: self.tenant_id(),
                order_id: row.get(0),
                numbers: (position % 2 == 1).then(|| &numbers[..1]),
                note: "sold by mistake",
                refund_id: Uuid::now_v7(),
            };
            request_refund(&mut self.client, &request, &refund_of(&request)).await?;
        }
        Ok(rows.len())
    }

    /// Waits until every order has ended, every payment is decided and every late buyer is done; `patience` at most.
    pub(crate) async fn wait_for_rest(
        &self,
        progress: &mut Progress,
        gateway: &Gateway,
        are_buyers_done: impl Fn() -> bool,
        patience: Duration,
    ) -> Outcome<Returned> {
        let started = Instant::now();
        let total = self.product.described.range.count;
        let counters = || async {
            let found = store::catalog::find_availability(&self.client, self.product.key).await;
            found.map(|availability| availability.counters)
        };
        let held = counters().await?.reserved;
        loop {
            let (moving, pending) = (self.moving().await?, gateway.webhooks().await?.pending);
            let is_resting = moving == 0 && pending == 0 && are_buyers_done();
            let now = counters().await?;
            if is_resting || started.elapsed() > patience {
                let sql = "select count(*) from orders where product_key = $1 and state = 'expired'";
                let expired_orders = self.count(sql).await?;
                let (available, sold) = (now.available, now.paid);
                let waited = started.elapsed();
                return Ok(Returned { total, held, available, sold, expired_orders, waited, is_resting });
            }
            progress.show(format!("{} numbers still held, {} sold", now.reserved, now.paid));
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// What somebody has yet to do something about: orders, payments, refunds, events and messages.
    async fn moving(&self) -> Outcome<i64> {
        self.count(
            "select (select count(*) from orders
                    where product_key = $1 and state in ('queued', 'reserved', 'paying', 'refunding'))
                + (select count(*) from payment_attempts a join orders o on o.id = a.order_id
                    where o.product_key = $1 and (a.state in ('created', 'open', 'processing', 'authorised')
                        or (a.state = 'captured' and a.used is null)))
                + (select count(*) from refunds r join orders o on o.id = r.order_id
                    where o.product_key = $1 and r.state in ('created', 'pending'))
                + (select count(*) from inbox i join products p on p.tenant_id = i.tenant_id
                    where p.key = $1 and i.processed_at is null)
                + (select count(*) from outbox x join products p on p.id = x.product_id where p.key = $1)",
        )
        .await
    }

    async fn count(&self, sql: &str) -> Outcome<i64> {
        Ok(self.client.query_typed_one(sql, &[(&self.product.key, Type::INT4)]).await?.get(0))
    }

    /// The auditors over a system at rest, the gateway's ledger included.
    pub(crate) async fn audit_at_rest(&mut self, ledger: &Ledger) -> Outcome<Verdict> {
        let independent = auditor::imbalances_in(&mut self.client, ledger).await;
        self.verdict(independent).await
    }

    /// What the gateway and the orders say about the sale's money.
    pub(crate) async fn takings(&self, ledger: &Ledger) -> Outcome<Takings> {
        let sql = "select o.id::text from orders o where o.product_key = $1";
        let rows = self.client.query_typed(sql, &[(&self.product.key, Type::INT4)]).await?;
        let orders: HashSet<String> = rows.iter().map(|row| row.get(0)).collect();
        let ours = |order_id: &Option<String>| order_id.as_ref().is_some_and(|id| orders.contains(id));
        let payments: Vec<_> =
            ledger.payments.iter().filter(|one| one.captured_minor > 0 && ours(&one.order_id)).collect();
        let sql = "select coalesce(sum(sold), 0)::int8, coalesce(sum(sold * unit_price_minor), 0)::int8 from (
            select unit_price_minor, cardinality(numbers) - cardinality(coalesce(given_up, '{}')) as sold
            from orders where product_key = $1 and state = 'paid') as paid";
        let row = self.client.query_typed_one(sql, &[(&self.product.key, Type::INT4)]).await?;
        Ok(Takings {
            captured_minor: payments.iter().map(|payment| payment.captured_minor).sum(),
            refunded_minor: payments.iter().map(|payment| payment.refunded_minor()).sum(),
            kept_minor: payments.iter().map(|payment| payment.kept_minor()).sum(),
            payments: payments.len(),
            sold: row.get(0),
            price_minor: row.get(1),
        })
    }
}
