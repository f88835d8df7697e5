//! A pretended mailbox: one line per mail in a file that a person reads. For developers' machines.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

use domain::staff::{Email, Mail};
use domain::{Error, Result};
use serde_json::json;

/// The file. Nobody but its owner may read it.
#[derive(Debug)]
pub struct Mailbox(PathBuf);

impl Mailbox {
    /// A file, made by the first mail.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// One write, so that lines of several processes do not mix.
    pub(crate) fn append(&self, to: &Email, mail: &Mail) -> Result<()> {
        let line = format!("{}\n", json!({ "to": to.as_str(), "subject": mail.subject, "text": mail.text }));
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&self.0).map_err(Error::busy)?;
        file.write_all(line.as_bytes()).map_err(Error::busy)
    }
}
