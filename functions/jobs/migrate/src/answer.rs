//! The custom resource protocol: who asked, and the answer they wait for.

use domain::{Error, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ANSWER_TIMEOUT;

/// Longest reason in an answer, in characters: CloudFormation refuses answers over 4 KiB.
const REASON_CHARS_MAX: usize = 1_000;

/// Tries to deliver an answer.
const TRIES: u32 = 4;

/// A request of CloudFormation.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Request {
    request_type: String,
    #[serde(rename = "ResponseURL")]
    response_url: String,
    stack_id: String,
    request_id: String,
    logical_resource_id: String,
    physical_resource_id: Option<String>,
}

impl Request {
    /// The request in an event, if it is one.
    #[must_use]
    pub fn parse(event: &Value) -> Option<Self> {
        Self::deserialize(event).ok()
    }

    /// Deleting the resource deletes no data.
    pub(crate) fn is_delete(&self) -> bool {
        self.request_type == "Delete"
    }

    /// The answer's document. The physical id never changes, or CloudFormation would delete the "old" one.
    pub(crate) fn answer(&self, outcome: &Result<Value>) -> Value {
        let (status, reason, data) = match outcome {
            Ok(Value::Null) => ("SUCCESS", String::new(), json!({})),
            Ok(report) => ("SUCCESS", String::new(), json!({ "Version": report["version"].to_string() })),
            Err(error) => ("FAILED", error.chain().chars().take(REASON_CHARS_MAX).collect(), json!({})),
        };
        json!({
            "Status": status,
            "Reason": reason,
            "PhysicalResourceId": self.physical_resource_id.as_deref().unwrap_or("tirada-database"),
            "StackId": self.stack_id,
            "RequestId": self.request_id,
            "LogicalResourceId": self.logical_resource_id,
            "Data": data,
        })
    }
}

/// Delivers the answer, trying a few times.
pub(crate) async fn send(request: &Request, outcome: &Result<Value>) -> Result<()> {
    let client = reqwest::Client::builder().timeout(ANSWER_TIMEOUT).build().map_err(|e| Error::Fault(Box::new(e)))?;
    let body = request.answer(outcome).to_string();
    let mut last = None;
    for attempt in 0..TRIES {
        tokio::time::sleep(std::time::Duration::from_millis(u64::from(attempt) * 500)).await;
        // No content type: the URL was signed without one.
        match client
            .put(&request.response_url)
            .body(body.clone())
            .send()
            .await
            .and_then(reqwest::Response::error_for_status)
        {
            Ok(_) => return Ok(()),
            // The URL is a credential for as long as it lives.
            Err(error) => last = Some(error.without_url()),
        }
    }
    Err(last.map_or_else(|| Error::fault("no answer was tried"), |error| Error::Busy(Box::new(error))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(kind: &str) -> Request {
        Request::parse(&json!({
            "RequestType": kind, "ResponseURL": "http://127.0.0.1:1/x", "StackId": "s", "RequestId": "r",
            "LogicalResourceId": "l", "ResourceProperties": { "MigrationsHash": "h" },
        }))
        .unwrap()
    }

    #[test]
    fn answers_name_the_request_and_stay_small() {
        let outcome = Err(Error::fault("x".repeat(10_000)));
        let answer = request("Create").answer(&outcome);
        assert_eq!(answer["Status"], "FAILED");
        assert_eq!((answer["RequestId"].as_str(), answer["LogicalResourceId"].as_str()), (Some("r"), Some("l")));
        assert!(answer.to_string().len() < 4_096);
        let answer = request("Update").answer(&Ok(json!({ "version": 3, "applied": [3] })));
        assert_eq!((answer["Status"].as_str(), answer["Data"]["Version"].as_str()), (Some("SUCCESS"), Some("3")));
    }

    #[test]
    fn other_events_are_no_requests() {
        for event in [json!({}), json!(null), json!([1]), json!({ "RequestType": "Create" })] {
            assert!(Request::parse(&event).is_none(), "{event}");
        }
        assert!(request("Delete").is_delete());
    }
}
