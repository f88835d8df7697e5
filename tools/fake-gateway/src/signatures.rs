//! How gateways sign their events, read from their documentation.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The value of `Stripe-Signature`: HMAC-SHA256 of the time in seconds, a point and the raw body.
#[must_use]
pub fn stripe(secret: &str, at_seconds: i64, body: &str) -> String {
    format!("t={at_seconds},v1={}", hmac(secret, &format!("{at_seconds}.{body}")))
}

/// The value of Mercado Pago's `x-signature`: HMAC-SHA256 of the id in the query, the request's id and the time. The
/// body is not signed. Letters of the id count in lower case.
#[must_use]
pub fn mercado_pago(secret: &str, data_id: &str, request_id: &str, ts: i64) -> String {
    let manifest = format!("id:{};request-id:{request_id};ts:{ts};", data_id.to_lowercase());
    format!("ts={ts},v1={}", hmac(secret, &manifest))
}

fn hmac(secret: &str, text: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("a key of any length");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231, test case 2.
    #[test]
    fn hmac_is_the_standard_one() {
        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(hmac("Jefe", "what do ya want for nothing?"), expected);
    }

    /// Values computed with another implementation of HMAC.
    #[test]
    fn headers_have_the_documented_form() {
        assert_eq!(
            stripe("whsec_test_secret", 1_700_000_000, r#"{"id":"evt_1","object":"event"}"#),
            "t=1700000000,v1=0c8670ed117751cc551a20e35839447075c42800ea3cf3e8a2fbda99cd1e6edd"
        );
        assert_eq!(
            mercado_pago("mp_test_secret", "123456789", "req-1", 1_704_908_010),
            "ts=1704908010,v1=015f215b8ecc3331f2aee145e1e92bc5f5e05b5110b5f465eb594b10c13b5f1f"
        );
    }
}
