//! Payment gateways: what we ask them over HTTP, and what their webhooks say.
//!
//! Translates between the words of [`domain::payments`] and each gateway's own, once each way. Knows no table, no
//! order's state and no policy: callers record what they want before they ask, and what they heard afterwards. Adding
//! a gateway is one file for its calls, one for its answers and a branch in [`GatewayClient`].
//!
//! Secrets and bodies never get into errors or `Debug` output. Nothing here logs.

mod client;
mod credentials;
mod failure;
mod http_client;
mod limits;
mod manual;
mod mercado_pago;
mod money;
mod stripe;
#[cfg(test)]
mod test_server;
mod webhook;

pub use client::{Endpoints, GatewayClient, Gateways, NewPayment, NewRefund, PaymentGateway};
pub use credentials::{Credentials, MercadoPagoCredentials, StripeCredentials};
pub use failure::Failure;
pub use limits::{Limits, check_hold, limits};
pub use mercado_pago::MercadoPagoClient;
pub use stripe::StripeClient;
pub use webhook::{WebhookError, WebhookEvent, WebhookRequest, sign_mercado_pago, sign_stripe, verify};
