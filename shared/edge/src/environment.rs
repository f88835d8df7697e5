//! Reading the environment: one place that knows what "set" means, and the error that names the variable.
//!
//! Never puts a value into an error: some of them are secrets.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Why the process must not start.
#[derive(thiserror::Error)]
pub enum ConfigError {
    /// A variable that this function needs is not set, or empty.
    #[error("{0} is not set")]
    Missing(String),
    /// A variable is set to something that cannot be used.
    #[error("{variable} {why}")]
    Invalid {
        /// The variable.
        variable: String,
        /// What is wrong with it, as the end of a sentence.
        why: String,
    },
    /// An inner timeout is not shorter than the one around it.
    #[error("timeouts must grow from the inside out, but {0}")]
    Timeouts(String),
    /// Something that belongs on developers' machines only.
    #[error("{what} must not be used on the stage {stage}")]
    LocalOnly {
        /// What was found.
        what: &'static str,
        /// Where.
        stage: &'static str,
    },
}

// A `main` that returns the error prints it with `Debug`: let people read a sentence there.
impl fmt::Debug for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl ConfigError {
    /// A variable that cannot be used, and why (the end of a sentence that starts with the variable's name).
    pub fn invalid(variable: impl Into<String>, why: impl fmt::Display) -> Self {
        Self::Invalid { variable: variable.into(), why: why.to_string() }
    }
}

type Lookup = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Where configuration comes from: the process, or a closure in tests.
pub struct Environment(Lookup);

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Environment")
    }
}

impl Environment {
    /// The variables of this process.
    #[must_use]
    pub fn process() -> Self {
        Self::from_lookup(|name| std::env::var(name).ok())
    }

    /// Variables from anywhere.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Box::new(lookup))
    }

    /// The value, if it is set and not empty.
    #[must_use]
    pub fn optional(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.is_empty())
    }

    /// The value.
    ///
    /// # Errors
    /// [`ConfigError::Missing`].
    pub fn required(&self, name: &str) -> Result<String, ConfigError> {
        self.optional(name).ok_or_else(|| ConfigError::Missing(name.to_owned()))
    }

    /// The value as a `T`, if it is set. `expected` ends the sentence "NAME must be …".
    ///
    /// # Errors
    /// [`ConfigError::Invalid`].
    pub fn parsed<T: FromStr>(&self, name: &str, expected: &str) -> Result<Option<T>, ConfigError> {
        let Some(text) = self.optional(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| ConfigError::invalid(name, format_args!("must be {expected}")))
    }

    /// The value in milliseconds, if it is set.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`].
    pub fn millis(&self, name: &str) -> Result<Option<Duration>, ConfigError> {
        Ok(self.parsed(name, "a whole number of milliseconds")?.map(Duration::from_millis))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An environment of exactly these variables.
    pub(crate) fn of(variables: &[(&str, &str)]) -> Environment {
        let owned: std::collections::HashMap<String, String> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Environment::from_lookup(move |name| owned.get(name).cloned())
    }

    #[test]
    fn empty_is_not_set_and_errors_name_the_variable_but_not_its_value() {
        let environment = of(&[("EMPTY", ""), ("PORT", "hunter2"), ("WAIT", "-1")]);
        assert_eq!(environment.required("EMPTY").unwrap_err().to_string(), "EMPTY is not set");
        assert_eq!(environment.parsed::<u16>("NONE", "a port").unwrap(), None);
        let error = environment.parsed::<u16>("PORT", "a port").unwrap_err();
        assert_eq!(format!("{error:?}"), "PORT must be a port");
        assert!(environment.millis("WAIT").unwrap_err().to_string().contains("WAIT must be a whole number"));
    }
}
