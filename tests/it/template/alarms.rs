//! Alarms watch what is emitted, and everything that must be watched is.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tests::files;
use tests::template::Resource;

use super::application;

fn metric<'a>(alarm: Resource<'a>) -> (&'a str, &'a str) {
    (alarm.get("/Namespace").as_str().unwrap(), alarm.get("/MetricName").as_str().unwrap())
}

#[test]
fn our_own_metrics_are_emitted_by_the_code() {
    let sources: String =
        files::rust().into_iter().filter(|path| !path.starts_with("tests")).map(files::read).collect();
    let template = application();
    let mut watched = BTreeSet::new();
    for alarm in template.of_type("AWS::CloudWatch::Alarm").filter(|alarm| metric(*alarm).0 == "Tirada") {
        let (_, name) = metric(alarm);
        assert!(sources.contains(&format!("metric(\"{name}\"")), "{} watches {name}, which nobody emits", alarm.id);
        // The dimensions are those of `edge::metrics`, without any of its optional ones.
        assert_eq!(
            *alarm.get("/Dimensions"),
            json!([{ "Name": "stage", "Value": { "Ref": "Stage" } }]),
            "{}",
            alarm.id
        );
        watched.insert(name.to_owned());
        // What proves that a job runs must not be silent.
        let proves = matches!(name, "sweep_lag_ms" | "outbox_age_ms" | "payments_unanswered_age_ms" | "inbox_age_ms");
        assert_eq!(*alarm.get("/TreatMissingData") == "breaching", proves, "{}", alarm.id);
    }
    for name in [
        "sweep_lag_ms",
        "outbox_age_ms",
        "queue_age_ms",
        "audit_findings",
        "refunds_failed",
        "login_codes_lost",
        "notices_failing",
        "notices_lost",
        "staff_mails_failed",
        "exports_failed",
        "payments_unanswered_age_ms",
        "inbox_age_ms",
        // A step that fails measures nothing, and the metrics that it owes say 0.
        "reconcile_steps_failed",
    ] {
        assert!(watched.contains(name), "nobody watches {name}");
    }
}

#[test]
fn every_queue_and_every_function_is_watched() {
    let template = application();
    let watched: BTreeSet<(String, String)> = template
        .of_type("AWS::CloudWatch::Alarm")
        .map(|alarm| {
            let value = alarm.get("/Dimensions/0/Value");
            let target = value["Ref"].as_str().or_else(|| value["Fn::GetAtt"][0].as_str()).unwrap();
            (metric(alarm).1.to_owned(), target.to_owned())
        })
        .collect();
    let is_watched = |metric: &str, target: &str| watched.contains(&(metric.to_owned(), target.to_owned()));
    for queue in template.of_type("AWS::SQS::Queue") {
        let metric = if queue.id.ends_with("Dlq") {
            "ApproximateNumberOfMessagesVisible"
        } else {
            "ApproximateAgeOfOldestMessage"
        };
        assert!(is_watched(metric, queue.id), "{} has no alarm on {metric}", queue.id);
    }
    for function in template.functions().filter(|function| function.kind() == edge::Kind::Worker) {
        assert!(is_watched("Errors", function.0.id), "{} has no alarm on errors", function.0.id);
    }
    assert!(is_watched("5xx", "Api"));
}

#[test]
fn alarms_say_what_happened_and_reach_somebody() {
    let template = application();
    for alarm in template.of_type("AWS::CloudWatch::Alarm") {
        assert!(alarm.get("/AlarmDescription").as_str().unwrap().len() > 40, "{}", alarm.id);
        let actions = alarm.get("/AlarmActions");
        assert_eq!(actions["Fn::If"][1], json!([{ "Ref": "AlarmTopicArn" }]), "{}", alarm.id);
        assert!(!alarm.get("/TreatMissingData").is_null(), "{}", alarm.id);
        let threshold = alarm.number("/Threshold");
        if alarm.id.ends_with("DlqAlarm") {
            assert_eq!(threshold, 0, "{}: a single dead letter is one too many", alarm.id);
        }
    }
    let age = template.resource("QueueAgeAlarm").number("/Threshold");
    let closes_at = domain::limits::INTAKE_CLOSES_AT_AGE.as_millis();
    assert!(u128::from(age) < closes_at, "somebody knows before intake closes");
    assert_eq!(template.0["Parameters"]["AlarmTopicArn"]["Default"], Value::from(""));
}
