//! Parameters: a body or a query in form encoding, with keys such as `metadata[order]` and `expand[]`.

use std::collections::BTreeMap;

use time::OffsetDateTime;

use super::errors::{invalid, missing, unknown};
use crate::calls::{Answer, Request};

pub(super) struct Form(Vec<(String, String)>);

impl Form {
    /// A POST's parameters are in its body, a GET's in its query.
    pub(super) fn of(request: &Request) -> Self {
        let encoded = if request.method == "POST" { request.body.as_slice() } else { request.query.as_bytes() };
        Self(form_urlencoded::parse(encoded).into_owned().collect())
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn required(&self, name: &str) -> Result<&str, Answer> {
        self.get(name).filter(|value| !value.is_empty()).ok_or_else(|| missing(name))
    }

    pub(super) fn integer(&self, name: &str) -> Result<Option<i64>, Answer> {
        let read = |text: &str| text.parse().map_err(|_| invalid(name, "parameter_invalid_integer", "Invalid integer"));
        self.get(name).map(read).transpose()
    }

    /// A positive amount in minor units.
    pub(super) fn amount(&self, name: &str) -> Result<Option<i64>, Answer> {
        match self.integer(name)? {
            Some(amount) if amount <= 0 => Err(invalid(name, "parameter_invalid_integer", "Invalid positive integer")),
            amount => Ok(amount),
        }
    }

    pub(super) fn time(&self, name: &str) -> Result<Option<OffsetDateTime>, Answer> {
        let read = |seconds| OffsetDateTime::from_unix_timestamp(seconds);
        let time = self.integer(name)?.map(read).transpose();
        time.map_err(|_| invalid(name, "parameter_invalid_integer", "Invalid timestamp"))
    }

    /// What is below a name: `metadata` gives the pairs of `metadata[…]`.
    pub(super) fn pairs(&self, name: &str) -> BTreeMap<String, String> {
        let pair = |(key, value): &(String, String)| {
            let key = key.strip_prefix(name)?.strip_prefix('[')?.strip_suffix(']')?;
            (!key.contains('[')).then(|| (key.to_owned(), value.clone()))
        };
        self.0.iter().filter_map(pair).collect()
    }

    /// What is to be expanded, each path once.
    pub(super) fn expand(&self) -> Vec<&str> {
        let mut paths: Vec<&str> =
            self.0.iter().filter(|(key, _)| key.starts_with("expand[")).map(|(_, path)| path.as_str()).collect();
        paths.sort_unstable();
        paths.dedup();
        paths
    }

    /// Refuses parameters that the reference does not list, by the first part of their names.
    pub(super) fn allow(&self, names: &[&str]) -> Result<(), Answer> {
        let first = |key: &str| key.split('[').next().unwrap_or_default().to_owned();
        let strange = self.0.iter().map(|(key, _)| first(key)).find(|key| key != "expand" && !names.contains(&&**key));
        strange.map_or(Ok(()), |key| Err(unknown(&key)))
    }
}
