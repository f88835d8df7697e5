//! Stripe's signatures: ours before their library, theirs before us. One table; each row is signed by everybody who
//! can and judged by both.

use gateways::{Credentials, WebhookError, WebhookEvent, WebhookRequest, sign_stripe, verify};
use lambda_http::http::{HeaderMap, HeaderValue};
use secrecy::SecretString;
use serde_json::json;
use tests::gateway::signatures;
use time::{Duration, OffsetDateTime};

use crate::{FRESH, OLD_SECRET, OTHER_SECRET, SECRET, SIGNERS, STALE, sdk};

const BODY: &str = r#"{"id": "evt_1", "object": "event", "type": "payment_intent.succeeded",
    "data": {"object": {"id": "pi_1", "object": "payment_intent", "description": "Campaña — número 502"}}}"#;

/// A webhook as it arrives.
struct Sample {
    header: Option<String>,
    body: Vec<u8>,
}

struct Case {
    name: &'static str,
    secret: &'static str,
    age_s: i64,
    /// What happens to it on the way.
    change: fn(&mut Sample),
    ours: Result<(), WebhookError>,
    /// Whether their library takes it.
    theirs: bool,
}

/// Signed by the store's secret just now, unchanged, and taken by both.
const GOOD: Case = Case { name: "as signed", secret: SECRET, age_s: 0, change: |_| (), ours: Ok(()), theirs: true };

/// Refused by both.
const BAD: Case = Case { ours: Err(WebhookError::BadSignature), theirs: false, ..GOOD };

const CASES: [Case; 21] = [
    GOOD,
    Case { name: "some minutes ago", age_s: FRESH, ..GOOD },
    Case { name: "by a clock that is ahead", age_s: -FRESH, ..GOOD },
    Case { name: "by the secret that is being replaced", secret: OLD_SECRET, ..GOOD },
    Case {
        name: "a wrong signature before",
        change: |sample| sample.edit(|h| h.replace(",v1=", ",v1=00,v1=")),
        ..GOOD
    },
    Case { name: "a wrong signature behind", change: |sample| sample.edit(|h| format!("{h},{}", wrong())), ..GOOD },
    Case { name: "five wrong ones around", change: |sample| sample.edit(around), ..GOOD },
    Case { name: "another scheme besides", change: |sample| sample.edit(|h| format!("{h},v0=00")), ..GOOD },
    Case { name: "the time last", change: |sample| sample.edit(time_last), ..GOOD },
    // Their library compares texts and does not trim; hexadecimal digits mean the same in both cases.
    Case { name: "digits in upper case", change: |sample| sample.edit(upper), theirs: false, ..GOOD },
    Case { name: "spaces", change: |sample| sample.edit(|h| h.replace(',', ", ")), theirs: false, ..GOOD },
    Case { name: "by another store's secret", secret: OTHER_SECRET, ..BAD },
    Case { name: "too long ago", age_s: STALE, ours: Err(WebhookError::Stale), ..BAD },
    // Their library does not mind.
    Case { name: "in the future", age_s: -STALE, ours: Err(WebhookError::Stale), theirs: true, ..GOOD },
    Case { name: "with a newer time", change: |sample| sample.edit(|h| h.replacen("t=", "t=1", 1)), ..BAD },
    Case { name: "only another scheme", change: |sample| sample.edit(|h| h.replace("v1=", "v0=")), ..BAD },
    Case { name: "without the time", change: |sample| sample.edit(|h| h.split_once(',').unwrap().1.into()), ..BAD },
    Case { name: "an empty signature", change: |sample| sample.edit(|_| String::new()), ..BAD },
    Case { name: "unsigned", change: |sample| sample.header = None, ours: Err(WebhookError::Missing), ..BAD },
    Case { name: "one byte more", change: |sample| sample.body.push(b'\n'), ..BAD },
    Case { name: "the body written anew", change: |sample| sample.body = compact(&sample.body), ..BAD },
];

impl Sample {
    fn edit(&mut self, edit: impl FnOnce(&str) -> String) {
        self.header = self.header.as_deref().map(edit);
    }
}

fn wrong() -> String {
    format!("v1={}", "0".repeat(64))
}

fn around(header: &str) -> String {
    let (time, v1) = header.split_once(',').unwrap();
    let wrong = wrong();
    format!("{time},{wrong},{wrong},{v1},{wrong},{wrong},{wrong}")
}

