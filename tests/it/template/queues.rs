//! Queues, their dead-letter queues and their event source mappings.

use std::collections::BTreeSet;
use std::time::Duration;

use domain::limits::{RETRY_BACKOFF_MAX, RETRY_BACKOFF_MIN};
use domain::messages::Queue;
use serde_json::json;
use tests::template::{Function, pascal};

use super::application;

const DAY: u64 = 24 * 3_600;
/// Twice what a failover takes at most.
const LONGEST_OUTAGE: Duration = Duration::from_secs(240);

#[test]
fn queues_are_those_of_the_code_each_with_its_worker_and_dlq() {
    let template = application();
    let mut expected: BTreeSet<String> = ["schedules-dlq".into()].into();
    for queue in Queue::ALL {
        expected.extend([queue.name().to_owned(), format!("{}-dlq", queue.name())]);
        let id = pascal(queue.name());
        let worker = template.resource(&id);
        let mapping = Function(worker).messages().expect("a worker reads its queue");
        assert_eq!(*mapping.get("/Queue"), json!({ "Fn::GetAtt": [format!("{id}Queue"), "Arn"] }));
        let redrive = template.resource(&format!("{id}Queue")).get("/RedrivePolicy").clone();
        assert_eq!(redrive["deadLetterTargetArn"], json!({ "Fn::GetAtt": [format!("{id}Dlq"), "Arn"] }));
    }
    let names = template.of_type("AWS::SQS::Queue").map(|queue| {
        assert!(queue.get("/FifoQueue").is_null(), "{}: one poison message would block its group", queue.id);
        assert_eq!(*queue.get("/SqsManagedSseEnabled"), json!(true), "{}", queue.id);
        let name = queue.get("/QueueName")["Fn::Sub"].as_str().unwrap();
        name.strip_prefix("${AWS::StackName}-").unwrap().to_owned()
    });
    assert_eq!(names.collect::<BTreeSet<_>>(), expected);
}

#[test]
fn workers_are_capped_below_their_reserve_and_report_record_by_record() {
    let template = application();
    let mut workers = 0;
    for function in template.functions() {
        let Some(mapping) = function.messages() else { continue };
        workers += 1;
        let name = function.name();
        let cap = mapping.number("/ScalingConfig/MaximumConcurrency");
        // Throttled messages use up their receives, and healthy orders end in the DLQ.
        assert!((2..=function.0.number("/ReservedConcurrentExecutions")).contains(&cap), "{name}");
        assert_eq!(*mapping.get("/FunctionResponseTypes"), json!(["ReportBatchItemFailures"]), "{name}");
        let (batch, window) = (mapping.number("/BatchSize"), mapping.number("/MaximumBatchingWindowInSeconds"));
        // An export may take all of an invocation: what came with it would only use up its receives.
        let smallest = if name == "write-exports" { 1 } else { 10 };
        assert!((smallest..=10_000).contains(&batch) && (batch <= 10 || window >= 1), "{name}");
        assert!(name != "write-exports" || batch == 1, "{name}");
        let queue = template.resource(mapping.get("/Queue")["Fn::GetAtt"][0].as_str().unwrap());
        let needed = 6 * function.0.number("/Timeout") + window;
        assert!(queue.number("/VisibilityTimeout") >= needed, "{name} needs {needed} s");
        let receives = queue.number("/RedrivePolicy/maxReceiveCount");
        let outlasted = shortest_life(u32::try_from(receives).unwrap());
        assert!(outlasted >= LONGEST_OUTAGE, "{name}: messages outlast an outage of {outlasted:?} only");
        assert!(
            RETRY_BACKOFF_MAX.as_secs() < queue.number("/VisibilityTimeout"),
            "a delayed message comes earlier than a lost one"
        );
    }
    assert_eq!(workers, Queue::ALL.len());
}

/// From the first of so many receives to the last, when all of them fail at once and every wait is the shortest: half
/// of a time that doubles.
fn shortest_life(receives: u32) -> Duration {
    let wait = |receive| RETRY_BACKOFF_MIN.saturating_mul(2_u32.saturating_pow(receive)).min(RETRY_BACKOFF_MAX) / 2;
    (1..receives).map(wait).sum()
}

#[test]
fn dead_letters_are_kept_for_two_weeks_and_outlive_their_queue() {
    let template = application();
    for queue in template.of_type("AWS::SQS::Queue") {
        let kept = queue.number("/MessageRetentionPeriod");
        if queue.id.ends_with("Dlq") {
            assert_eq!(kept, 14 * DAY, "{}", queue.id);
            assert!(queue.get("/RedrivePolicy").is_null(), "{}", queue.id);
        } else {
            // Counted from the first queueing: what spent its days in the queue would not be seen in the DLQ.
            assert!(kept <= 4 * DAY, "{}", queue.id);
        }
    }
}
