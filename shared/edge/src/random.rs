//! Randomness that nobody can foresee.

use aws_lc_rs::rand;
use domain::{Error, Result};
use uuid::Uuid;

/// A random UUID (version 4): unlike UUIDv7 it says nothing, not even when it was made.
///
/// # Errors
/// A fault when there is no randomness.
pub fn uuid() -> Result<Uuid> {
    let mut bytes = [0; 16];
    rand::fill(&mut bytes).map_err(|_| Error::fault("no randomness"))?;
    Ok(uuid::Builder::from_random_bytes(bytes).into_uuid())
}
