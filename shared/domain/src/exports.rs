//! What a store takes away as a file: its orders, or its numbers with their owners.
//!
//! Which columns a file has, what they are called, and how a cell becomes text that no spreadsheet takes for a formula.

mod cells;
mod headings;

pub use cells::{BYTE_ORDER_MARK, Cell, csv_line, neutral};
pub use headings::headings;

use uuid::Uuid;

/// Where the file of an export is in its bucket. An id that nobody else has, so that nothing is ever overwritten.
#[must_use]
pub fn object_key(tenant_id: Uuid, id: Uuid, format: Format) -> String {
    format!("exports/{tenant_id}/{id}.{}", format.word())
}

/// What is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Every order of a product.
    Orders,
    /// Every number of a product that is not available, with its owner.
    Numbers,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 2] = [Self::Orders, Self::Numbers];

    /// The word used in the database and in JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Orders => "orders",
            Self::Numbers => "numbers",
        }
    }

    /// The kind with this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

/// How it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Text, RFC 4180: of any length, and resumed where it stopped.
    Csv,
    /// A workbook: bounded, and written in one go.
    Xlsx,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 2] = [Self::Csv, Self::Xlsx];

    /// The word used in the database and in JSON, also the file's extension.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Xlsx => "xlsx",
        }
    }

    /// The format with this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.word() == word)
    }

    /// The media type of such a file.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv; charset=utf-8",
            Self::Xlsx => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        }
    }
}

/// Where an export is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Nobody has begun.
    Queued,
    /// Somebody writes, or will go on.
    Writing,
    /// The file is there.
    Ready,
    /// There will be no file.
    Failed,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 4] = [Self::Queued, Self::Writing, Self::Ready, Self::Failed];

    /// The word used in the database and in JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Writing => "writing",
            Self::Ready => "ready",
            Self::Failed => "failed",
        }
    }

    /// The state with this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }
}

/// Why there is no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// More rows than a workbook may have here.
    TooManyRows,
    /// One invocation was too short for a workbook, or for one part of a CSV file.
    TookTooLong,
    /// It was tried too often.
    GaveUp,
}

impl Failure {
    /// Every failure.
    pub const ALL: [Self; 3] = [Self::TooManyRows, Self::TookTooLong, Self::GaveUp];

    /// The word used in the database and in JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::TooManyRows => "too-many-rows",
            Self::TookTooLong => "took-too-long",
            Self::GaveUp => "gave-up",
        }
    }

    /// The failure with this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|failure| failure.word() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lead_back() {
        assert!(Kind::ALL.iter().all(|kind| Kind::from_word(kind.word()) == Some(*kind)));
        assert!(Format::ALL.iter().all(|format| Format::from_word(format.word()) == Some(*format)));
        assert!(State::ALL.iter().all(|state| State::from_word(state.word()) == Some(*state)));
        assert!(Failure::ALL.iter().all(|failure| Failure::from_word(failure.word()) == Some(*failure)));
        assert_eq!((Kind::from_word("buyers"), Format::from_word("pdf")), (None, None));
    }
}
