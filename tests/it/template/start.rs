//! Every function starts with exactly the variables that the template gives it; its timeouts nest.

use std::time::Duration;

use domain::limits;
use domain::messages::Queue;
use edge::auth::development;
use edge::http::OriginSecret;
use edge::login_keys;
use edge::queue::SqsQueue;
use edge::sealing::{DEVELOPMENT_KEYS, SealingKeys};
use edge::storage::Bucket;
use edge::{Config, Environment, Kind};
use send_login_code::Sender;
use send_notice::Senders;
use serde_json::json;
use staff::Post;
use tests::files;
use tests::template::{Function, Template};

use super::application;

const VERSION: &str = "01995b1e-6c00-7a10-8f21-3b5c7d9e1f02";

/// Secrets by the parameters that name them, and what stands in each.
const SECRETS: [(&str, &str); 4] = [
    ("SealingKeys", KEYS),
    ("LoginKeys", KEYS),
    ("SigningKeys", SIGNING_KEYS),
    ("Origin", "0123456789abcdef0123456789abcdef"),
];
const KEYS: &str = r#"{"keys":[{"id":"1","key":"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="}]}"#;
/// The example of RFC 7517, appendix A.2, and its public half.
const SIGNING_KEYS: &str = r#"{"keys":[{"kid":"1","kty":"EC","crv":"P-256",
    "x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM",
    "d":"870MB6gfuTJ4HtUnUvYMyJpr5eUZNP4Bk43bVdj3eAE"}]}"#;
const TOKEN_KEYS: &str = r#"{"keys":[{"kid":"1","kty":"EC","crv":"P-256",
    "x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}]}"#;

fn secret_arn(name: &str) -> String {
    format!("arn:aws:secretsmanager:us-east-1:000000000000:secret:{name}-000000")
}

/// The parameters of a stage.
fn given(stage: &str) -> Vec<(String, String)> {
    if stage == "local" {
        let given = [
            ("DatabaseUrl", "postgres://tirada_app:x@127.0.0.1/tirada"),
            ("SealingKeys", DEVELOPMENT_KEYS),
            ("LoginKeys", login_keys::DEVELOPMENT_KEYS),
            ("SigningKeys", development::SIGNING_KEYS),
            ("TokenKeys", development::JWKS),
            ("PhonesFile", "phones.jsonl"),
            ("MailsFile", "mails.jsonl"),
        ];
        return given.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    }
    let secrets = SECRETS.iter().flat_map(|(name, _)| {
        [(format!("{name}SecretArn"), secret_arn(name)), (format!("{name}SecretVersion"), VERSION.to_owned())]
    });
    let rest = [
        ("DatabaseProxyEndpoint", "tirada.proxy.example"),
        ("TokenKeys", TOKEN_KEYS),
        ("MailFrom", "staff@example.org"),
    ];
    secrets.chain(rest.map(|(name, value)| (name.to_owned(), value.to_owned()))).collect()
}

/// A function's variables as CloudFormation would set them on AWS or locally, secrets included.
fn environment(template: &Template, function: Function<'_>, stage: &str) -> Environment {
    let queues = template
        .of_type("AWS::SQS::Queue")
        .map(|queue| (queue.id.to_owned(), format!("https://sqs.example/{}", queue.id)));
    let names = [("Stage", stage), ("ExportsBucket", "exports.example"), ("UploadsBucket", "uploads.example")];
    let names = names.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let given = given(stage).into_iter().chain(queues).chain(names).collect();
    let mut variables = template.environment(function, &given);
    for name in ["AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"] {
        variables.insert(name.into(), "us-east-1".into());
    }
    for value in variables.values_mut().filter(|value| value.starts_with("{{")) {
        let resolve = |name: &str| {
            let arn = secret_arn(name);
            format!("{{{{resolve:secretsmanager:{arn}:SecretString:::{VERSION}}}}}")
        };
        let secret = SECRETS.iter().find(|(name, _)| *value == resolve(name));
        let (_, content) = secret.unwrap_or_else(|| panic!("{value} is no secret"));
        (*content).clone_into(value);
    }
    Environment::from_lookup(move |name| variables.get(name).cloned())
}

/// Whether a function's package uses a crate of ours.
fn uses(function: &str, package: &str) -> bool {
    let manifests = files::below("functions", "toml");
    let own = manifests.into_iter().find(|path| path.ends_with(format!("{function}/Cargo.toml"))).unwrap();
    files::read(own).contains(&format!("\n{package}.workspace"))
}

