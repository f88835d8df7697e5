//! What can be asked of a gateway, and of which one.

use domain::payments::{CaptureMode, Gateway, Method, Observed, ObservedRefund};
use domain::{Error, Result};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::http_client::{Http, Timing};
use crate::mercado_pago::MercadoPagoClient;
use crate::stripe::{Crowds, StripeClient};
use crate::{Credentials, Failure, StripeCredentials, manual};

/// Base addresses, without a slash at the end.
#[derive(Debug, Clone)]
pub struct Endpoints {
    /// Stripe's API.
    pub stripe: String,
    /// Mercado Pago's API.
    pub mercado_pago: String,
    /// The pretended gateway; none where nobody may pay with nothing.
    pub sandbox: Option<String>,
}

impl Default for Endpoints {
    /// The public ones, and no sandbox.
    fn default() -> Self {
        Self {
            stripe: "https://api.stripe.com".to_owned(),
            mercado_pago: "https://api.mercadopago.com".to_owned(),
            sandbox: None,
        }
    }
}

/// The way to every gateway: one HTTP client for all stores. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Gateways {
    http: Http,
    endpoints: Endpoints,
    crowds: Crowds,
}

impl Gateways {
    /// A client that connects within 2 s, waits for an answer for 5 s and gives an operation 8 s with its repetitions.
    ///
    /// # Errors
    /// [`Error::Fault`] when TLS cannot be set up.
    pub fn new(endpoints: Endpoints) -> Result<Self> {
        Self::with_timing(endpoints, Timing::default())
    }

    pub(crate) fn with_timing(endpoints: Endpoints, timing: Timing) -> Result<Self> {
        Ok(Self { http: Http::new(timing)?, endpoints, crowds: Crowds::default() })
    }

    /// The gateway of an account.
    ///
    /// # Errors
    /// [`Error::Fault`] for the sandbox where there is none, and for a key that cannot be sent.
    pub fn client(&self, credentials: &Credentials) -> Result<GatewayClient> {
        let stripe = |base: &str, account: &StripeCredentials| {
            StripeClient::new(self.http.clone(), base, &account.secret_key, &self.crowds)
        };
        match credentials {
            Credentials::Stripe(account) => stripe(&self.endpoints.stripe, account).map(GatewayClient::Stripe),
            Credentials::Sandbox(account) => {
                let base = self.endpoints.sandbox.as_ref().ok_or_else(|| Error::fault("there is no sandbox here"))?;
                stripe(base, account).map(GatewayClient::Sandbox)
            }
            Credentials::MercadoPago(account) => {
                let base = &self.endpoints.mercado_pago;
                MercadoPagoClient::new(self.http.clone(), base, &account.access_token).map(GatewayClient::MercadoPago)
            }
            Credentials::Manual => Ok(GatewayClient::Manual),
        }
    }
}

/// A payment to be made. Everything comes from the recorded attempt, so that a repeated request is the same.
#[derive(Debug, Clone, Copy)]
pub struct NewPayment<'a> {
    /// Ours; the gateway keeps it as the reference.
    pub attempt_id: Uuid,
    /// What it pays for.
    pub order_id: Uuid,
    /// Whose sale it is.
    pub tenant_id: Uuid,
    /// The idempotency key, at most 255 bytes.
    pub key: &'a str,
    /// Minor units.
    pub amount_minor: i64,
    /// ISO 4217 code.
    pub currency: &'a str,
    /// How the buyer pays.
    pub method: Method,
    /// When money is taken.
    pub capture: CaptureMode,
    /// When the hold ends. What the gateway is told is half an hour later ([`limits`](crate::limits())).
    pub expires_at: OffsetDateTime,
    /// What the buyer reads, at most 250 characters.
    pub description: &'a str,
    /// Where the gateway's page sends the buyer afterwards; needed for a checkout.
    pub return_url: Option<&'a str>,
    /// The buyer's address, if they gave one.
    pub payer_email: Option<&'a str>,
}

/// A refund to be made.
#[derive(Debug, Clone, Copy)]
pub struct NewRefund<'a> {
    /// Ours; the gateway keeps it where it can.
    pub refund_id: Uuid,
    /// Minor units.
    pub amount_minor: i64,
    /// ISO 4217 code of the payment.
    pub currency: &'a str,
    /// The idempotency key, at most 255 bytes.
    pub key: &'a str,
}

