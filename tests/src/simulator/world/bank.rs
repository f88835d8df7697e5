//! A world's payment gateway: the stores that it serves, and its events on their way to the API.

use store::catalog::Product;

use super::World;
use crate::gateway::{Account, Dialect};
use crate::seed::{self, ProductBuilder};
use crate::server::{Reply, Request, Server};
use crate::simulator::gateway::{Gateway, HttpRequest};
use crate::till::{Policy, STRIPE_KEY, open_accounts, slug_of};

/// Takes a gateway's events and passes them to the API.
pub(super) async fn webhooks(api: Gateway) -> Server {
    Server::start(move |request| {
        let api = api.clone();
        async move { pass_on(&api, request).await }
    })
    .await
}

async fn pass_on(api: &Gateway, request: Request) -> Reply {
    let Request { path, headers, body, .. } = request;
    let body = String::from_utf8_lossy(&body).into_owned();
    let answer = api.send(HttpRequest { method: "POST", path, headers: headers.into_iter().collect(), body }).await;
    Reply { status: answer.status, ..Reply::default() }
}

impl World {
    /// A product of so many numbers at 2.50 BRL each, in a store of its own that can be paid by both gateways.
    pub async fn sell(
        &self,
        count: i32,
        policy: Policy,
        make: impl FnOnce(ProductBuilder) -> ProductBuilder,
    ) -> Product {
        let mut owner = self.database.another_owner().await;
        let tenant_id = seed::store(&owner).await;
        let product = make(seed::product(tenant_id, count).price(250, "BRL")).insert(&mut owner).await;
        policy.apply(&owner, &product).await;
        let slug = slug_of(&owner, tenant_id).await;
        let client = self.database.app_client().await;
        let base = format!("http://{}", self.webhooks.address());
        open_accounts(&client, tenant_id, &format!("-{slug}"), &self.bank, &base, &slug).await;
        product
    }

    /// From now on the gateway signs new events of a store's cards with another secret.
    pub fn sign_events_with(&self, product: &Product, secret: &str) {
        let (dialect, slug) = (Dialect::Stripe, &product.store);
        let webhook_url = format!("http://{}/v1/webhooks/{}/{slug}", self.webhooks.address(), dialect.name());
        let key = format!("{STRIPE_KEY}-{slug}");
        self.bank.add_account(Account { dialect, key, webhook_url, webhook_secret: secret.to_owned() });
    }
}
