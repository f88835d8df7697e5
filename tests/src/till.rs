//! A store that can be paid: a product, the fake gateway, the real functions that take money, and a clock that a test
//! moves.
//!
//! The gateway's events arrive over HTTP at the real webhook handler, whose messages wait in the queue until the test
//! runs the settling worker.

use std::sync::Arc;
use std::time::Duration;

use cashier::Cashier;
use domain::orders::Request;
use edge::Stage;
use edge::sealing::{DEVELOPMENT_KEYS, SealingKeys, context};
use gateways::{Endpoints, Gateways};
use serde_json::{Value, json};
use store::catalog::Product;
use store::payments::save_account;
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::chain::Chain;
use crate::gateway::{Account, Dialect, FakeGateway, ViolationKind};
use crate::http::{self, Answer, Api, Buyer, Serving};
use crate::seed::{self, ProductBuilder};
use crate::simulator::time;
use crate::{TestDatabase, auditor, look};

/// The store's key at the Stripe-like gateway.
pub const STRIPE_KEY: &str = "sk_test_till";
/// What that gateway signs its events with.
pub const STRIPE_SECRET: &str = "whsec_till";
/// The store's token at the Mercado-Pago-like gateway.
pub const MERCADO_PAGO_TOKEN: &str = "TEST-till";
/// What that gateway signs its events with.
pub const MERCADO_PAGO_SECRET: &str = "mp-secret-till";

/// Turns of jobs and workers after which everything must have come to rest.
const TURNS: usize = 40;

/// How the product treats money.
#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// When money is taken: `automatic` or `manual`.
    pub capture: &'static str,
    /// What to do with late money: `retake`, `substitute` or `refund`.
    pub late_money: &'static str,
    /// Whether a buyer keeps numbers whose money a dispute took away.
    pub keeps_disputed: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self { capture: "automatic", late_money: "retake", keeps_disputed: false }
    }
}

impl Policy {
    /// Makes a product's money be treated so, by both gateways and by hand.
    pub(crate) async fn apply(self, owner: &Client, product: &Product) {
        let sql = "update products set gateways = '{stripe,mercado-pago,manual}', capture = $2, late_money = $3,
            keeps_disputed = $4 where id = $1";
        let params: [&(dyn ToSql + Sync); 4] =
            [&product.described.id, &self.capture, &self.late_money, &self.keeps_disputed];
        owner.execute(sql, &params).await.unwrap();
    }
}

/// The store.
pub struct Till {
    /// Its database.
    pub database: TestDatabase,
    /// Its product.
    pub product: Product,
    /// With whom it is paid.
    pub gateway: FakeGateway,
    /// Workers and jobs.
    pub chain: Chain,
    /// Who asks the gateway.
    pub cashier: Cashier,
    /// An environment of `payments`.
    pub payments: Api,
    /// An environment of `orders`.
    pub orders: Api,
    /// An environment of `order-status`.
    pub status: Api,
    /// An environment of `payment-webhook`.
    pub webhook: Api,
    slug: String,
    _serving: Serving,
}

impl Till {
    /// A store with a product of a thousand numbers at 2.50 BRL each.
    pub async fn open(policy: Policy) -> Self {
        Self::sell(policy, |product| product).await
    }

    /// A store with a product of its own making.
    pub async fn sell(policy: Policy, make: impl FnOnce(ProductBuilder) -> ProductBuilder) -> Self {
        let database = TestDatabase::new().await;
        let mut owner = database.another_owner().await;
        let tenant_id = seed::store(&owner).await;
        let product = make(seed::product(tenant_id, 1_000).price(250, "BRL")).insert(&mut owner).await;
        policy.apply(&owner, &product).await;
        let slug = slug_of(&owner, tenant_id).await;
        let gateway = FakeGateway::start().await;
        let cashier = new_cashier(&database, &gateway);
        let chain = Chain::new(&database, 2, 10, crate::randomness::seed()).with_cashier(cashier.clone());
        let queue = Arc::clone(&chain.queues) as Arc<dyn edge::queue::MessageQueue>;
        let webhook = http::payment_webhook(database.app(2), cashier.clone(), Arc::clone(&queue));
        let serving = webhook.serve().await;
        let client = database.app_client().await;
        open_accounts(&client, tenant_id, "", &gateway, &format!("http://{}", serving.address), &slug).await;
        Self {
            payments: http::payments(database.app(2), cashier.clone()),
            orders: http::orders(database.app(1), queue),
            status: http::order_status(database.app(1)),
            database,
            product,
            gateway,
            chain,
            cashier,
            webhook,
            slug,
            _serving: serving,
        }
    }

