//! Pretended phones: one line per message in a file that a person reads. For developers' machines.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

use domain::login::Phone;
use domain::{Error, Result};
use serde_json::json;

/// The file. Nobody but its owner may read it.
#[derive(Debug)]
pub struct Outbox(PathBuf);

impl Outbox {
    /// A file, made by the first message.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// One write, so that lines of several processes do not mix.
    pub(crate) fn append(&self, phone: &Phone, text: &str) -> Result<()> {
        let line = format!("{}\n", json!({ "phone": phone.as_str(), "text": text }));
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&self.0).map_err(Error::busy)?;
        file.write_all(line.as_bytes()).map_err(Error::busy)
    }
}
