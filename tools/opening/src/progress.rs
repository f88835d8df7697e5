//! Progress: one living line on a terminal, plain lines elsewhere.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Where there is no terminal, at most one line in this time, and only when it says something new.
const PLAIN_LINE_EVERY: Duration = Duration::from_secs(2);

/// What is going on right now.
pub(crate) struct Progress {
    bar: ProgressBar,
    printed: Instant,
    last: String,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let style = ProgressStyle::with_template("{spinner} {elapsed} {msg}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
        Self { bar: ProgressBar::new_spinner().with_style(style), printed: Instant::now(), last: String::new() }
    }

    /// Shows a line in place of the one before.
    pub(crate) fn show(&mut self, line: String) {
        if self.bar.is_hidden() && line != self.last && self.printed.elapsed() > PLAIN_LINE_EVERY {
            println!("{line}");
            self.printed = Instant::now();
            self.last.clone_from(&line);
        }
        self.bar.set_message(line);
        self.bar.tick();
    }

    /// Takes the line away.
    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }
}
