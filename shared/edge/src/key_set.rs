//! Sets of symmetric keys as configuration has them: `{"keys": [{"id": "…", "key": "base64 of 32 bytes"}]}`.
//!
//! The first key is used for what is new, all of them for what is older, so that a rotation needs no moment.

use serde::Deserialize;

use crate::config::Stage;
use crate::environment::ConfigError;

const KEY_BYTES: usize = 32;
const KEYS_MAX: usize = 8;
pub(crate) const ID_BYTES_MAX: usize = 32;

/// What a set is for.
pub(crate) struct KeySet {
    /// The variable that holds it.
    pub(crate) variable: &'static str,
    /// The set of this repository, which everybody knows.
    pub(crate) development: &'static str,
    /// What its keys are called.
    pub(crate) development_name: &'static str,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    keys: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: String,
    key: String,
}

impl KeySet {
    /// Ids and bytes of the keys, at least one.
    pub(crate) fn read(&self, text: &str, stage: Stage) -> Result<Vec<(String, Vec<u8>)>, ConfigError> {
        let wrong =
            || ConfigError::invalid(self.variable, "must be {\"keys\": [{\"id\", \"key\"}]} with keys of 32 bytes");
        let document: Document = serde_json::from_str(text).map_err(|_| wrong())?;
        if !(1..=KEYS_MAX).contains(&document.keys.len()) {
            return Err(wrong());
        }
        let development: Document = serde_json::from_str(self.development).map_err(|_| wrong())?;
        let mut keys: Vec<(String, Vec<u8>)> = Vec::new();
        for Entry { id, key } in document.keys {
            if stage != Stage::Local && development.keys.iter().any(|known| known.key == key) {
                return Err(ConfigError::LocalOnly { what: self.development_name, stage: stage.word() });
            }
            let bytes = aws_smithy_types::base64::decode(&key).map_err(|_| wrong())?;
            let is_new = keys.iter().all(|(known, _)| *known != id);
            if bytes.len() != KEY_BYTES || !(1..=ID_BYTES_MAX).contains(&id.len()) || !is_new {
                return Err(wrong());
            }
            keys.push((id, bytes));
        }
        Ok(keys)
    }
}
