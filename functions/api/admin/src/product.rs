//! A product as staff see and describe it.

use domain::Reason;
use domain::catalog::{self, NewProduct, Range};
use edge::Problem;
use edge::http::Money;
use serde::{Deserialize, Serialize};
use store::catalog::Product;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

/// An amount of money as requests have it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Price {
    /// Minor units, as text: cents for most currencies.
    #[schema(pattern = "^[0-9]{1,13}$", example = "1000")]
    amount: String,
    /// ISO 4217.
    #[schema(pattern = "^[A-Z]{3}$", example = "BRL")]
    currency: String,
}

impl Price {
    pub(crate) fn money(&self) -> Result<catalog::Money, Problem> {
        let is_plain = self.amount.bytes().all(|byte| byte.is_ascii_digit());
        let minor = self.amount.parse().ok().filter(|_| is_plain);
        let wrong = || Problem::new(Reason::Invalid).with_error("/price/amount", "must be digits: minor units");
        Ok(catalog::Money { minor: minor.ok_or_else(wrong)?, currency: self.currency.clone() })
    }
}

/// How long a seller wants numbers to be held, in seconds.
pub(crate) fn hold(seconds: i32) -> Result<i32, Problem> {
    let wrong = || Problem::new(Reason::Invalid).with_error("/hold_seconds", "must be 60 seconds to 7 days");
    catalog::is_hold(seconds).then_some(seconds).ok_or_else(wrong)
}

/// A product with everything that only staff see.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StoreProduct {
    /// Its id.
    id: Uuid,
    /// Its name for people.
    name: String,
    /// Label under which metrics are grouped.
    campaign: String,
    /// Price of one number.
    price: Money,
    /// The smallest number.
    first: i32,
    /// How many numbers there are.
    count: i32,
    /// Digits of a printed number.
    padding: i16,
    /// First instant of the sale.
    #[serde(with = "time::serde::rfc3339")]
    opens_at: OffsetDateTime,
    /// First instant after the sale.
    #[serde(with = "time::serde::rfc3339")]
    closes_at: OffsetDateTime,
    /// IANA name of the zone in which the seller thinks.
    zone: String,
    /// How long reserved numbers wait for their payment.
    hold_seconds: i32,
    /// Most numbers in one order.
    numbers_per_order_max: i32,
    /// Most numbers in one buyer's hands.
    numbers_per_buyer_max: i32,
    /// Its own switch: `open` or `paused`.
    #[schema(value_type = String, example = "open")]
    intake: &'static str,
    /// Whether its numbers may change hands: `on` or `halted`.
    #[schema(value_type = String, example = "on")]
    reserving: &'static str,
    /// Grows with every change; the ETag of the product alone.
    version: i64,
}

impl From<Product> for StoreProduct {
    fn from(product: Product) -> Self {
        let NewProduct { range: Range { first, count }, .. } = product.described;
        Self {
            id: product.described.id,
            name: product.described.name,
            campaign: product.described.campaign,
            price: product.described.price.into(),
            first,
            count,
            padding: product.described.padding,
            opens_at: product.described.opens_at,
            closes_at: product.described.closes_at,
            zone: product.described.zone,
            hold_seconds: product.described.hold_seconds,
            numbers_per_order_max: product.described.numbers_per_order_max,
            numbers_per_buyer_max: product.described.numbers_per_buyer_max,
            intake: product.intake.word(),
            reserving: product.reserving.word(),
            version: product.version,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_digits() {
        let price = |amount: &str| Price { amount: amount.into(), currency: "EUR".into() }.money();
        assert_eq!(price("1000").unwrap().minor, 1_000);
        for bad in ["", "-1", "+1", "1.5", "1e3", "99999999999999999999"] {
            assert_eq!(price(bad).unwrap_err().code(), "invalid", "{bad}");
        }
    }
}
