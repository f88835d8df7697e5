//! Everything Postgres: one module per context, one function per statement.
//!
//! Owns the SQL, the lock order and the translation of database errors. Knows nothing of HTTP, SQS or AWS.
//!
//! Every writer locks in one order: orders (ascending id), number_chunks (ascending), buyer_holdings (ascending
//! buyer), taken_numbers, payment_attempts, refunds, notices, outbox, login_limits; who logs in, sells or forgets,
//! login_codes and buyers before them. Statements are sent typed and unnamed, because a transaction pooler breaks named
//! ones and RDS Proxy pins a session for them.

pub mod acts;
pub mod audit;
pub mod catalog;
pub mod erasing;
mod errors;
pub mod exports;
pub mod findings;
pub mod health;
pub mod idempotency;
pub mod login;
pub mod migrations;
pub mod notices;
pub mod numbers;
pub mod orders;
pub mod outbox;
pub mod payments;
mod pool;
pub mod products;
pub mod prune;
mod rows;
pub mod staff;
pub mod stores;
pub mod switches;
pub mod uploads;

pub use errors::{constraint_of, from_postgres};
pub use pool::{Client, Database, PasswordSource, Settings, Tls, connect};

/// The parameter types of the statements, under the names that SQL gives them.
pub(crate) mod types {
    pub(crate) use tokio_postgres::types::Type;

    pub(crate) const BOOL: Type = Type::BOOL;
    pub(crate) const BYTEA: Type = Type::BYTEA;
    pub(crate) const BYTEAS: Type = Type::BYTEA_ARRAY;
    pub(crate) const FLOAT8: Type = Type::FLOAT8;
    pub(crate) const FLOAT8S: Type = Type::FLOAT8_ARRAY;
    pub(crate) const INT2: Type = Type::INT2;
    pub(crate) const INT4: Type = Type::INT4;
    pub(crate) const INT4S: Type = Type::INT4_ARRAY;
    pub(crate) const INT8: Type = Type::INT8;
    pub(crate) const INT8S: Type = Type::INT8_ARRAY;
    pub(crate) const TEXT: Type = Type::TEXT;
    pub(crate) const TEXTS: Type = Type::TEXT_ARRAY;
    pub(crate) const TIMESTAMPTZ: Type = Type::TIMESTAMPTZ;
    pub(crate) const UUID: Type = Type::UUID;
    pub(crate) const UUIDS: Type = Type::UUID_ARRAY;
}
