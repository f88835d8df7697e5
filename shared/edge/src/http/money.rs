//! Amounts of money as JSON has them.

use domain::catalog;
use serde::Serialize;
use utoipa::ToSchema;

/// An amount of money.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Money {
    /// Minor units, as text: cents for most currencies. Text, because JSON numbers lose digits in some readers.
    #[schema(example = "1000")]
    amount: String,
    /// ISO 4217.
    #[schema(example = "BRL")]
    currency: String,
}

impl Money {
    /// ISO 4217 code.
    #[must_use]
    pub fn currency(&self) -> &str {
        &self.currency
    }
}

impl From<catalog::Money> for Money {
    fn from(money: catalog::Money) -> Self {
        Self { amount: money.minor.to_string(), currency: money.currency }
    }
}
