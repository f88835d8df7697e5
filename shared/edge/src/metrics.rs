//! Metrics in CloudWatch's embedded format: one JSON line on standard output, which the log service turns into
//! metrics. No call, no agent, no buffer to lose.
//!
//! Dimensions are a closed list, because each combination of values is billed and a buyer or an order is none of
//! CloudWatch's business.

use std::io::Write;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use crate::config::Stage;

const NAMESPACE: &str = "Tirada";

/// Set once by [`init`]; without it, as in tests, metrics go nowhere.
static STAGE: OnceLock<Stage> = OnceLock::new();

/// What a number means, in CloudWatch's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// How many.
    Count,
    /// A duration in milliseconds.
    Milliseconds,
    /// A duration in seconds.
    Seconds,
}

impl Unit {
    const fn word(self) -> &'static str {
        match self {
            Self::Count => "Count",
            Self::Milliseconds => "Milliseconds",
            Self::Seconds => "Seconds",
        }
    }
}

/// One measured value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    /// Dotted name, such as `orders.accepted`.
    pub name: &'static str,
    /// The value.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
}

/// What metrics may be told apart by, beside the stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dimension {
    /// The store.
    Store,
    /// The campaign label of a product.
    Campaign,
    /// A stable code: how it ended.
    Outcome,
}

impl Dimension {
    const fn name(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Campaign => "campaign",
            Self::Outcome => "outcome",
        }
    }
}

/// Turns metrics on, under this stage.
pub(crate) fn init(stage: Stage) {
    let _ = STAGE.set(stage);
}

/// Writes metrics that share their dimensions, each name at most once. Empty dimension values are left out, values
/// that are no number too.
pub fn emit(metrics: &[Metric], dimensions: &[(Dimension, &str)]) {
    let Some(stage) = STAGE.get() else { return };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let line = line(*stage, now.as_millis(), metrics, dimensions);
    // One write, so that lines of the log and of metrics do not mix. A closed standard output is nobody's failure.
    let _ = std::io::stdout().lock().write_all(line.as_bytes());
}

/// A count of one.
pub fn count(name: &'static str, dimensions: &[(Dimension, &str)]) {
    emit(&[Metric { name, value: 1.0, unit: Unit::Count }], dimensions);
}

fn line(stage: Stage, now_ms: u128, metrics: &[Metric], dimensions: &[(Dimension, &str)]) -> String {
    let mut names = vec!["stage"];
    let mut members = Map::new();
    members.insert("stage".into(), stage.word().into());
    for (dimension, value) in dimensions.iter().filter(|(_, value)| !value.is_empty()) {
        names.push(dimension.name());
        members.insert(dimension.name().into(), (*value).into());
    }
    let metrics = metrics.iter().filter(|metric| metric.value.is_finite());
    let definitions: Vec<Value> =
        metrics.clone().map(|metric| json!({ "Name": metric.name, "Unit": metric.unit.word() })).collect();
    members.extend(metrics.map(|metric| (metric.name.to_owned(), metric.value.into())));
    let definition = json!({ "Namespace": NAMESPACE, "Dimensions": [names], "Metrics": definitions });
    let timestamp = u64::try_from(now_ms).unwrap_or_default();
    members.insert("_aws".into(), json!({ "Timestamp": timestamp, "CloudWatchMetrics": [definition] }));
    format!("{}\n", Value::Object(members))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_an_embedded_metric() {
        let metrics = [
            Metric { name: "orders.accepted", value: 2.0, unit: Unit::Count },
            Metric { name: "queue.age", value: f64::NAN, unit: Unit::Seconds },
        ];
        let dimensions = [(Dimension::Store, "lima"), (Dimension::Campaign, ""), (Dimension::Outcome, "sold-out")];
        let line = line(Stage::Prod, 1_767_323_045_000, &metrics, &dimensions);
        assert!(line.ends_with("}\n") && line.lines().count() == 1);
        assert_eq!(
            serde_json::from_str::<Value>(&line).unwrap(),
            json!({
                "stage": "prod", "store": "lima", "outcome": "sold-out", "orders.accepted": 2.0,
                "_aws": {
                    "Timestamp": 1_767_323_045_000_u64,
                    "CloudWatchMetrics": [{
                        "Namespace": "Tirada",
                        "Dimensions": [["stage", "store", "outcome"]],
                        "Metrics": [{"Name": "orders.accepted", "Unit": "Count"}],
                    }],
                },
            })
        );
    }
}
