//! What a command found, for people and for scripts.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write, stderr, stdout};
use std::process::ExitCode;
use std::time::Duration;

use comfy_table::{Table, presets};
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::failure::Failure;

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

    /// Writes the result to standard output. Who closes it has read enough; a result that cannot be written is a fault.
    #[must_use]
    pub fn print(&self, as_json: bool) -> ExitCode {
        let line: &dyn Display = if as_json { &self.json } else { &self.text };
        match write_line(stdout().lock(), line) {
            Ok(()) => self.code.into(),
            Err(error) => {
                let text = format!("it is done, but the result cannot be written: {error}");
                Failure::fault(text).print(as_json)
            }
        }
    }
}

/// Writes a line, all of it, unless its reader has gone away.
fn write_line(mut to: impl Write, line: &dyn Display) -> io::Result<()> {
    match writeln!(to, "{line}").and_then(|()| to.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Says something on standard error. Where that cannot be written either, there is nobody to tell.
pub(crate) fn say(line: impl Display) {
    let _ = write_line(stderr().lock(), &line);
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

    struct Broken(ErrorKind);

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn only_a_reader_who_has_gone_away_is_no_fault() {
        assert!(write_line(Broken(ErrorKind::BrokenPipe), &"x").is_ok());
        let full = write_line(Broken(ErrorKind::StorageFull), &"x").unwrap_err();
        assert_eq!(full.kind(), ErrorKind::StorageFull);
        let mut written = Vec::new();
        write_line(&mut written, &"a\nb").unwrap();
        assert_eq!(written, b"a\nb\n");
    }

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
