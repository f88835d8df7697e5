//! What `template.yaml` promises, against the code and against itself: what nobody would notice before it is too late.

mod alarms;
mod groups;
mod permissions;
mod queues;
mod routes;
mod start;
mod wall;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tests::files;
use tests::template::{Template, pascal};

/// The application's template.
fn application() -> Template {
    Template::read("template.yaml")
}

#[test]
fn every_function_has_a_package_and_the_other_way_round() {
    let template = application();
    let deployed: BTreeSet<String> = template.functions().map(|function| function.name().to_owned()).collect();
    let mains = files::rust().into_iter().filter(|path| path.starts_with("functions") && path.ends_with("src/main.rs"));
    let folder =
        |path: std::path::PathBuf| path.ancestors().nth(2).unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(deployed, mains.map(folder).collect());
    for function in template.functions() {
        let name = function.name();
        assert_eq!(function.0.id, pascal(name));
        assert_eq!(*function.0.get("/FunctionName"), json!({ "Fn::Sub": format!("${{AWS::StackName}}-{name}") }));
    }
}

#[test]
fn all_connections_together_fit_into_the_database() {
    let template = application();
    let reserved: u64 = template.functions().map(|function| function.0.number("/ReservedConcurrentExecutions")).sum();
    let parameter = &template.0["Parameters"]["DatabaseConnectionsMax"];
    assert_eq!(parameter["MinValue"], reserved, "the smallest database that CloudFormation accepts");
    assert_eq!(parameter["Default"], reserved);
    let samconfig = files::read("samconfig.toml");
    let stages: Vec<u64> =
        samconfig.lines().filter_map(|line| line.strip_prefix("DatabaseConnectionsMax = ")?.parse().ok()).collect();
    assert_eq!(stages.len(), 4);
    assert!(stages.iter().all(|connections| *connections >= reserved), "{stages:?}");
    // AWS keeps 100 of an account's concurrency unreserved: a smaller account refuses the whole deployment.
    let account = format!("the limit must be {} or more", reserved + 100);
    assert!(files::read("infra/README.md").contains(&account), "infra/README.md does not say: {account}");
}

#[test]
fn every_function_has_a_role_and_a_log_group_of_its_own() {
    let template = application();
    assert_eq!(template.0["Globals"]["Function"]["LoggingConfig"]["LogFormat"], "JSON");
    for function in template.functions() {
        let (id, name) = (function.0.id, function.name());
        assert_eq!(*function.0.get("/Role"), json!({ "Fn::GetAtt": [format!("{id}Role"), "Arn"] }));
        let logs = function.0.get("/LoggingConfig/LogGroup")["Ref"].as_str().unwrap();
        assert_eq!(logs, format!("{id}Logs"));
        let group = template.resource(logs);
        assert_eq!(
            *group.get("/LogGroupName"),
            json!({ "Fn::Sub": format!("/aws/lambda/${{AWS::StackName}}-{name}") })
        );
        assert!(function.0.get("/Policies").is_null(), "SAM would add policies of its own");
    }
    for group in template.of_type("AWS::Logs::LogGroup") {
        assert_eq!(*group.get("/RetentionInDays"), json!({ "Ref": "LogRetentionDays" }), "{}", group.id);
    }
}

#[test]
fn traffic_enters_by_the_alias_after_the_migration() {
    let template = application();
    let migration = template.resource("DatabaseMigration");
    assert_eq!(*migration.get("/MigrationsHash"), json!({ "Ref": "MigrationsHash" }), "or an update would not run it");
    let migrate = template.resource("Migrate");
    assert!(migration.number("/ServiceTimeout") > migrate.number("/Timeout"), "our own answer comes first");
    for function in template.functions().filter(|function| function.name() != "migrate") {
        assert_eq!(function.0.whole["DependsOn"], "DatabaseMigration", "{}", function.0.id);
        assert_eq!(*function.0.get("/AutoPublishAlias"), json!("live"), "{}", function.0.id);
        assert_eq!(*function.0.get("/AutoPublishAliasAllProperties"), json!(true), "{}", function.0.id);
        let canary = function.0.get("/DeploymentPreference/Enabled");
        // Two versions on one queue, or of one schedule, are not a canary.
        let wanted = if function.kind() == edge::Kind::Http { json!({ "Ref": "CanaryEnabled" }) } else { Value::Null };
        assert_eq!(*canary, wanted, "{}", function.0.id);
    }
    assert_eq!(
        template.0["Parameters"]["CanaryEnabled"]["Default"], "false",
        "the first deployment has no old version"
    );
}