    /// Starts the workers anew: they remember no credentials.
    #[must_use]
    pub fn restart_workers(mut self) -> Self {
        self.cashier = new_cashier(&self.database, &self.gateway);
        self.chain = self.chain.with_cashier(self.cashier.clone());
        self
    }

    /// Saves the store's Stripe credentials.
    pub async fn save_stripe(&self, secret_key: &str, webhook_secrets: &[&str]) {
        let keys = SealingKeys::from_json(DEVELOPMENT_KEYS, Stage::Local).unwrap();
        let (tenant_id, stripe) = (self.product.described.tenant_id, domain::payments::Gateway::Stripe);
        let credentials = json!({ "secret_key": secret_key, "webhook_secrets": webhook_secrets }).to_string();
        let sealed = keys.seal(&context(tenant_id, stripe), credentials.as_bytes()).unwrap();
        save_account(&self.database.app_client().await, tenant_id, stripe, &sealed).await.unwrap();
    }

    /// A new buyer.
    #[must_use]
    pub fn buyer(&self) -> Buyer {
        Buyer::new(self.product.described.tenant_id)
    }

    /// The store.
    #[must_use]
    pub const fn tenant_id(&self) -> Uuid {
        self.product.described.tenant_id
    }

    /// Where a gateway's events go.
    #[must_use]
    pub fn webhook_path(&self, dialect: Dialect) -> String {
        format!("/v1/webhooks/{}/{}", dialect.name(), self.slug)
    }

    /// An order of a buyer that holds its numbers.
    pub async fn reserve(&self, buyer: &Buyer, request: &Request) -> Uuid {
        let id = seed::order(&self.database.app_client().await, &self.product, buyer.id, request).await;
        self.chain.put(&self.product, id);
        self.chain.reserve().await;
        self.is(id, "reserved").await;
        id
    }

    /// Asks to pay.
    pub async fn pay(&self, buyer: &Buyer, order_id: Uuid, key: &str, method: &str) -> Answer {
        let body = json!({ "method": method, "return_url": "https://store.example/orders" }).to_string();
        buyer.pay(&self.payments, order_id, key, body).await
    }

    /// Asks to pay and gets instructions; the attempt.
    pub async fn open_payment(&self, buyer: &Buyer, order_id: Uuid, key: &str, method: &str) -> Uuid {
        let answer = self.pay(buyer, order_id, key, method).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
        answer.json()["id"].as_str().unwrap().parse().unwrap()
    }

    /// Waits for the gateway's events and settles everything that is waiting.
    pub async fn settle(&self) {
        assert!(self.gateway.settle().await, "the gateway does not come to rest");
        self.chain.settle().await;
    }

    /// Lets time pass, here and at the gateway.
    pub async fn pass(&self, time: Duration) {
        time::pass(&mut self.database.another_owner().await, time).await;
        self.gateway.advance(time);
    }

    /// Runs jobs and workers until nothing moves, letting time pass in between, but no hold end.
    pub async fn rest(&self) {
        for _ in 0..TURNS {
            self.settle().await;
            self.chain.expire().await;
            // What is due later is due now; holds and ages stay as they are.
            for sql in [
                "update payment_attempts set look_at = now(), created_at = created_at - interval '1 minute'
                    where look_at is not null and state <> 'captured'",
                "update refunds set look_at = now(), created_at = created_at - interval '1 minute' where look_at is not null",
                "update inbox set look_at = now() where processed_at is null",
                "update outbox set next_attempt_at = now()",
            ] {
                self.database.owner().execute(sql, &[]).await.unwrap();
            }
            self.chain.reconcile().await;
            self.settle().await;
            self.chain.release().await;
            assert!(self.gateway.settle().await, "the gateway does not come to rest");
            if self.moving().await == 0 {
                return;
            }
        }
        panic!("{} things are still moving", self.moving().await);
    }

