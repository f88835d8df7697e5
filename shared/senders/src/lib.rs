//! Who sends messages to phones, and who sends mail: Amazon's services, or a file on a developer's machine.
//!
//! Knows neither what is sent nor why, and does not try again: that is for whoever remembers what is owed.

pub mod mail;
pub mod phone;

use domain::Error;

/// Why a message was not sent, as far as anybody knows.
#[derive(Debug)]
pub struct Unsent {
    /// What went wrong.
    pub error: Error,
    /// No answer came: the message may have left all the same.
    pub may_have_left: bool,
}

impl Unsent {
    /// It has certainly not left.
    const fn surely(error: Error) -> Self {
        Self { error, may_have_left: false }
    }
}