#[test]
fn schedules_are_bounded_and_named_after_the_stack() {
    let template = application();
    let mut jobs = 0;
    for function in template.functions() {
        let Some(schedule) = function.schedule() else { continue };
        jobs += 1;
        let name = function.name();
        assert_eq!(*schedule.get("/ScheduleExpression"), json!("rate(1 minute)"), "{name}");
        assert_eq!(*schedule.get("/Name"), json!({ "Fn::Sub": format!("${{AWS::StackName}}-{name}") }));
        assert_eq!(*schedule.get("/DeadLetterConfig/Arn"), json!({ "Fn::GetAtt": ["SchedulesDlq", "Arn"] }), "{name}");
        assert!(schedule.number("/RetryPolicy/MaximumRetryAttempts") <= 3, "{name}");
        assert!(schedule.number("/RetryPolicy/MaximumEventAgeInSeconds") <= 60, "{name}: the next minute has its own");
        assert_eq!(function.0.number("/EventInvokeConfig/MaximumRetryAttempts"), 0, "{name}");
        assert_eq!(function.0.number("/ReservedConcurrentExecutions"), 1, "{name}: passes do not overlap");
    }
    assert_eq!(jobs, 2);
}

#[test]
fn a_bucket_with_a_fixed_name_is_not_in_the_way_of_the_next_deployment() {
    let template = application();
    for bucket in template.of_type("AWS::S3::Bucket") {
        assert!(!bucket.get("/BucketName").is_null(), "{}: roles and the queue's policy name it", bucket.id);
        // `Retain` keeps it even when the deployment that made it fails: the next one would find the name taken.
        let policy = bucket.whole["DeletionPolicy"].as_str().unwrap();
        assert!(matches!(policy, "Delete" | "RetainExceptOnCreate"), "{}: {policy}", bucket.id);
    }
    assert_eq!(template.resource("UploadsBucket").whole["DeletionPolicy"], "RetainExceptOnCreate", "images stay");
}

#[test]
fn what_the_database_logs_names_nobody_and_is_not_kept_for_ever() {
    let infra = Template::read("infra/database.yaml");
    let parameters = infra.resource("DatabaseParameters").get("/Parameters");
    // The detail of a violated constraint quotes the row.
    assert_eq!(parameters["log_error_verbosity"], "terse");
    for setting in ["log_parameter_max_length", "log_parameter_max_length_on_error"] {
        assert_eq!(parameters[setting], "0", "{setting}");
    }
    let database = infra.resource("Database");
    let exported = database.get("/EnableCloudwatchLogsExports").as_array().unwrap();
    assert!(!exported.is_empty());
    for kind in exported {
        let name = format!("/aws/rds/instance/${{AWS::StackName}}/{}", kind.as_str().unwrap());
        let group = infra
            .of_type("AWS::Logs::LogGroup")
            .find(|group| *group.get("/LogGroupName") == json!({ "Fn::Sub": name }))
            .unwrap_or_else(|| panic!("RDS would make {name}, and keep it"));
        assert_eq!(*group.get("/RetentionInDays"), json!({ "Ref": "LogRetentionDays" }), "{}", group.id);
        let before = database.whole["DependsOn"].as_array().unwrap();
        assert!(before.contains(&json!(group.id)), "{} must be there before the database", group.id);
    }
}
