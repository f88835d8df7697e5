//! Panics of one request, record or order, kept away from the process and its neighbours.
//!
//! Needs `panic = "unwind"`. The panic itself is logged once, by the hook that [`crate::telemetry::init`] sets: whoever
//! catches it only decides what to answer.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;

/// Something panicked; what and where is in the log already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a panic was caught")]
pub struct Panicked;

/// Runs a future to its end, or to its panic.
///
/// State that the future shares with others must not be left half changed by a panic; a database transaction is fine,
/// because dropping it rolls it back.
///
/// # Errors
/// [`Panicked`].
pub async fn caught<T>(future: impl Future<Output = T>) -> Result<T, Panicked> {
    AssertUnwindSafe(future).catch_unwind().await.map_err(|_| Panicked)
}

/// As [`caught`], for code that does not wait.
///
/// # Errors
/// [`Panicked`].
pub fn caught_sync<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    std::panic::catch_unwind(AssertUnwindSafe(work)).map_err(|_| Panicked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_becomes_a_value() {
        assert_eq!(caught(async { 1 }).await, Ok(1));
        assert_eq!(caught::<()>(async { panic!("on purpose") }).await, Err(Panicked));
        assert_eq!(caught_sync::<()>(|| panic!("on purpose")), Err(Panicked));
    }
}
