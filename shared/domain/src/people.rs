//! What people are called.

use std::fmt;

use crate::limits::NAME_CHARS_MAX;
use crate::text::is_name;

/// The name of a person, as somebody wrote it. Not shown by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Name(String);

impl Name {
    /// Reads a name: 1 to `NAME_CHARS_MAX` characters on one line, blanks around it left out, none of them hidden.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        is_name(text, NAME_CHARS_MAX).then(|| Self(text.to_owned()))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Name")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_line_of_some_length() {
        for good in ["A", "Núñez da Conceição", "李", "O'Neill-Ørsted", &"a".repeat(NAME_CHARS_MAX)] {
            assert_eq!(Name::parse(&format!("  {good} ")).unwrap().as_str(), good);
        }
        for bad in ["", "   ", "a\nb", "a\u{0}", "\u{200b}", "a\u{202e}b", &"a".repeat(NAME_CHARS_MAX + 1)] {
            assert_eq!(Name::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_name_is_never_shown_by_accident() {
        assert_eq!(format!("{:?}", Name::parse("A person")), "Some(Name)");
    }
}
