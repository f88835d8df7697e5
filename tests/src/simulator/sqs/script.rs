//! What goes wrong with the queues' API, and when.

use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;

use crate::randomness;

/// Which calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// `SendMessage` and `SendMessageBatch`.
    Send,
    /// `ChangeMessageVisibility` and its batch.
    Delay,
    /// All of them.
    Any,
}

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fault {
    /// It is answered with an internal error, and does nothing.
    Refuse,
    /// It is answered that there were too many requests, and does nothing.
    Throttle,
    /// It takes effect, and is answered only after this time.
    Late(Duration),
    /// It takes effect, and is answered with an internal error.
    LoseAnswer,
    /// Every second entry, the first included, is refused; the others take effect.
    Partial,
    /// It is answered as if it had succeeded, and does nothing.
    Forget,
}

struct Rule {
    call: Call,
    fault: Fault,
    left: u32,
    part: f64,
}

pub(super) struct Script {
    rules: Vec<Rule>,
    rng: StdRng,
}

impl Script {
    pub(super) fn new(seed: u64) -> Self {
        Self { rules: Vec::new(), rng: randomness::stream(seed, 0x7363_7269) }
    }

    pub(super) fn add(&mut self, call: Call, fault: Fault, left: u32, part: f64) {
        self.rules.push(Rule { call, fault, left, part });
    }

    pub(super) fn clear(&mut self) {
        self.rules.clear();
    }

    /// What happens to the next call of this kind.
    pub(super) fn next(&mut self, call: Call) -> Option<Fault> {
        self.rules.retain(|rule| rule.left > 0);
        let rule = self.rules.iter_mut().find(|rule| rule.call == Call::Any || rule.call == call)?;
        if !self.rng.random_bool(rule.part) {
            return None;
        }
        if rule.left != u32::MAX {
            rule.left -= 1;
        }
        Some(rule.fault)
    }
}
