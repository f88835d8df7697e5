//! The operator's side of the demonstration: makes the product, watches the database, runs the auditor.

mod money;

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::catalog::{Money, NewProduct, Range};
use seed::sandbox;
use store::audit::Audit;
use store::catalog::Product;
use tokio_postgres::Client;
use uuid::Uuid;

use crate::counts::Counts;
use crate::progress::Progress;
use crate::{Options, gateway};

pub(crate) use money::Takings;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Currency of the prices.
pub(crate) const CURRENCY: &str = "BRL";
/// The seller.
const STORE: &str = "opening";

/// A sale under observation.
pub(crate) struct Sale {
    client: Client,
    product: Product,
    opens: Instant,
}

/// What both auditors say.
pub(crate) struct Verdict {
    audit: Audit,
    independent: Vec<String>,
    /// Numbers that more than one order owns.
    pub(crate) sold_twice: i64,
}

impl Verdict {
    pub(crate) fn is_clean(&self) -> bool {
        self.audit.findings.is_empty() && self.independent.is_empty() && self.sold_twice == 0
    }

    /// One line for the table.
    pub(crate) fn text(&self) -> String {
        let findings: Vec<String> = self
            .audit
            .findings
            .iter()
            .map(|f| format!("{}: {}", f.invariant, f.detail))
            .chain(self.independent.iter().cloned())
            .collect();
        if findings.is_empty() {
            format!("clean ({} numbers in {} chunks compared)", self.audit.numbers, self.audit.chunks)
        } else {
            findings.join("\n")
        }
    }
}

/// What the database says about the opening.
pub(crate) struct Measured {
    /// Longest wait of one order in the queue, seconds.
    pub(crate) longest_queue_s: f64,
    /// From the opening to the last decision, seconds.
    pub(crate) drain_s: f64,
    /// Numbers reserved.
    pub(crate) numbers: i64,
    /// Orders reserved.
    pub(crate) orders: i64,
}

/// Stock before and after the holds ran out.
pub(crate) struct Returned {
    pub(crate) total: i32,
    pub(crate) held: i32,
    pub(crate) available: i32,
    pub(crate) sold: i32,
    pub(crate) expired_orders: i64,
    pub(crate) waited: Duration,
    /// Nothing is under way any more.
    pub(crate) is_resting: bool,
}

impl Returned {
    pub(crate) fn is_complete(&self) -> bool {
        self.is_resting && self.available + self.sold == self.total
    }
}

impl Sale {
    /// Makes a product that opens in a few seconds.
    pub(crate) async fn announce(options: &Options) -> Outcome<Self> {
        let mut client = store::connect(store::Settings::from_url(&options.database_url)?).await?;
        let tenant = store::catalog::insert_store(&client, Uuid::now_v7(), STORE, "Opening").await?;
        sandbox::save(&client, tenant.id, gateway::KEY, gateway::WEBHOOK_SECRET).await?;
        let now = store::catalog::now(&client).await?;
        let opens_at = now + time::Duration::seconds(i64::from(options.opens_in));
        let described = NewProduct {
            id: Uuid::now_v7(),
            tenant_id: tenant.id,
            campaign: "opening".into(),
            name: format!("Opening of {} numbers", options.numbers),
            range: Range { first: 0, count: options.numbers },
            padding: 6,
            price: Money { minor: 1_000, currency: CURRENCY.into() },
            opens_at,
            closes_at: opens_at + time::Duration::hours(1),
            zone: "America/Sao_Paulo".into(),
            hold_seconds: options.hold.into(),
            numbers_per_order_max: 20,
            numbers_per_buyer_max: 20,
        };
        store::catalog::insert_product(&mut client, &described).await?;
        sandbox::sell(&client, tenant.id, described.id).await?;
        let product = store::catalog::require_product(&client, described.id).await?;
        // The crowd's clock starts from the database's: whoever asks earlier is early for real.
        let left = (opens_at - store::catalog::now(&client).await?).try_into().unwrap_or(Duration::ZERO);
        Ok(Self { client, product, opens: Instant::now() + left })
    }

    /// Where the gateway's events about the sale go.
    pub(crate) fn webhook_url(options: &Options) -> String {
        format!("{}/v1/webhooks/sandbox/{STORE}", options.api_url.trim_end_matches('/'))
    }

    pub(crate) fn product_id(&self) -> Uuid {
        self.product.described.id
    }

    pub(crate) fn tenant_id(&self) -> Uuid {
        self.product.described.tenant_id
    }

    pub(crate) fn opens(&self) -> Instant {
        self.opens
    }

    /// Shows progress until every buyer has finished; returns the most connections that were open at once.
    pub(crate) async fn watch(
        &self,
        progress: &mut Progress,
        counts: &Arc<Counts>,
        options: &Options,
        patience: Duration,
    ) -> Outcome<i64> {
        let mut most = 0;
        let sql = "select (select count(*) from pg_stat_activity where datname = current_database() and usename = 'tirada_app') - 1,
            (select count(*) from orders where product_key = $1 and state = 'queued')";
        while Counts::get(&counts.finished) < u64::from(options.buyers) && self.opens.elapsed() < patience {
            let row =
                self.client.query_typed_one(sql, &[(&self.product.key, tokio_postgres::types::Type::INT4)]).await?;
            most = most.max(row.get::<_, i64>(0));
            let line = format!(
                "accepted {}, queued {}, reserved {}, paid {}, refused {}, buyers finished {} of {}",
                Counts::get(&counts.accepted),
                row.get::<_, i64>(1),
                Counts::get(&counts.reserved),
                Counts::get(&counts.payments.in_time),
                counts.refusals().values().sum::<u64>(),
                Counts::get(&counts.finished),
                options.buyers
            );
            progress.show(line);
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        Ok(most)
    }

    /// Both auditors, over everything.
    pub(crate) async fn audit(&mut self) -> Outcome<Verdict> {
        let independent = auditor::findings_in(&mut self.client, auditor::Expect::UnderWay).await;
        self.verdict(independent).await
    }

    async fn verdict(&mut self, independent: Vec<String>) -> Outcome<Verdict> {
        let audit = store::audit::product(&mut self.client, &self.product).await?;
        let sql = "select count(*) from (
            select number from orders, unnest(numbers) as number
            where product_key = $1 and state in ('reserved', 'paying', 'paid')
            group by number having count(*) > 1) as twice";
        let row = self.client.query_typed_one(sql, &[(&self.product.key, tokio_postgres::types::Type::INT4)]).await?;
        Ok(Verdict { audit, independent, sold_twice: row.get(0) })
    }

    /// Queue times, from the orders' own history.
    pub(crate) async fn measure(&self) -> Outcome<Measured> {
        let sql = "select coalesce(extract(epoch from max(e.at - o.created_at)), 0)::float8,
                coalesce(extract(epoch from max(e.at) - min(p.opens_at)), 0)::float8,
                coalesce(sum(cardinality(o.numbers)) filter (where e.to_state = 'reserved'), 0)::int8,
                count(*) filter (where e.to_state = 'reserved')
            from orders o join order_events e on e.order_id = o.id and e.version = 2 join products p on p.id = o.product_id
            where o.product_key = $1";
        let row = self.client.query_typed_one(sql, &[(&self.product.key, tokio_postgres::types::Type::INT4)]).await?;
        Ok(Measured { longest_queue_s: row.get(0), drain_s: row.get(1), numbers: row.get(2), orders: row.get(3) })
    }
}
