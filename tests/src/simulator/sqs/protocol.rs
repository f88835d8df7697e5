//! The AWS JSON protocol of SQS, as far as our functions use it, with the limits that AWS documents for it.

use std::collections::HashSet;
use std::time::Duration;

use domain::messages::Queue;
use serde_json::{Value, json};

use super::Sqs;
use super::script::{Call, Fault};
use crate::queue::standard::Refusal;
use crate::server::{Reply, Request};

/// Entries of a batch, and bytes of one message or of a batch together ("Amazon SQS message quotas").
const ENTRIES_MAX: usize = 10;
const BYTES_MAX: usize = 1_024 * 1_024;

type Answer = Result<Value, (&'static str, String)>;

/// Answers a call, in whatever way the script wants.
pub(super) async fn answer(sqs: &Sqs, request: &Request) -> Reply {
    let target = request.headers.iter().find(|(name, _)| name == "x-amz-target");
    let operation = target.and_then(|(_, value)| value.strip_prefix("AmazonSQS.")).unwrap_or_default().to_owned();
    let input: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    sqs.0.calls.lock().unwrap().push((operation.clone(), input.clone()));
    let call = if operation.starts_with("Send") { Call::Send } else { Call::Delay };
    let fault = sqs.0.script.lock().unwrap().next(call);
    match fault {
        None => reply(&serve(sqs, &operation, &input, None)),
        Some(Fault::Refuse) => internal_error(),
        Some(Fault::Throttle) => reply(&Err(("RequestThrottled", "Rate exceeded".into()))),
        Some(Fault::Late(time)) => {
            let answer = reply(&serve(sqs, &operation, &input, None));
            tokio::time::sleep(time).await;
            answer
        }
        Some(Fault::LoseAnswer) => {
            let _ = serve(sqs, &operation, &input, None);
            internal_error()
        }
        Some(fault @ (Fault::Partial | Fault::Forget)) => reply(&serve(sqs, &operation, &input, Some(fault))),
    }
}

pub(super) fn internal_error() -> Reply {
    let body = json!({ "__type": "com.amazonaws.sqs#InternalError", "message": "a fault on purpose" });
    Reply { status: 500, headers: json_type(), body: body.to_string().into_bytes() }
}

fn reply(answer: &Answer) -> Reply {
    let (status, body) = match answer {
        Ok(body) => (200, body.clone()),
        Err((code, message)) => (400, json!({ "__type": format!("com.amazonaws.sqs#{code}"), "message": message })),
    };
    Reply { status, headers: json_type(), body: body.to_string().into_bytes() }
}

fn json_type() -> Vec<(&'static str, String)> {
    vec![("content-type", "application/x-amz-json-1.0".into())]
}

fn serve(sqs: &Sqs, operation: &str, input: &Value, fault: Option<Fault>) -> Answer {
    let url = input["QueueUrl"].as_str().unwrap_or_default();
    let queue = Queue::ALL.into_iter().find(|queue| url.ends_with(&format!("/{}", queue.name())));
    let queue = queue.ok_or(("QueueDoesNotExist", format!("there is no queue {url}")))?;
    match operation {
        "SendMessageBatch" => batch(input, fault, |entry| send(sqs, queue, entry)),
        "ChangeMessageVisibilityBatch" => batch(input, fault, |entry| delay(sqs, queue, entry)),
        "SendMessage" if fault == Some(Fault::Forget) => Ok(sent("forgotten")),
        "SendMessage" => send(sqs, queue, input).map_err(|refusal| (refusal.code(), String::new())),
        "ChangeMessageVisibility" => {
            delay(sqs, queue, input).map_err(|refusal| (refusal.code(), String::new())).map(|_| json!({}))
        }
        other => Err(("UnsupportedOperation", format!("the simulator does not know {other}"))),
    }
}

/// "`SendMessageBatch`" and "`ChangeMessageVisibilityBatch`" in the Amazon SQS API Reference: the batch is refused as a
/// whole for its form; otherwise it succeeds, and each entry is listed as successful or as failed.
fn batch(input: &Value, fault: Option<Fault>, mut act: impl FnMut(&Value) -> Result<Value, Refusal>) -> Answer {
    let entries = input["Entries"].as_array().map_or(&[][..], Vec::as_slice);
    check(entries)?;
    let (mut successful, mut failed) = (Vec::new(), Vec::new());
    for (position, entry) in entries.iter().enumerate() {
        let done = match fault {
            Some(Fault::Partial) if position % 2 == 0 => {
                failed.push(json!({ "Id": entry["Id"], "SenderFault": false, "Code": "InternalError" }));
                continue;
            }
            Some(Fault::Forget) => Ok(sent("forgotten")),
            _ => act(entry),
        };
        match done {
            Ok(mut answer) => {
                answer["Id"] = entry["Id"].clone();
                successful.push(answer);
            }
            Err(refusal) => failed.push(json!({ "Id": entry["Id"], "SenderFault": true, "Code": refusal.code() })),
        }
    }
    Ok(json!({ "Successful": successful, "Failed": failed }))
}

fn check(entries: &[Value]) -> Result<(), (&'static str, String)> {
    let is_id = |id: &str| {
        (1..=80).contains(&id.len()) && id.chars().all(|one| one.is_ascii_alphanumeric() || one == '-' || one == '_')
    };
    let ids: Vec<&str> = entries.iter().map(|entry| entry["Id"].as_str().unwrap_or_default()).collect();
    let bytes: usize = entries.iter().map(|entry| entry["MessageBody"].as_str().map_or(0, str::len)).sum();
    let refuse = |code, what: String| Err((code, what));
    match entries.len() {
        0 => refuse("EmptyBatchRequest", "no entries".into()),
        count if count > ENTRIES_MAX => refuse("TooManyEntriesInBatchRequest", format!("{count} entries")),
        _ if ids.iter().any(|id| !is_id(id)) => refuse("InvalidBatchEntryId", format!("{ids:?}")),
        count if ids.iter().collect::<HashSet<_>>().len() < count => {
            refuse("BatchEntryIdsNotDistinct", format!("{ids:?}"))
        }
        _ if bytes > BYTES_MAX => refuse("BatchRequestTooLong", format!("{bytes} bytes")),
        _ => Ok(()),
    }
}

fn send(sqs: &Sqs, queue: Queue, entry: &Value) -> Result<Value, Refusal> {
    let body = entry["MessageBody"].as_str().filter(|body| (1..=BYTES_MAX).contains(&body.len()));
    let body = body.ok_or(Refusal::InvalidParameterValue)?.to_owned();
    let group = entry["MessageGroupId"].as_str().unwrap_or_default().to_owned();
    let delay = Duration::from_secs(entry["DelaySeconds"].as_u64().unwrap_or(0));
    sqs.with(queue, |queue, now| queue.send(now, body, group, delay)).map(|id| sent(&id))
}

fn sent(message_id: &str) -> Value {
    json!({ "MessageId": message_id, "MD5OfMessageBody": "0" })
}

fn delay(sqs: &Sqs, queue: Queue, entry: &Value) -> Result<Value, Refusal> {
    let receipt = entry["ReceiptHandle"].as_str().unwrap_or_default();
    let time = Duration::from_secs(entry["VisibilityTimeout"].as_u64().ok_or(Refusal::InvalidParameterValue)?);
    sqs.with(queue, |queue, now| queue.change_visibility(now, receipt, time)).map(|()| json!({}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(count: usize, body: &str) -> Vec<Value> {
        (0..count).map(|id| json!({ "Id": id.to_string(), "MessageBody": body })).collect()
    }

    fn refusal(entries: &[Value]) -> Option<&'static str> {
        check(entries).err().map(|(code, _)| code)
    }

    /// Amazon SQS API Reference, `SendMessageBatch`, errors.
    #[test]
    fn a_batch_is_refused_as_a_whole_for_its_form() {
        assert_eq!(refusal(&entries(10, "x")), None);
        assert_eq!(refusal(&[]), Some("EmptyBatchRequest"));
        assert_eq!(refusal(&entries(11, "x")), Some("TooManyEntriesInBatchRequest"));
        assert_eq!(refusal(&[entries(1, "x"), entries(1, "x")].concat()), Some("BatchEntryIdsNotDistinct"));
        assert_eq!(refusal(&[json!({ "Id": "a b" })]), Some("InvalidBatchEntryId"));
        assert_eq!(refusal(&entries(4, &"x".repeat(BYTES_MAX / 4))), None);
        assert_eq!(refusal(&entries(5, &"x".repeat(BYTES_MAX / 4))), Some("BatchRequestTooLong"));
    }

    /// Amazon SQS API Reference, `BatchResultErrorEntry`: some entries may fail although the call succeeds.
    #[test]
    fn entries_fail_alone() {
        let input = json!({ "Entries": entries(3, "x") });
        let answer =
            batch(
                &input,
                None,
                |entry| if entry["Id"] == "1" { Err(Refusal::InvalidParameterValue) } else { Ok(json!({})) },
            );
        let answer = answer.unwrap();
        assert_eq!(answer["Successful"], json!([{ "Id": "0" }, { "Id": "2" }]));
        assert_eq!(answer["Failed"], json!([{ "Id": "1", "SenderFault": true, "Code": "InvalidParameterValue" }]));
        let partly = batch(&input, Some(Fault::Partial), |_| Ok(json!({}))).unwrap();
        assert_eq!(
            (partly["Successful"].as_array().unwrap().len(), partly["Failed"].as_array().unwrap().len()),
            (1, 2)
        );
        let mut stored = 0;
        let forgotten = batch(&input, Some(Fault::Forget), |_| {
            stored += 1;
            Ok(json!({}))
        });
        assert_eq!((forgotten.unwrap()["Failed"].clone(), stored), (json!([]), 0));
    }
}
