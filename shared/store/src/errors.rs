//! Database errors in the words of the domain.

use deadpool_postgres::PoolError;
use domain::Error;
use domain::errors::Cause;
use tokio_postgres::error::{DbError, SqlState};

/// What a database error means for the caller: try again, or a fault.
///
/// Named constraints that mean a rejection are matched at the call site with [`constraint_of`] before this is used.
#[must_use]
pub fn from_postgres(error: tokio_postgres::Error) -> Error {
    let again = match error.code() {
        Some(code) => is_transient(code),
        // No answer from the server: the connection broke, timed out or was never made.
        None => {
            error.is_closed() || std::error::Error::source(&error).is_some_and(|source| source.is::<std::io::Error>())
        }
    };
    let cause: Cause = match error.as_db_error() {
        Some(said) => said_by_the_server(said).into(),
        None => Box::new(error),
    };
    if again { Error::Busy(cause) } else { Error::Fault(cause) }
}

/// What the server said, for the log. Without its detail, which quotes rows and keys: phones, names and addresses.
pub(crate) fn said_by_the_server(error: &DbError) -> String {
    format!("db error: {}: {} ({})", error.severity(), error.message(), error.code().code())
}

/// What a failed borrow means for the caller.
#[must_use]
pub(crate) fn from_pool(error: PoolError) -> Error {
    match error {
        PoolError::Backend(error) => from_postgres(error),
        PoolError::Timeout(_) | PoolError::Closed => Error::Busy(Box::new(error)),
        PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => Error::Fault(Box::new(error)),
    }
}

/// The name of the constraint that a statement violated.
#[must_use]
pub fn constraint_of(error: &tokio_postgres::Error) -> Option<&str> {
    error.as_db_error().and_then(DbError::constraint)
}

/// Whether the statement lost a race for a lock: another writer holds what it needs.
pub(crate) fn is_lock_timeout(error: &tokio_postgres::Error) -> bool {
    matches!(error.code(), Some(code) if *code == SqlState::LOCK_NOT_AVAILABLE || *code == SqlState::T_R_DEADLOCK_DETECTED)
}

fn is_transient(code: &SqlState) -> bool {
    let class = &code.code()[..2];
    // 08 connection, 53 resources, 57 operator intervention (restart, timeout), 40 rollback (deadlock, serialization),
    // 28 who we are: a password that was changed a moment ago, or a token that was made a moment too early. Others have
    // the new one already, and this environment is about to be replaced.
    matches!(class, "08" | "53" | "57" | "40" | "28")
        || *code == SqlState::LOCK_NOT_AVAILABLE
        // A replica answers while a failover is under way.
        || *code == SqlState::READ_ONLY_SQL_TRANSACTION
}
