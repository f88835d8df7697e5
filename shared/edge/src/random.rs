//! Randomness that nobody can foresee.

use aws_lc_rs::rand;
use domain::{Error, Result};
use uuid::Uuid;

/// A random UUID (version 4): unlike UUIDv7 it says nothing, not even when it was made.
///
/// # Errors
/// A fault when there is no randomness.
pub fn uuid() -> Result<Uuid> {
    Ok(uuid::Builder::from_random_bytes(bytes()?).into_uuid())
}

/// So many random bytes.
///
/// # Errors
/// A fault when there is no randomness.
pub fn bytes<const COUNT: usize>() -> Result<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    rand::fill(&mut bytes).map_err(|_| Error::fault("no randomness"))?;
    Ok(bytes)
}