#[test]
fn every_function_starts_on_every_stage() {
    let template = application();
    for stage in ["local", "dev", "staging", "prod"] {
        for function in template.functions().filter(|function| function.name() != "migrate") {
            let name = function.name();
            let environment = environment(&template, function, stage);
            let config =
                Config::read(&environment, function.kind()).unwrap_or_else(|e| panic!("{name} on {stage}: {e}"));
            assert_eq!(config.stage.word(), stage);
            if matches!(name, "orders" | "order-status" | "payments" | "login" | "staff" | "admin") {
                config.token_keys().unwrap_or_else(|error| panic!("{name} on {stage}: {error}"));
            }
            // Who asks gateways opens stores' credentials, who signs staff in the secrets of their one-time passwords,
            // and nobody else can.
            let keys = environment.optional("TIRADA_SEALING_KEYS");
            assert_eq!(keys.is_some(), uses(name, "cashier") || name == "staff", "{name} on {stage}");
            if let Some(keys) = keys {
                SealingKeys::from_json(&keys, config.stage)
                    .unwrap_or_else(|error| panic!("{name} on {stage}: {error}"));
            }
            // Who signs tokens, and who derives codes, and nobody else.
            let signs = matches!(name, "login" | "staff");
            assert_eq!(environment.optional("TIRADA_SIGNING_KEYS").is_some(), signs, "{name} on {stage}");
            if signs {
                config.signing_keys(&environment).unwrap_or_else(|error| panic!("{name} on {stage}: {error}"));
                OriginSecret::from_environment(&environment)
                    .unwrap_or_else(|error| panic!("{name} on {stage}: {error}"));
                assert_eq!(environment.optional("TIRADA_ORIGIN_SECRET").is_some(), stage != "local");
            }
            let derives = matches!(name, "login" | "send-login-code" | "staff");
            assert_eq!(environment.optional("TIRADA_LOGIN_KEYS").is_some(), derives, "{name} on {stage}");
            if derives {
                config.login_keys(&environment).unwrap_or_else(|error| panic!("{name} on {stage}: {error}"));
            }
            if name == "send-login-code" {
                Sender::from_config(&config, &environment).unwrap_or_else(|error| panic!("{name} on {stage}: {error}"));
            }
            if name == "send-notice" {
                Senders::from_config(&config, &environment)
                    .unwrap_or_else(|error| panic!("{name} on {stage}: {error}"));
            }
            if name == "admin" {
                for bucket in ["TIRADA_EXPORTS_BUCKET", "TIRADA_UPLOADS_BUCKET"] {
                    Bucket::from_config(&config, &environment, bucket)
                        .unwrap_or_else(|error| panic!("{name} on {stage}: {error}"));
                }
            }
            if name == "check-uploads" {
                check_uploads::Bucket::from_config(&config, &environment)
                    .unwrap_or_else(|error| panic!("{name} on {stage}: {error}"));
            }
            if name == "write-exports" {
                write_exports::Bucket::from_config(&config, &environment)
                    .unwrap_or_else(|error| panic!("{name} on {stage}: {error}"));
            }
            if name == "staff" {
                Post::from_config(&config, &environment).unwrap_or_else(|error| panic!("{name} on {stage}: {error}"));
            }
            assert_eq!(
                environment.optional("TIRADA_SANDBOX_URL"),
                None,
                "{name}: there is no sandbox unless one is named"
            );
            let needed: Vec<Queue> = match name {
                "orders" => Queue::OF_ORDERS.into(),
                "reconcile-orders" => Queue::ALL.into(),
                "login" => vec![Queue::SendLoginCode],
                "payment-webhook" => vec![Queue::SettlePayment],
                worker => Queue::from_name(worker).into_iter().collect(),
            };
            SqsQueue::new(&config, &environment, &needed).unwrap_or_else(|error| panic!("{name} on {stage}: {error}"));
        }
    }
}

#[test]
fn keys_and_the_sandbox_are_only_where_they_may_be() {
    let template = application();
    for keys in ["SealingKeys", "SigningKeys", "LoginKeys"] {
        assert_eq!(template.0["Parameters"][keys]["NoEcho"], true, "{keys}");
    }
    let rules = template.0["Rules"].to_string();
    for (parameter, must_be_empty) in [
        ("SealingKeys", true),
        ("SandboxUrl", true),
        ("SealingKeysSecretArn", false),
        ("SealingKeysSecretVersion", false),
        ("SigningKeys", true),
        ("SigningKeysSecretArn", false),
        ("SigningKeysSecretVersion", false),
        ("LoginKeys", true),
        ("LoginKeysSecretArn", false),
        ("LoginKeysSecretVersion", false),
        ("PhonesFile", true),
        ("MailsFile", true),
        ("MailFrom", false),
        ("DatabaseCaPem", false),
    ] {
        let is_empty = json!({ "Fn::Equals": [{ "Ref": parameter }, ""] });
        let assertion = if must_be_empty { is_empty } else { json!({ "Fn::Not": [is_empty] }) };
        assert!(rules.contains(&format!("{{\"Assert\":{assertion},")), "no rule says {assertion}");
    }
    // Without public keys everything would be deployed, and nobody could log in.
    let none = json!({ "Fn::Equals": [{ "Ref": "TokenKeys" }, template.0["Parameters"]["TokenKeys"]["Default"]] });
    assert!(rules.contains(&json!({ "Fn::Not": [none] }).to_string()), "no rule says that there are TokenKeys");
    for line in files::read("samconfig.toml").lines() {
        for keys in ["SealingKeys =", "SigningKeys =", "LoginKeys ="] {
            assert!(!line.starts_with(keys), "keys in the clear: {line}");
        }
        assert!(!line.starts_with("SandboxUrl ="), "{line}: only the local cloud has one");
    }
}

#[test]
fn each_function_knows_its_own_timeout() {
    let template = application();
    let exports = Duration::from_secs(template.function("write-exports").0.number("/Timeout"));
    assert!(exports - limits::DEADLINE_MARGIN > limits::EXPORT_TIME, "or no export would ever begin");
    for function in template.functions() {
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
    for function in template.functions().filter(|function| function.name() != "migrate") {
        let timeout = Duration::from_secs(function.0.number("/Timeout"));
        let mut chain = vec![limits::LOCK_TIMEOUT, limits::STATEMENT_TIMEOUT, borrow];
        match function.kind() {
            Kind::Http => chain.extend([limits::REQUEST_BUDGET, timeout, limits::GATEWAY_TIMEOUT]),
            Kind::Worker => chain.extend([timeout - limits::DEADLINE_MARGIN, timeout]),
        }
        assert!(chain.windows(2).all(|pair| pair[0] < pair[1]), "{}: {chain:?}", function.name());
    }
}
