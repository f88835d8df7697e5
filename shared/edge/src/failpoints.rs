//! Faults on purpose: `FAILPOINTS=name=action;…`, on developers' machines only.
//!
//! The actions are those of the `fail` crate and one more: `kill` ends the process on the spot, as the machine's end
//! would, with nothing unwound, answered or closed in good order; `2*off->kill` does at the third passage.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::config::Stage;
use crate::environment::{ConfigError, Environment};

const VARIABLE: &str = "FAILPOINTS";

/// Refuses failpoints anywhere but locally.
///
/// # Errors
/// [`ConfigError::LocalOnly`].
pub fn check(environment: &Environment, stage: Stage) -> Result<(), ConfigError> {
    if stage != Stage::Local && environment.optional(VARIABLE).is_some() {
        return Err(ConfigError::LocalOnly { what: VARIABLE, stage: stage.word() });
    }
    Ok(())
}

/// Arms the failpoints named in the environment, for as long as the process lives.
///
/// # Errors
/// [`ConfigError`]: on another stage than local, or an action that the `fail` crate does not know.
pub fn init(environment: &Environment, stage: Stage) -> Result<(), ConfigError> {
    check(environment, stage)?;
    let text = environment.optional(VARIABLE).unwrap_or_default();
    for entry in text.split(';').map(str::trim).filter(|entry| !entry.is_empty()) {
        let (name, actions) =
            entry.split_once('=').ok_or_else(|| ConfigError::invalid(VARIABLE, "must be name=action;…"))?;
        match passages_before_kill(actions.trim()) {
            Some(passages) => arm_kill(name.trim(), passages),
            None => fail::cfg(name.trim(), actions),
        }
        .map_err(|why| ConfigError::invalid(VARIABLE, why))?;
        tracing::warn!(failpoint.name = name, failpoint.actions = actions, "failpoint armed");
    }
    Ok(())
}

/// How often a failpoint is passed before it kills; none for an action of the `fail` crate.
fn passages_before_kill(actions: &str) -> Option<u32> {
    let before = actions.strip_suffix("kill")?;
    if before.is_empty() { Some(0) } else { before.strip_suffix("*off->")?.parse().ok() }
}

fn arm_kill(name: &str, passages: u32) -> Result<(), String> {
    let passed = AtomicU32::new(0);
    fail::cfg_callback(name, move || {
        if passed.fetch_add(1, Ordering::Relaxed) >= passages {
            std::process::abort();
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::tests::of;

    #[test]
    fn armed_locally_refused_elsewhere() {
        let environment = of(&[(VARIABLE, "edge.tested=1*panic; edge.other=off")]);
        init(&environment, Stage::Local).unwrap();
        let panicked = std::panic::catch_unwind(|| fail::fail_point!("edge.tested"));
        assert!(panicked.is_err(), "the first passage panics");
        fail::fail_point!("edge.tested");
        for stage in [Stage::Dev, Stage::Staging, Stage::Prod] {
            assert!(init(&environment, stage).is_err());
        }
        assert!(init(&of(&[]), Stage::Prod).is_ok());
    }

    #[test]
    fn a_kill_says_at_which_passage() {
        assert_eq!(passages_before_kill("kill"), Some(0));
        assert_eq!(passages_before_kill("2*off->kill"), Some(2));
        assert_eq!(passages_before_kill("2*kill"), None);
        assert_eq!(passages_before_kill("1*panic"), None);
    }

    #[test]
    fn nonsense_is_named() {
        for bad in ["edge.tested", "edge.tested=explode", "edge.tested=2*kill"] {
            let text = init(&of(&[(VARIABLE, bad)]), Stage::Local).unwrap_err().to_string();
            assert!(text.starts_with("FAILPOINTS "), "{text}");
        }
    }
}