    /// Attempts without an answer, refunds that are not over, unread events and owed messages.
    async fn moving(&self) -> i64 {
        let sql =
            "select (select count(*) from payment_attempts where state in ('created', 'processing', 'authorised'))
            + (select count(*) from refunds where state in ('created', 'pending'))
            + (select count(*) from inbox where processed_at is null) + (select count(*) from outbox)
            + (select count(*) from orders where state = 'reserved' and cancel_requested_at is not null)";
        look::count(&self.database, sql).await
    }

    /// Comes to rest, and asks the auditor about this database and the gateway's ledger.
    pub async fn finish(self) {
        self.finish_despite(&[]).await;
    }

    /// As [`Till::finish`], where the gateway rightly complains of these: its dashboard acts behind our back.
    pub async fn finish_despite(self, expected: &[ViolationKind]) {
        self.rest().await;
        assert!(self.gateway.settle().await, "the gateway does not come to rest");
        let mut ledger = self.gateway.ledger();
        ledger.violations.retain(|violation| !expected.contains(&violation.kind));
        auditor::assert_balanced(&self.database, &ledger).await;
        let mut client = self.database.app_client().await;
        let audit = store::audit::product(&mut client, &self.product).await.unwrap();
        assert_eq!(audit.findings, [], "the operator's audit");
        let Self { database, .. } = self;
        database.finish().await;
    }

    /// Asserts the state of an order.
    pub async fn is(&self, order_id: Uuid, state: &str) {
        let order = look::order(&self.database, order_id).await;
        assert_eq!(order.state.word(), state, "{order:?}");
    }

    /// The order as its buyer sees it.
    pub async fn seen(&self, buyer: &Buyer, order_id: Uuid) -> Value {
        let answer = buyer.read(&self.status, order_id).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }

    /// What the gateway keeps of an order's money, minor units.
    #[must_use]
    pub fn kept(&self, order_id: Uuid) -> i64 {
        let of = |payment: &&crate::gateway::PaymentEntry| payment.order_id == Some(order_id.to_string());
        self.gateway.ledger().payments.iter().filter(of).map(crate::gateway::PaymentEntry::kept_minor).sum()
    }
}

fn new_cashier(database: &TestDatabase, gateway: &FakeGateway) -> Cashier {
    let endpoints = Endpoints {
        stripe: gateway.url(Dialect::Stripe),
        mercado_pago: gateway.url(Dialect::MercadoPago),
        sandbox: Some(gateway.url(Dialect::Stripe)),
    };
    let keys = SealingKeys::from_json(DEVELOPMENT_KEYS, Stage::Local).unwrap();
    Cashier::new(database.app(4), Gateways::new(endpoints).unwrap(), keys)
}

/// The address of a store.
pub(crate) async fn slug_of(owner: &Client, tenant_id: Uuid) -> String {
    owner.query_one("select slug from tenants where id = $1", &[&tenant_id]).await.unwrap().get(0)
}

/// Gives a store accounts at both gateways, whose events go below `base`. The mark makes its keys its own.
pub(crate) async fn open_accounts(
    client: &Client,
    tenant_id: Uuid,
    mark: &str,
    gateway: &FakeGateway,
    base: &str,
    slug: &str,
) {
    let sealing = SealingKeys::from_json(DEVELOPMENT_KEYS, Stage::Local).unwrap();
    for (dialect, name, key, secret) in [
        (Dialect::Stripe, "secret_key", STRIPE_KEY, STRIPE_SECRET),
        (Dialect::MercadoPago, "access_token", MERCADO_PAGO_TOKEN, MERCADO_PAGO_SECRET),
    ] {
        let key = format!("{key}{mark}");
        let known = domain::payments::Gateway::from_word(dialect.name()).unwrap();
        let credentials = json!({ name: key, "webhook_secrets": [secret] }).to_string();
        let sealed = sealing.seal(&context(tenant_id, known), credentials.as_bytes()).unwrap();
        save_account(client, tenant_id, known, &sealed).await.unwrap();
        let webhook_url = format!("{base}/v1/webhooks/{}/{slug}", dialect.name());
        gateway.add_account(Account { dialect, key, webhook_url, webhook_secret: secret.into() });
    }
}
