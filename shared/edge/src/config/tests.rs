use secrecy::ExposeSecret;

use super::*;
use crate::auth::development;
use crate::environment::tests::of;

const LOCAL: &[(&str, &str)] = &[
    ("TIRADA_STAGE", "local"),
    ("TIRADA_DATABASE_URL", "postgres://tirada_app:secret@127.0.0.1/tirada"),
    ("TIRADA_FUNCTION_TIMEOUT_MS", "10000"),
];

const AWS: &[(&str, &str)] = &[
    ("TIRADA_STAGE", "prod"),
    ("TIRADA_DATABASE_URL", ""),
    ("TIRADA_DATABASE_HOST", "proxy.example"),
    ("TIRADA_DATABASE_NAME", "tirada"),
    ("TIRADA_DATABASE_USER", "tirada_app"),
    ("AWS_REGION", "sa-east-1"),
    ("TIRADA_FUNCTION_TIMEOUT_MS", "60000"),
    ("TIRADA_QUEUE_RESERVE_NUMBERS_URL", "https://sqs.example/1/reserve-numbers"),
];

/// `base` with some variables replaced or added.
fn read(base: &[(&str, &str)], changes: &[(&str, &str)], kind: Kind) -> Result<Config, ConfigError> {
    Config::read(&of(&[base, changes].concat()), kind)
}

fn refusal(base: &[(&str, &str)], changes: &[(&str, &str)], kind: Kind) -> String {
    read(base, changes, kind).unwrap_err().to_string()
}

#[test]
fn a_local_function_has_a_url() {
    let config = read(LOCAL, &[], Kind::Http).unwrap();
    assert_eq!(config.stage, Stage::Local);
    assert_eq!(config.borrow_timeout, limits::BORROW_TIMEOUT);
    assert!(matches!(&config.database, DatabaseLocation::Url(url) if url.expose_secret().starts_with("postgres://")));
    assert!(!format!("{config:?}").contains("secret@"), "passwords never reach a log");
}

#[test]
fn a_function_on_aws_has_a_proxy_and_its_queues() {
    let config = read(AWS, &[], Kind::Worker).unwrap();
    assert!(matches!(&config.database, DatabaseLocation::Iam { port: 5432, region, .. } if region == "sa-east-1"));
    assert_eq!(config.queues.url(Queue::ReserveNumbers).unwrap(), "https://sqs.example/1/reserve-numbers");
    let missing = config.queues.url(Queue::ReleaseNumbers).unwrap_err().to_string();
    assert_eq!(missing, "TIRADA_QUEUE_RELEASE_NUMBERS_URL is not set");
}

#[test]
fn what_is_missing_or_unusable_is_named() {
    assert_eq!(refusal(LOCAL, &[("TIRADA_STAGE", "")], Kind::Http), "TIRADA_STAGE is not set");
    assert!(refusal(LOCAL, &[("TIRADA_STAGE", "test")], Kind::Http).starts_with("TIRADA_STAGE must be local,"));
    assert!(refusal(LOCAL, &[("TIRADA_DATABASE_URL", "")], Kind::Http).contains("TIRADA_DATABASE_HOST"));
    assert!(refusal(LOCAL, &[("TIRADA_DATABASE_HOST", "x")], Kind::Http).contains("exclude each other"));
    assert!(refusal(AWS, &[("AWS_REGION", "")], Kind::Worker).contains("AWS_REGION"));
    assert!(refusal(AWS, &[("TIRADA_DATABASE_PORT", "70000")], Kind::Worker).contains("TIRADA_DATABASE_PORT"));
    assert!(refusal(LOCAL, &[("TIRADA_FUNCTION_TIMEOUT_MS", "")], Kind::Http).contains("FUNCTION_TIMEOUT_MS"));
}

#[test]
fn timeouts_nest_or_the_broken_link_is_named() {
    let borrow = |ms| [("TIRADA_DATABASE_BORROW_TIMEOUT_MS", ms)];
    let function = |ms| [("TIRADA_FUNCTION_TIMEOUT_MS", ms)];
    assert!(read(LOCAL, &borrow("5001"), Kind::Http).is_ok());
    let text = refusal(LOCAL, &borrow("5000"), Kind::Http);
    assert!(text.contains("STATEMENT_TIMEOUT (5000 ms) >= TIRADA_DATABASE_BORROW_TIMEOUT_MS (5000 ms)"), "{text}");
    assert!(refusal(LOCAL, &borrow("9000"), Kind::Http).contains(">= REQUEST_BUDGET"));
    assert!(refusal(LOCAL, &function("9000"), Kind::Http).contains("REQUEST_BUDGET (9000 ms) >="));
    assert!(refusal(LOCAL, &function("30000"), Kind::Http).contains(">= GATEWAY_TIMEOUT"));
    assert!(read(LOCAL, &function("60000"), Kind::Worker).is_ok());
    let text = refusal(LOCAL, &function("14000"), Kind::Worker);
    assert!(text.contains(">= TIRADA_FUNCTION_TIMEOUT_MS less DEADLINE_MARGIN (6000 ms)"), "{text}");
}

#[test]
fn failpoints_and_the_development_key_stay_local() {
    let failpoints = [("FAILPOINTS", "http.request=panic")];
    assert!(read(LOCAL, &failpoints, Kind::Http).is_ok());
    assert!(refusal(AWS, &failpoints, Kind::Worker).contains("must not be used on the stage prod"));

    let keys = [("TIRADA_TOKEN_KEYS", development::JWKS), ("TIRADA_TOKEN_ISSUER", "tirada")];
    assert!(read(LOCAL, &keys, Kind::Http).unwrap().token_keys().is_ok());
    let refused = read(AWS, &keys, Kind::Worker).unwrap().token_keys().unwrap_err().to_string();
    assert!(refused.contains("development signing key"), "{refused}");
    let missing = read(LOCAL, &[], Kind::Http).unwrap().token_keys().unwrap_err().to_string();
    assert_eq!(missing, "TIRADA_TOKEN_KEYS is not set");
}
