//! Asking before wide or destructive acts.

use std::io::{IsTerminal, Write, stderr, stdin};

use crate::failure::Failure;

/// Whether to ask.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Confirm {
    pub(crate) yes: bool,
}

impl Confirm {
    /// Asks, unless `--yes` was given; without a terminal that is a refusal.
    pub(crate) fn ask(self, question: &str) -> Result<(), Failure> {
        if self.yes {
            return Ok(());
        }
        if !stdin().is_terminal() {
            return Err(Failure::refused(format!("{question} There is no terminal to ask: say it with --yes.")));
        }
        let mut answer = String::new();
        let asked = write!(stderr(), "{question} Type yes: ").and_then(|()| stderr().flush());
        let read = asked.and_then(|()| stdin().read_line(&mut answer));
        if read.is_ok() && answer.trim() == "yes" { Ok(()) } else { Err(Failure::refused("not confirmed")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yes_needs_no_terminal() {
        assert!(Confirm { yes: true }.ask("Everything?").is_ok());
    }
}