/// What every gateway can be asked. No call may be made inside a database transaction.
pub trait PaymentGateway {
    /// Makes a payment, or finds the one that the same key has made.
    fn create(&self, new: &NewPayment<'_>) -> impl Future<Output = Result<Observed, Failure>> + Send;

    /// How a payment is, with its refunds and disputes.
    fn fetch(&self, payment_id: &str) -> impl Future<Output = Result<Observed, Failure>> + Send;

    /// The payment of an attempt, by our reference; none when the gateway definitely has none that could still be
    /// paid. `created_after` is a moment before it can have been made, differing clocks considered.
    fn find(
        &self,
        attempt_id: Uuid,
        created_after: OffsetDateTime,
    ) -> impl Future<Output = Result<Option<Observed>, Failure>> + Send;

    /// Takes authorised money. Answers how the payment is afterwards: captured, also if it had been before, or ended.
    fn capture(
        &self,
        payment_id: &str,
        amount_minor: i64,
        key: &str,
    ) -> impl Future<Output = Result<Observed, Failure>> + Send;

    /// Makes sure that a payment is never paid. Answers how it is afterwards: cancelled, or paid, or still on its way.
    fn void(&self, payment_id: &str, key: &str) -> impl Future<Output = Result<Observed, Failure>> + Send;

    /// Gives money back.
    fn refund(
        &self,
        payment_id: &str,
        refund: &NewRefund<'_>,
    ) -> impl Future<Output = Result<ObservedRefund, Failure>> + Send;
}

/// The gateway of one account.
#[derive(Debug, Clone)]
pub enum GatewayClient {
    /// Stripe.
    Stripe(StripeClient),
    /// Mercado Pago.
    MercadoPago(MercadoPagoClient),
    /// The pretended gateway.
    Sandbox(StripeClient),
    /// Staff.
    Manual,
}

impl GatewayClient {
    /// Which it is.
    #[must_use]
    pub fn gateway(&self) -> Gateway {
        match self {
            Self::Stripe(_) => Gateway::Stripe,
            Self::MercadoPago(_) => Gateway::MercadoPago,
            Self::Sandbox(_) => Gateway::Sandbox,
            Self::Manual => Gateway::Manual,
        }
    }
}

/// What staff booked is in our rows and nowhere else, so there is nothing to find, to take or to call off.
impl PaymentGateway for GatewayClient {
    async fn create(&self, new: &NewPayment<'_>) -> Result<Observed, Failure> {
        if !self.gateway().serves(new.method) {
            return Err(Failure::refused("method"));
        }
        match self {
            Self::Stripe(client) | Self::Sandbox(client) => client.create(new).await,
            Self::MercadoPago(client) => client.create(new).await,
            Self::Manual => Ok(manual::booked(new)),
        }
    }

    async fn fetch(&self, payment_id: &str) -> Result<Observed, Failure> {
        match self {
            Self::Stripe(client) | Self::Sandbox(client) => client.fetch(payment_id).await,
            Self::MercadoPago(client) => client.fetch(payment_id).await,
            Self::Manual => Err(Failure::NotFound),
        }
    }

    async fn find(&self, attempt_id: Uuid, created_after: OffsetDateTime) -> Result<Option<Observed>, Failure> {
        match self {
            Self::Stripe(client) | Self::Sandbox(client) => client.find(attempt_id, created_after).await,
            Self::MercadoPago(client) => client.find(attempt_id, created_after).await,
            Self::Manual => Ok(None),
        }
    }

    async fn capture(&self, payment_id: &str, amount_minor: i64, key: &str) -> Result<Observed, Failure> {
        match self {
            Self::Stripe(client) | Self::Sandbox(client) => client.capture(payment_id, amount_minor, key).await,
            Self::MercadoPago(client) => client.capture(payment_id, amount_minor, key).await,
            Self::Manual => Err(Failure::NotFound),
        }
    }

    async fn void(&self, payment_id: &str, key: &str) -> Result<Observed, Failure> {
        match self {
            Self::Stripe(client) | Self::Sandbox(client) => client.void(payment_id, key).await,
            Self::MercadoPago(client) => client.void(payment_id, key).await,
            Self::Manual => Err(Failure::NotFound),
        }
    }

    async fn refund(&self, payment_id: &str, refund: &NewRefund<'_>) -> Result<ObservedRefund, Failure> {
        match self {
            Self::Stripe(client) | Self::Sandbox(client) => client.refund(payment_id, refund).await,
            Self::MercadoPago(client) => client.refund(payment_id, refund).await,
            Self::Manual => Ok(manual::refunded(refund)),
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::payments::{AttemptState, RefundState};
    use time::macros::datetime;

    use super::*;
    use crate::test_server::{ATTEMPT, new_payment};

    const STRIPE: &[u8] = br#"{"secret_key": "sk_test_51", "webhook_secrets": ["whsec_1"]}"#;

    #[test]
    fn nobody_pays_with_nothing_where_there_is_no_sandbox() {
        let credentials = Credentials::parse(Gateway::Sandbox, STRIPE).unwrap();
        let gateways = Gateways::new(Endpoints::default()).unwrap();
        assert!(matches!(gateways.client(&credentials), Err(Error::Fault(_))));
        let endpoints = Endpoints { sandbox: Some("http://127.0.0.1:1".to_owned()), ..Endpoints::default() };
        let client = Gateways::new(endpoints).unwrap().client(&credentials).unwrap();
        assert_eq!(client.gateway(), Gateway::Sandbox);
        assert!(!format!("{client:?}").contains("sk_test"), "{client:?}");
    }

    #[tokio::test]
    async fn what_staff_book_is_paid_at_once() {
        let client = Gateways::new(Endpoints::default()).unwrap().client(&Credentials::Manual).unwrap();
        let booked = client.create(&new_payment(Method::Manual)).await.unwrap();
        assert_eq!((booked.state, booked.captured_minor), (AttemptState::Captured, 1_050));
        assert_eq!(booked.payment_id, format!("manual-{ATTEMPT}"));
        let refund = NewRefund { refund_id: Uuid::from_u128(9), amount_minor: 50, currency: "BRL", key: "k" };
        assert_eq!(client.refund(&booked.payment_id, &refund).await.unwrap().state, RefundState::Succeeded);
        assert!(matches!(client.fetch(&booked.payment_id).await, Err(Failure::NotFound)));
        assert!(matches!(client.void(&booked.payment_id, "k").await, Err(Failure::NotFound)));
        assert_eq!(client.find(ATTEMPT, datetime!(2020-01-01 00:00:00 UTC)).await.unwrap(), None);
        let card = client.create(&new_payment(Method::Card)).await;
        assert!(matches!(card, Err(Failure::Refused { .. })));
    }
}
