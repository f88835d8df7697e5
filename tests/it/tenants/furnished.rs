//! Stores that have something of everything, and a digest of all that a store has.

use std::collections::BTreeMap;

use domain::roles::Role;
use store::catalog::Product;
use store::payments::RefundRequest;
use tests::chain::Chain;
use tests::http::Buyer;
use tests::notices::log_in;
use tests::seed::{self, exact, product};
use tests::staff::{Member, hire};
use tests::{TestDatabase, operator, randomness};
use tokio_postgres::Client;
use uuid::Uuid;

/// A number that the store's order owns.
pub(crate) const NUMBER: i32 = 7;

/// A store with a row in every table that has a tenant.
pub(crate) struct Furnished {
    pub(crate) tenant_id: Uuid,
    pub(crate) product: Product,
    pub(crate) buyer: Buyer,
    pub(crate) phone: String,
    /// Paid, and a part of it about to be refunded.
    pub(crate) order: Uuid,
    pub(crate) attempt: Uuid,
    pub(crate) refund: Uuid,
    /// The owner.
    pub(crate) member: Member,
    pub(crate) export: Uuid,
    pub(crate) upload: Uuid,
}

impl Furnished {
    pub(crate) async fn new(database: &TestDatabase, tenant_id: Uuid, phone: &str) -> Self {
        let owner = database.owner();
        let member = hire(database, tenant_id, Role::Owner).await;
        let buyer = Buyer::new(tenant_id);
        log_in(database, tenant_id, buyer.id, phone).await;
        let product = product(tenant_id, 100).insert(&mut database.another_owner().await).await;
        let order = seed::order(owner, &product, buyer.id, &exact(&[NUMBER, NUMBER + 1])).await;
        let chain = Chain::new(database, 1, 10, randomness::seed());
        chain.put(&product, order);
        chain.reserve().await;
        seed::pay_in_cash(database, &product, order).await;
        let attempt = owner.query_one("select id from payment_attempts where order_id = $1", &[&order]).await.unwrap();
        let refund = Uuid::now_v7();
        let numbers = [NUMBER + 1];
        let request =
            RefundRequest { tenant_id, order_id: order, numbers: Some(&numbers), note: "a test", refund_id: refund };
        operator::refund(&mut database.app_client().await, &request).await.unwrap();
        let furnished = Self {
            tenant_id,
            product,
            buyer,
            phone: phone.into(),
            order,
            attempt: attempt.get(0),
            refund,
            member,
            export: Uuid::now_v7(),
            upload: Uuid::now_v7(),
        };
        owner.batch_execute(&furnished.rest()).await.unwrap();
        furnished
    }

    /// What no request of a test has made yet.
    fn rest(&self) -> String {
        let Self { tenant_id, order, attempt, export, upload, phone, .. } = self;
        let (product_id, buyer_id, staff_id) = (self.product.described.id, self.buyer.id, self.member.id);
        format!(
            "insert into disputes (id, tenant_id, order_id, attempt_id, gateway_dispute_id, amount_minor, state)
                values (gen_random_uuid(), '{tenant_id}', '{order}', '{attempt}', 'du_{order}', 1, 'open');
            insert into inbox (tenant_id, gateway, event_id, kind, processed_at)
                values ('{tenant_id}', 'stripe', 'evt_1', 'payment', now());
            insert into gateway_accounts (tenant_id, gateway, sealed)
                values ('{tenant_id}', 'stripe', decode(repeat('00', 29), 'hex'));
            insert into login_codes (id, tenant_id, phone, language, key_id, expires_at, look_at)
                values (gen_random_uuid(), '{tenant_id}', '{phone}', 'es', '1', now() + interval '5 minutes', now());
            insert into sessions (id, tenant_id, buyer_id, device_id, expires_at)
                values (gen_random_uuid(), '{tenant_id}', '{buyer_id}', gen_random_uuid(), now() + interval '1 hour');
            insert into staff_links (id, tenant_id, staff_id, purpose, hash, expires_at)
                values (gen_random_uuid(), '{tenant_id}', '{staff_id}', 'sign-in', sha256(uuid_send('{staff_id}')),
                    now() + interval '1 hour');
            insert into exports (id, tenant_id, product_id, staff_id, kind, format, language, state, finished_at,
                    expires_at)
                values ('{export}', '{tenant_id}', '{product_id}', '{staff_id}', 'orders', 'csv', 'en', 'ready', now(),
                    now() + interval '1 hour');
            insert into uploads (id, tenant_id, staff_id, media_type, expires_at, look_at)
                values ('{upload}', '{tenant_id}', '{staff_id}', 'image/png', now() + interval '5 minutes',
                    now() + interval '6 minutes');
            insert into audit_log (id, tenant_id, staff_id, action, subject, subject_id)
                values (gen_random_uuid(), '{tenant_id}', '{staff_id}', 'edit_product', 'product', '{product_id}');
            insert into idempotency_keys (tenant_id, subject_id, route, key, fingerprint, status)
                values ('{tenant_id}', '{buyer_id}', 'cancel', 'key', decode(repeat('00', 32), 'hex'), 202);"
        )
    }

    /// Ids of what it has.
    pub(crate) fn ids(&self) -> [Uuid; 9] {
        let (product, member) = (self.product.described.id, &self.member);
        [
            product,
            self.order,
            self.attempt,
            self.refund,
            self.buyer.id,
            member.id,
            member.session_id,
            self.export,
            self.upload,
        ]
    }
}

/// Every table that has something of a store, with how many rows and a digest of them.
pub(crate) async fn digest(client: &Client, tenant_id: Uuid) -> BTreeMap<String, (i64, String)> {
    let sql = "select c.relname::text, a.attname::text from pg_class c join pg_attribute a on a.attrelid = c.oid
        where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace and not a.attisdropped
            and (a.attname in ('tenant_id', 'product_key')
                or c.relname = 'order_events' and a.attname = 'order_id'
                or c.relname = 'tenants' and a.attname = 'id')";
    let mut digest = BTreeMap::new();
    for row in client.query(sql, &[]).await.unwrap() {
        let (table, column): (String, String) = (row.get(0), row.get(1));
        let of_store = match column.as_str() {
            "tenant_id" | "id" => "select id from tenants where id = $1",
            "product_key" => "select key from products where tenant_id = $1",
            _ => "select id from orders where tenant_id = $1",
        };
        let sql = format!(
            "select count(*), coalesce(md5(string_agg(t::text, ';' order by t::text)), '') from {table} t
            where t.{column} in ({of_store})"
        );
        let row = client.query_one(&sql, &[&tenant_id]).await.unwrap();
        digest.insert(format!("{table}.{column}"), (row.get(0), row.get(1)));
    }
    digest
}
