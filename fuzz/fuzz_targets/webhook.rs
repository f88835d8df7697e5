//! `gateways::verify` with raw bytes: unsigned, nothing is an event; signed, anything is an event or unreadable, and
//! nothing panics.

#![no_main]

use domain::payments::Gateway;
use gateways::{Credentials, WebhookError, WebhookRequest, sign_mercado_pago, sign_stripe, verify};
use http::{HeaderMap, HeaderValue};
use libfuzzer_sys::fuzz_target;
use secrecy::SecretString;
use time::macros::datetime;

const NOW: time::OffsetDateTime = datetime!(2023-11-14 22:13:20 UTC);
const SECRET: &str = "whsec_1";
const STRIPE: &[u8] = br#"{"secret_key": "sk_test_1", "webhook_secrets": ["whsec_1"]}"#;
const MERCADO_PAGO: &[u8] = br#"{"access_token": "TEST-1", "webhook_secrets": ["whsec_1"]}"#;

fuzz_target!(|input: (&[u8], &str, &[u8])| {
    let (header, query, body) = input;
    let secret = SecretString::from(SECRET);
    let data_id = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "data.id");
    let data_id = data_id.map(|(_, id)| id.trim().to_owned()).filter(|id| !id.is_empty());
    let signed = [
        (Gateway::Stripe, STRIPE, "stripe-signature", sign_stripe(&secret, NOW, body)),
        (Gateway::MercadoPago, MERCADO_PAGO, "x-signature", sign_mercado_pago(&secret, NOW, data_id.as_deref(), None)),
    ];
    for (gateway, account, name, signature) in signed {
        let account = Credentials::parse(gateway, account).expect("an account");
        let ask = |header: HeaderValue| {
            let headers = HeaderMap::from_iter([(name.parse().expect("a name"), header)]);
            verify(&account, &WebhookRequest { headers: &headers, query, body, now: NOW })
        };
        if let Ok(header) = HeaderValue::from_bytes(header) {
            assert!(ask(header).is_err(), "nobody has signed it");
        }
        let event = ask(HeaderValue::from_str(&signature).expect("a header"));
        assert!(matches!(event, Ok(_) | Err(WebhookError::Unreadable)), "{event:?}");
    }
});
