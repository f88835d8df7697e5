//! One run: what was measured, round by round, and where it is.

use std::collections::BTreeMap;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use rand::rngs::StdRng;

use crate::settings::Volumes;

/// A run under way.
pub(crate) struct Run {
    pub(crate) volumes: Volumes,
    pub(crate) rng: StdRng,
    pub(crate) samples: Samples,
    bar: ProgressBar,
    round: String,
}

impl Run {
    pub(crate) fn new(volumes: Volumes, rng: StdRng) -> Self {
        let style = ProgressStyle::with_template("{spinner} {elapsed_precise} {msg}");
        let bar = ProgressBar::new_spinner().with_style(style.unwrap());
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { volumes, rng, samples: Samples::default(), bar, round: String::new() }
    }

    /// A new round begins.
    pub(crate) fn round(&mut self, text: String) {
        self.round = text;
    }

    /// A new step of the round begins: one living line on a terminal, a line each elsewhere.
    pub(crate) fn step(&self, text: &str) {
        let line = format!("{}: {text}", self.round);
        if self.bar.is_hidden() {
            eprintln!("{:>4} s  {line}", self.bar.elapsed().as_secs());
        }
        self.bar.set_message(line);
    }

    /// Something that is worth keeping on the screen.
    pub(crate) fn note(&self, text: &str) {
        self.bar.suspend(|| eprintln!("        {text}"));
    }

    /// Adds a round's value of a key.
    pub(crate) fn add(&mut self, key: &str, value: f64) {
        self.samples.rounds.entry(key.to_owned()).or_default().push(value);
    }

    /// Keeps what a figure of this round consists of.
    pub(crate) fn explain(&mut self, title: &'static str, parts: Vec<(String, f64)>) {
        self.samples.parts.insert(title, parts);
    }

    /// Ends the run.
    pub(crate) fn finish(self) -> Samples {
        self.bar.finish_and_clear();
        self.samples
    }
}

/// What was measured.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    rounds: BTreeMap<String, Vec<f64>>,
    /// What some figures of the last round consist of.
    pub(crate) parts: BTreeMap<&'static str, Vec<(String, f64)>>,
}

impl Samples {
    /// A key's values, one per round; none if it was not measured.
    pub(crate) fn rounds(&self, key: &str) -> &[f64] {
        self.rounds.get(key).map_or(&[], Vec::as_slice)
    }

    /// The middle of a key's values.
    pub(crate) fn median(&self, key: &str) -> Option<f64> {
        median(self.rounds(key))
    }
}

/// The middle of some values; of an even count the mean of the two in the middle.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// The middle of some durations, in milliseconds.
pub(crate) fn median_ms(times: &[Duration]) -> f64 {
    let times: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1_000.0).collect();
    median(&times).expect("something was timed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
    }
}