fn time_last(header: &str) -> String {
    let (time, v1) = header.split_once(',').unwrap();
    format!("{v1},{time}")
}

fn upper(header: &str) -> String {
    let (time, v1) = header.split_once(",v1=").unwrap();
    format!("{time},v1={}", v1.to_uppercase())
}

fn compact(body: &[u8]) -> Vec<u8> {
    serde_json::from_slice::<serde_json::Value>(body).unwrap().to_string().into_bytes()
}

fn ours(sample: &Sample, now: OffsetDateTime) -> Result<WebhookEvent, WebhookError> {
    let account = json!({ "secret_key": "sk_test_1", "webhook_secrets": [SECRET, OLD_SECRET] }).to_string();
    let account = Credentials::parse(domain::payments::Gateway::Stripe, account.as_bytes()).unwrap();
    let mut headers = HeaderMap::new();
    if let Some(header) = &sample.header {
        headers.insert("stripe-signature", HeaderValue::from_str(header).unwrap());
    }
    verify(&account, &WebhookRequest { headers: &headers, query: "", body: &sample.body, now })
}

/// Which samples their library takes, under one of the secrets.
fn theirs<'a>(samples: impl Iterator<Item = &'a Sample>) -> Vec<bool> {
    let check = |sample: &Sample| {
        [SECRET, OLD_SECRET].map(|secret| sdk::stripe_check(secret, sample.header.as_deref(), &sample.body))
    };
    let questions: Vec<_> = samples.flat_map(check).collect();
    sdk::ask(&questions).chunks(2).map(|refusals| refusals.iter().any(Option::is_none)).collect()
}

#[test]
fn both_judge_alike_whoever_signed() {
    let now = OffsetDateTime::now_utc();
    let at = |case: &Case| now - Duration::seconds(case.age_s);
    let sign = |case: &Case| sdk::stripe_sign(case.secret, at(case).unix_timestamp(), BODY.as_bytes());
    let by_library = sdk::sign(&CASES.iter().map(sign).collect::<Vec<_>>());
    let mut samples = Vec::new();
    for (case, by_library) in CASES.iter().zip(by_library) {
        let by_adapter = sign_stripe(&SecretString::from(case.secret), at(case), BODY.as_bytes());
        let by_fake = signatures::stripe(case.secret, at(case).unix_timestamp(), BODY);
        for (signer, header) in SIGNERS.into_iter().zip([by_adapter, by_fake, by_library]) {
            let mut sample = Sample { header: Some(header), body: BODY.into() };
            (case.change)(&mut sample);
            samples.push((case, signer, sample));
        }
    }
    let theirs = theirs(samples.iter().map(|(_, _, sample)| sample));
    for ((case, signer, sample), theirs) in samples.iter().zip(theirs) {
        let ours = ours(sample, now);
        assert_eq!(ours.as_ref().map(|_| ()).map_err(|error| *error), case.ours, "{}, {signer}: ours", case.name);
        assert_eq!(theirs, case.theirs, "{}, {signer}: theirs", case.name);
        if let Ok(event) = ours {
            assert_eq!((event.event_id.as_str(), event.payment_id.as_deref()), ("evt_1", Some("pi_1")));
        }
    }
}

#[test]
fn both_notice_every_flipped_bit() {
    let now = OffsetDateTime::now_utc();
    let header = sdk::sign(&[sdk::stripe_sign(SECRET, now.unix_timestamp(), BODY.as_bytes())]).remove(0);
    let in_body = (0..BODY.len() * 8).map(|bit| Sample { header: Some(header.clone()), body: flipped(BODY, bit) });
    // The lowest bit of a digit makes it another digit, or none.
    let digits = (0..header.len()).filter(|at| header.as_bytes()[*at].is_ascii_hexdigit());
    let in_header = digits
        .map(|at| Sample { header: Some(String::from_utf8(flipped(&header, at * 8)).unwrap()), body: BODY.into() });
    let samples: Vec<_> = in_body.chain(in_header).collect();
    for ((number, sample), theirs) in samples.iter().enumerate().zip(theirs(samples.iter())) {
        assert_eq!(ours(sample, now), Err(WebhookError::BadSignature), "{number}: {:?}", sample.header);
        assert!(!theirs, "{number}: {:?}", sample.header);
    }
}

fn flipped(text: &str, bit: usize) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes[bit / 8] ^= 1 << (bit % 8);
    bytes
}
