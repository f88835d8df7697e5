//! The gateways' libraries, asked through `sdk.py` in a process of its own.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tests::files;

/// Answers in the order of the questions.
pub(crate) fn ask(questions: &[Value]) -> Vec<Option<String>> {
    let script = files::root().join("tests/oracles/sdk.py");
    let mut child = Command::new(crate::told("TIRADA_TEST_SDK_PYTHON"))
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // It reads everything before it writes anything.
    child.stdin.take().unwrap().write_all(json!(questions).to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "sdk.py ended with {}", output.status);
    let answers: Vec<Option<String>> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answers.len(), questions.len());
    answers
}

/// Signatures, none refused.
pub(crate) fn sign(questions: &[Value]) -> Vec<String> {
    ask(questions).into_iter().map(Option::unwrap).collect()
}

/// The question for Stripe's signature.
pub(crate) fn stripe_sign(secret: &str, at_seconds: i64, body: &[u8]) -> Value {
    json!({ "ask": "stripe-sign", "secret": secret, "at": at_seconds, "body": hex(body) })
}

/// The question whether Stripe's library takes a webhook.
pub(crate) fn stripe_check(secret: &str, header: Option<&str>, body: &[u8]) -> Value {
    json!({ "ask": "stripe-check", "secret": secret, "header": header, "body": hex(body) })
}

/// The question for Mercado Pago's signature.
pub(crate) fn mercado_pago_sign(secret: &str, ts: i64, data_id: Option<&str>, request_id: Option<&str>) -> Value {
    json!({ "ask": "mercado-pago-sign", "secret": secret, "ts": ts, "data_id": data_id, "request_id": request_id })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
