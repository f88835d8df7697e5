//! The ways a gateway does not do what it was asked, told apart by what a caller may do next.

use std::fmt;

use domain::errors::Cause;

/// Longest code of a gateway that is kept, in bytes. The documented ones have fewer than 50.
const CODE_BYTES_MAX: usize = 64;

/// Why there is no answer to act on.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// No telling whether it was done: no answer, one that says "later" or "broken", or one that cannot be read.
    /// Ask how it is, or ask the same again with the same key.
    #[error("unknown: {0}")]
    Unknown(#[source] Cause),
    /// Definite: by this attempt nobody will pay.
    #[error("declined: {code}")]
    Declined {
        /// The gateway's word for it.
        code: String,
    },
    /// Understood and not done: bad parameters, bad credentials, nothing to refund. Asking again gives the same.
    #[error("refused: {status} {code}")]
    Refused {
        /// Of the answer; 400 when it was not even asked.
        status: u16,
        /// The gateway's word for it.
        code: String,
    },
    /// The gateway says that it knows no such thing.
    #[error("not found")]
    NotFound,
    /// It may be among more payments than we look through. Asking for it again with its key tells.
    #[error("not among the payments that were looked through")]
    TooMany,
}

impl Failure {
    /// Unknown, described by words. They never quote an answer.
    pub(crate) fn unknown(what: impl fmt::Display) -> Self {
        Self::Unknown(what.to_string().into())
    }

    /// Refused here, before asking: the gateway would, or would do something else than what is meant.
    pub(crate) fn refused(code: &str) -> Self {
        Self::Refused { status: 400, code: code.to_owned() }
    }
}

/// A gateway's code as we keep it: a short word, or "unspecified". Anything else could be a message, and messages can
/// quote what was sent.
pub(crate) fn code_word(text: Option<&str>) -> String {
    let is_word =
        |text: &&str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
    let word = text.filter(|text| (1..=CODE_BYTES_MAX).contains(&text.len())).filter(is_word);
    word.unwrap_or("unspecified").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_are_kept_as_codes() {
        assert_eq!(code_word(Some("insufficient_funds")), "insufficient_funds");
        for text in [None, Some(""), Some("No such charge: 'ch_1'"), Some(&"x".repeat(65))] {
            assert_eq!(code_word(text), "unspecified");
        }
    }
}
