//! Cells, and lines of them as text.
//!
//! A CSV file has no types: the program that opens one guesses, and takes what begins with `=` for a formula. So a text
//! that could be taken for one gets an apostrophe in front, and so does a text that has one of its own: whoever reads a
//! file takes one leading apostrophe off and has what was stored. A workbook needs none of it, because its cells say
//! that they are text.

use std::borrow::Cow;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// What a CSV file begins with, or spreadsheets read its letters in an alphabet of their own.
pub const BYTE_ORDER_MARK: &str = "\u{feff}";

/// What a formula begins with, and the same signs in their wide and small forms.
const ACTIVE: [char; 12] = ['=', '+', '-', '@', '＝', '＋', '－', '＠', '﹦', '﹢', '﹣', '﹫'];

/// One cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    /// Text that somebody chose, or that must stay as it is: zeros in front, a plus sign.
    Text(String),
    /// A whole number to count with.
    Whole(i64),
    /// A moment.
    Moment(OffsetDateTime),
    /// Nothing.
    Empty,
}

impl Cell {
    /// Text, or nothing.
    #[must_use]
    pub fn text(text: Option<&str>) -> Self {
        text.map_or(Self::Empty, |text| Self::Text(text.to_owned()))
    }

    /// A moment, or nothing.
    #[must_use]
    pub fn moment(moment: Option<OffsetDateTime>) -> Self {
        moment.map_or(Self::Empty, Self::Moment)
    }

    /// The cell as text, before it is made harmless. Moments are RFC 3339 in UTC, to the second.
    #[must_use]
    pub fn plain(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Whole(number) => Cow::Owned(number.to_string()),
            Self::Moment(moment) => {
                let whole = moment.to_offset(time::UtcOffset::UTC).replace_nanosecond(0).unwrap_or(*moment);
                // Only years beyond 9999 have no such form.
                Cow::Owned(whole.format(&Rfc3339).unwrap_or_default())
            }
            Self::Empty => Cow::Borrowed(""),
        }
    }
}

/// Whether a spreadsheet could take a text for something to compute, whatever cannot be seen stands in front.
fn is_active(text: &str) -> bool {
    let blank = |c: char| c.is_whitespace() || c.is_control() || is_unseen(c);
    // A tab or a line's end in front has moved formulas into the next cell before.
    text.starts_with(['\t', '\r', '\n', '\'']) || text.trim_start_matches(blank).starts_with(ACTIVE)
}

/// Whether a sign that is no space shows nothing: what Unicode lets a program ignore by default (UAX 44,
/// `Default_Ignorable_Code_Point`, 17.0), and signs that are drawn as a blank or mark text without being drawn.
const fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
        | '\u{2800}' | '\u{fff9}'..='\u{fffb}' | '\u{16fe4}' | '\u{1d159}')
}

/// A text that no spreadsheet computes: with an apostrophe in front if it could be active, or has one already.
#[must_use]
pub fn neutral(text: &str) -> Cow<'_, str> {
    if is_active(text) { Cow::Owned(format!("'{text}")) } else { Cow::Borrowed(text) }
}

/// Adds a line of a CSV file: every cell in quotes, CRLF at the end. Numbers that are ours to count with cannot be
/// active, a minus sign in front or not.
pub fn csv_line(out: &mut String, cells: &[Cell]) {
    for (index, cell) in cells.iter().enumerate() {
        let plain = cell.plain();
        let safe = if matches!(cell, Cell::Text(_)) { neutral(&plain) } else { Cow::Borrowed(&*plain) };
        out.push_str(if index == 0 { "\"" } else { ",\"" });
        out.push_str(&safe.replace('"', "\"\""));
        out.push('"');
    }
    out.push_str("\r\n");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_could_be_computed_is_not() {
        for active in [
            "=1+1",
            "+34600000001",
            "-1",
            "@SUM(A1)",
            "\tx",
            "\rx",
            "\nx",
            "  =1",
            "\u{200f}=1",
            "\u{202e}\t+1",
            "＝1",
            "﹦1",
            "'=1",
            "'",
        ] {
            assert_eq!(neutral(active), format!("'{active}"));
        }
        for harmless in ["", "a=1", "000042", "1-2", "a@b", "\u{200f}a", "A raffle", "\"=1"] {
            assert_eq!(neutral(harmless), harmless);
        }
    }

    #[test]
    fn nothing_unseen_in_front_hides_a_formula() {
        let unseen = [
            '\u{a0}',
            '\u{ad}',
            '\u{34f}',
            '\u{61c}',
            '\u{115f}',
            '\u{1160}',
            '\u{1680}',
            '\u{17b4}',
            '\u{180b}',
            '\u{180e}',
            '\u{180f}',
            '\u{2003}',
            '\u{200b}',
            '\u{202f}',
            '\u{2060}',
            '\u{2064}',
            '\u{206f}',
            '\u{2800}',
            '\u{3000}',
            '\u{3164}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{ffa0}',
            '\u{fff0}',
            '\u{fffa}',
            '\u{16fe4}',
            '\u{1bca0}',
            '\u{1d159}',
            '\u{1d173}',
            '\u{e0001}',
            '\u{e007f}',
            '\u{e0fff}',
        ];
        for c in unseen {
            for active in [format!("{c}=1+1"), format!("{c}{c} @SUM(A1)"), format!(" {c}＋1")] {
                assert_eq!(neutral(&active), format!("'{active}"), "U+{:04X}", u32::from(c));
            }
            assert_eq!(neutral(&format!("{c}a=1")), format!("{c}a=1"), "U+{:04X}", u32::from(c));
        }
        let all: String = unseen.into_iter().collect();
        assert!(neutral(&format!("{all}=1")).starts_with('\''), "any number of them");
    }

    #[test]
    fn a_line_is_quoted_and_keeps_zeros() {
        let at = OffsetDateTime::UNIX_EPOCH + time::Duration::milliseconds(1_500);
        let text = |text: &str| Cell::Text(text.to_owned());
        let words = ["000042", "+34600000001", "a \"b\"\nc"].map(text);
        let cells = [&words[..], &[Cell::Whole(-7), Cell::Moment(at), Cell::Empty]].concat();
        let mut line = String::new();
        csv_line(&mut line, &cells);
        assert_eq!(line, "\"000042\",\"'+34600000001\",\"a \"\"b\"\"\nc\",\"-7\",\"1970-01-01T00:00:01Z\",\"\"\r\n");
    }

    proptest! {
        #[test]
        fn one_apostrophe_less_is_what_was_stored(text in ".*") {
            let safe = neutral(&text).into_owned();
            prop_assert!(!safe.starts_with(ACTIVE) && !safe.starts_with(['\t', '\r', '\n']));
            prop_assert_eq!(safe.strip_prefix('\'').unwrap_or(&safe), text.as_str());
        }
    }
}
