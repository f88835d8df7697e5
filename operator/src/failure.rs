//! What did not work, and the exit code that says which kind it was.

use std::process::ExitCode;

use domain::{Error, Reason};
use edge::ConfigError;
use serde_json::json;

use crate::output::say;

/// Why a command ended early.
#[derive(Debug)]
pub struct Failure {
    kind: Kind,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Usage,
    Refused,
    Busy,
    Fault,
}

impl Failure {
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self { kind: Kind::Usage, text: text.into() }
    }

    pub(crate) fn refused(text: impl Into<String>) -> Self {
        Self { kind: Kind::Refused, text: text.into() }
    }

    pub(crate) fn busy(text: impl Into<String>) -> Self {
        Self { kind: Kind::Busy, text: text.into() }
    }

    pub(crate) fn fault(text: impl Into<String>) -> Self {
        Self { kind: Kind::Fault, text: text.into() }
    }

    /// Instead of the reason's own sentence, one that fits the command.
    pub(crate) fn explained(error: Error, reason: Reason, text: impl Into<String>) -> Self {
        match error {
            Error::Rejected(found) if found == reason => Self::refused(text),
            other => other.into(),
        }
    }

    fn word(&self) -> &'static str {
        match self.kind {
            Kind::Usage => "usage",
            Kind::Refused => "refused",
            Kind::Busy => "busy",
            Kind::Fault => "fault",
        }
    }

    /// The exit code.
    #[must_use]
    pub fn code(&self) -> u8 {
        match self.kind {
            Kind::Usage => 2,
            Kind::Refused => 3,
            Kind::Busy => 4,
            Kind::Fault => 5,
        }
    }

    /// Writes the failure to standard error.
    #[must_use]
    pub fn print(&self, as_json: bool) -> ExitCode {
        if as_json {
            say(json!({"error": {"kind": self.word(), "message": self.text}}));
        } else {
            say(format_args!("tirada: {}", self.text));
        }
        self.code().into()
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let kind = match error {
            Error::Rejected(reason) => {
                let kind = if reason == Reason::Busy { Kind::Busy } else { Kind::Refused };
                return Self { kind, text: format!("{} ({})", reason.title(), reason.code()) };
            }
            Error::Busy(_) => Kind::Busy,
            Error::Fault(_) => Kind::Fault,
        };
        Self { kind, text: error.chain() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_exit_code() {
        let codes = [
            Failure::usage("x").code(),
            Failure::from(Error::from(Reason::NotFound)).code(),
            Failure::from(Error::busy("x")).code(),
            Failure::from(Error::from(Reason::Busy)).code(),
            Failure::from(Error::fault("x")).code(),
        ];
        assert_eq!(codes, [2, 3, 4, 4, 5]);
    }

    #[test]
    fn only_the_expected_reason_is_explained() {
        let explained = |error| Failure::explained(error, Reason::NotFound, "there is no product x").text;
        assert_eq!(explained(Reason::NotFound.into()), "there is no product x");
        assert_eq!(explained(Reason::OutOfRange.into()), "A number is outside the product's range (out-of-range)");
    }
}
