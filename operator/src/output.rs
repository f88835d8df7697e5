//! What a command found, for people and for scripts.

use std::process::ExitCode;
use std::time::Duration;

use comfy_table::{Table, presets};
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A finished command.
#[derive(Debug)]
pub struct Output {
    text: String,
    json: Value,
    code: u8,
}

impl Output {
    pub(crate) fn new(text: impl Into<String>, json: Value) -> Self {
        Self { text: text.into(), json, code: 0 }
    }

    /// Exit code 1 when something is wrong.
    pub(crate) fn wrong_if(self, wrong: bool) -> Self {
        Self { code: u8::from(wrong), ..self }
    }

    /// What scripts read.
    #[must_use]
    pub fn json(&self) -> &Value {
        &self.json
    }

    /// The exit code.
    #[must_use]
    pub fn code(&self) -> u8 {
        self.code
    }

    /// Writes the result to standard output.
    #[must_use]
    pub fn print(&self, as_json: bool) -> ExitCode {
        if as_json {
            println!("{}", self.json)
        } else {
            println!("{}", self.text)
        }
        self.code.into()
    }
}

/// A table without borders.
pub(crate) fn table<const COLUMNS: usize>(header: [&str; COLUMNS], rows: Vec<[String; COLUMNS]>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header).add_rows(rows);
    table.column_iter_mut().for_each(|column| {
        column.set_padding((0, 2));
    });
    table.trim_fmt()
}

/// An instant in UTC, to the second.
pub(crate) fn instant(at: OffsetDateTime) -> String {
    at.replace_nanosecond(0).unwrap_or(at).format(&Rfc3339).unwrap_or_default()
}

/// A length of time as people say it.
pub(crate) fn age(age: Option<Duration>) -> String {
    let Some(age) = age else { return "-".into() };
    let seconds = age.as_secs();
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds / 60),
        7_200..=172_799 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// An amount in the smallest units of its currency.
pub(crate) fn minor(amount_minor: i64, currency: &str) -> String {
    format!("{amount_minor} {currency} (minor units)")
}

/// What is there, or a dash.
pub(crate) fn or_dash<T: std::fmt::Display>(value: Option<T>) -> String {
    value.map_or_else(|| "-".into(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        let of = |seconds| age(Some(Duration::from_secs(seconds)));
        assert_eq!([0, 119, 120, 7_199, 7_200, 172_800].map(of), ["0 s", "119 s", "2 min", "119 min", "2 h", "2 d"]);
        assert_eq!(age(None), "-");
    }

    #[test]
    fn tables_have_no_trailing_blanks() {
        let text = table(["a", "b"], vec![["1".into(), String::new()], ["22".into(), "x".into()]]);
        assert_eq!(text.lines().collect::<Vec<_>>(), ["a   b", "1", "22  x"]);
    }
}
