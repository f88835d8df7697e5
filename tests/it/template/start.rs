//! Every function starts with exactly the variables that the template gives it; its timeouts nest.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::limits;
use domain::messages::Queue;
use edge::queue::SqsQueue;
use edge::{Config, Environment, Kind};
use serde_json::Value;
use tests::template::Template;

use super::{Function, application, functions};

/// A value as CloudFormation would resolve it, on AWS or locally.
fn resolved(template: &Template, value: &Value, stage: &str) -> String {
    if let Some(text) = value.as_str() {
        return text.to_owned();
    }
    let name = value["Ref"].as_str().unwrap_or_else(|| panic!("{value} is no reference"));
    let on_aws = stage != "local";
    match name {
        "Stage" => stage.into(),
        "DatabaseUrl" if !on_aws => "postgres://tirada_app:x@127.0.0.1/tirada".into(),
        "DatabaseProxyEndpoint" if on_aws => "tirada.proxy.example".into(),
        queue if !template.0["Resources"][queue].is_null() => format!("https://sqs.example/{queue}"),
        parameter => match &template.0["Parameters"][parameter]["Default"] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        },
    }
}

fn environment(template: &Template, function: Function<'_>, stage: &str) -> Environment {
    let global = template.0["Globals"]["Function"]["Environment"]["Variables"].as_object().unwrap();
    let set = global.iter().chain(function.variables());
    let mut variables: BTreeMap<String, String> =
        set.map(|(name, value)| (name.clone(), resolved(template, value, stage))).collect();
    for name in ["AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"] {
        variables.insert(name.into(), "us-east-1".into());
    }
    Environment::from_lookup(move |name| variables.get(name).cloned())
}

#[test]
fn every_function_starts_on_every_stage() {
    let template = application();
    for stage in ["local", "dev", "staging", "prod"] {
        for function in functions(&template).filter(|function| function.name() != "migrate") {
            let name = function.name();
            let environment = environment(&template, function, stage);
            let config =
                Config::read(&environment, function.kind()).unwrap_or_else(|e| panic!("{name} on {stage}: {e}"));
            assert_eq!(config.stage.word(), stage);
            if matches!(name, "orders" | "order-status") {
                config.token_keys().unwrap_or_else(|error| panic!("{name} on {stage}: {error}"));
            }
            let needed: &[Queue] = match name {
                "orders" | "reconcile-orders" => &Queue::ALL,
                "reserve-numbers" => &[Queue::ReserveNumbers],
                "release-numbers" => &[Queue::ReleaseNumbers],
                _ => &[],
            };
            SqsQueue::new(&config, &environment, needed).unwrap_or_else(|error| panic!("{name} on {stage}: {error}"));
        }
    }
}

#[test]
fn each_function_knows_its_own_timeout() {
    let template = application();
    for function in functions(&template) {
        let millis = function.variables()["TIRADA_FUNCTION_TIMEOUT_MS"].as_str().unwrap();
        assert_eq!(millis, (function.0.number("/Timeout") * 1_000).to_string(), "{}", function.name());
    }
}

#[test]
fn timeouts_nest() {
    let template = application();
    let borrow = template.0["Globals"]["Function"]["Environment"]["Variables"]["TIRADA_DATABASE_BORROW_TIMEOUT_MS"]
        .as_str()
        .unwrap();
    let borrow = Duration::from_millis(borrow.parse().unwrap());
    let infra = Template::read("infra/database.yaml");
    let pools: Vec<u64> = infra
        .resources()
        .filter(|resource| resource.whole["Type"] == "AWS::RDS::DBProxyTargetGroup")
        .map(|group| group.number("/ConnectionPoolConfigurationInfo/ConnectionBorrowTimeout"))
        .collect();
    assert_eq!(pools, [borrow.as_secs()], "the proxy waits as long as we do");
    for function in functions(&template).filter(|function| function.name() != "migrate") {
        let timeout = Duration::from_secs(function.0.number("/Timeout"));
        let mut chain = vec![limits::LOCK_TIMEOUT, limits::STATEMENT_TIMEOUT, borrow];
        match function.kind() {
            Kind::Http => chain.extend([limits::REQUEST_BUDGET, timeout, limits::GATEWAY_TIMEOUT]),
            Kind::Worker => chain.extend([timeout - limits::DEADLINE_MARGIN, timeout]),
        }
        assert!(chain.windows(2).all(|pair| pair[0] < pair[1]), "{}: {chain:?}", function.name());
    }
}
