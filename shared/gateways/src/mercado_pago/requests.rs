//! Bodies for Mercado Pago. The same attempt gives the same bytes; amounts are decimal texts all the way.

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;
use time::UtcOffset;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use uuid::Uuid;

use crate::limits::AFTER_HOLD;
use crate::money::{decimal, digits};
use crate::{Failure, NewPayment, NewRefund};

/// As documented, `yyyy-MM-dd'T'HH:mm:ss.SSSz`; theirs name the offset in digits.
const TIME: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]+00:00");

#[derive(Serialize)]
struct NewPix<'a> {
    transaction_amount: Box<RawValue>,
    description: &'a str,
    payment_method_id: &'static str,
    external_reference: Uuid,
    date_of_expiration: String,
    metadata: Metadata,
    payer: Payer,
}

#[derive(Serialize)]
struct Metadata {
    attempt_id: Uuid,
    order_id: Uuid,
    tenant_id: Uuid,
}

#[derive(Serialize)]
struct Payer {
    email: String,
}

#[derive(Serialize)]
struct Capture {
    transaction_amount: Box<RawValue>,
    capture: bool,
}

#[derive(Serialize)]
struct Amount {
    amount: Box<RawValue>,
}

/// `POST /v1/payments` for a Pix.
pub(super) fn payment(new: &NewPayment<'_>) -> Result<Bytes, Failure> {
    let expires_at = (new.expires_at + AFTER_HOLD).to_offset(UtcOffset::UTC);
    bytes(&NewPix {
        transaction_amount: amount(new.amount_minor, new.currency)?,
        description: new.description,
        payment_method_id: "pix",
        external_reference: new.attempt_id,
        date_of_expiration: expires_at.format(TIME).map_err(|_| Failure::refused("expires_at"))?,
        metadata: Metadata { attempt_id: new.attempt_id, order_id: new.order_id, tenant_id: new.tenant_id },
        // An address is required. Nobody reads mail at the reserved domain.
        payer: Payer {
            email: new.payer_email.map_or_else(|| format!("{}@example.com", new.attempt_id.simple()), str::to_owned),
        },
    })
}

/// `PUT /v1/payments/{id}`, to take authorised money.
pub(super) fn capture(amount_minor: i64, currency: &str) -> Result<Bytes, Failure> {
    bytes(&Capture { transaction_amount: amount(amount_minor, currency)?, capture: true })
}

/// `PUT /v1/payments/{id}`, to call a payment off.
pub(super) fn cancel() -> Bytes {
    Bytes::from_static(br#"{"status":"cancelled"}"#)
}

/// `POST /v1/payments/{id}/refunds`.
pub(super) fn refund(refund: &NewRefund<'_>) -> Result<Bytes, Failure> {
    bytes(&Amount { amount: amount(refund.amount_minor, refund.currency)? })
}

fn amount(minor: i64, currency: &str) -> Result<Box<RawValue>, Failure> {
    let text = decimal(minor, digits(&currency.to_ascii_uppercase()));
    RawValue::from_string(text).map_err(|_| Failure::refused("amount"))
}

fn bytes(body: &impl Serialize) -> Result<Bytes, Failure> {
    serde_json::to_vec(body).map(Bytes::from).map_err(|_| Failure::refused("parameters"))
}
