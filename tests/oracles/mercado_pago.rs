//! Mercado Pago's signatures: ours before their library, theirs before us. One table; each row is signed by everybody
//! who can and judged by both.

use domain::payments::Gateway;
use gateways::{Credentials, WebhookError, WebhookEvent, WebhookRequest, sign_mercado_pago, verify};
use lambda_http::http::{HeaderMap, HeaderValue};
use secrecy::SecretString;
use serde_json::{Value, json};
use tests::gateway::signatures;
use time::{Duration, OffsetDateTime};

use crate::{FRESH, OLD_SECRET, OTHER_SECRET, SECRET, SIGNERS, STALE, sdk};

/// Not signed, and about another payment than any query.
const BODY: &[u8] = br#"{"id": 1, "type": "payment", "action": "payment.updated", "data": {"id": "666"}}"#;

/// What their library is told about how old a signature may be, if anything, in seconds.
const TOLERANCE_S: i64 = 300;

/// A notification as it arrives. Nothing is a pair that is absent.
#[derive(Clone)]
struct Sample {
    header: Option<String>,
    request_id: Option<String>,
    /// The value of `data.id`, not yet encoded.
    data_id: Option<String>,
}

/// What their library says.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Theirs {
    Taken,
    /// Taken only when it is not told how old a signature may be.
    TakenAtAnyAge,
    Refused,
}

struct Case {
    name: &'static str,
    secret: &'static str,
    age_s: i64,
    is_in_milliseconds: bool,
    /// What is signed.
    data_id: Option<&'static str>,
    request_id: Option<&'static str>,
    /// What happens to it on the way.
    change: fn(&mut Sample),
    ours: Result<(), WebhookError>,
    theirs: Theirs,
}

/// Signed by the store's secret just now, unchanged, and taken by both.
const GOOD: Case = Case {
    name: "as signed",
    secret: SECRET,
    age_s: 0,
    is_in_milliseconds: false,
    data_id: Some("1234567890"),
    request_id: Some("req-1"),
    change: |_| (),
    ours: Ok(()),
    theirs: Theirs::Taken,
};

/// Refused by both.
const BAD: Case = Case { ours: Err(WebhookError::BadSignature), theirs: Theirs::Refused, ..GOOD };

/// Too old for us; their library has to be told.
const OLD: Case = Case { ours: Err(WebhookError::Stale), theirs: Theirs::TakenAtAnyAge, ..GOOD };

/// Their library counts all times as seconds, so such a one is always far in the future for it.
const MILLISECONDS: Case = Case { is_in_milliseconds: true, theirs: Theirs::TakenAtAnyAge, ..GOOD };

const CASES: [Case; 33] = [
    GOOD,
    Case { name: "some minutes ago", age_s: FRESH, ..GOOD },
    Case { name: "by a clock that is ahead", age_s: -FRESH, ..GOOD },
    Case { name: "by the secret that is being replaced", secret: OLD_SECRET, ..GOOD },
    Case { name: "without a request's id", request_id: None, ..GOOD },
    Case { name: "without a payment's id", data_id: None, ..GOOD },
    Case { name: "without either", data_id: None, request_id: None, ..GOOD },
    Case { name: "an empty id is none", data_id: None, change: |sample| sample.data_id = some(""), ..GOOD },
    Case { name: "a blank request's id is none", request_id: None, change: |s| s.request_id = some(" "), ..GOOD },
    Case { name: "an id that is encoded in the query", data_id: Some("a b/ñ"), ..GOOD },
    Case { name: "an id in upper case, signed as it is", data_id: Some("AbC-1"), ..GOOD },
    // As documented. Their library takes ids as they come.
    Case {
        name: "an id in upper case, signed in lower case",
        data_id: Some("abc-1"),
        change: |sample| sample.data_id = some("AbC-1"),
        theirs: Theirs::Refused,
        ..GOOD
    },
    Case { name: "an id that lost its upper case", data_id: Some("AbC-1"), change: lower_id, ..BAD },
    Case { name: "in milliseconds", ..MILLISECONDS },
    Case { name: "in milliseconds, some minutes ago", age_s: FRESH, ..MILLISECONDS },
    Case { name: "in milliseconds, too long ago", age_s: STALE, is_in_milliseconds: true, ..OLD },
    Case { name: "in milliseconds, in the future", age_s: -STALE, is_in_milliseconds: true, ..OLD },
    Case { name: "too long ago", age_s: STALE, ..OLD },
    Case { name: "in the future", age_s: -STALE, ..OLD },
    Case { name: "a wrong signature before", change: |sample| sample.edit(wrong_first), ..GOOD },
    // Their library looks at the last one only.
    Case { name: "a wrong signature behind", change: |s| s.edit(wrong_last), theirs: Theirs::Refused, ..GOOD },
    Case { name: "another scheme besides", change: |sample| sample.edit(|h| format!("{h},v2=00")), ..GOOD },
    Case { name: "spaces", change: |sample| sample.edit(|h| h.replace(',', ", ")), ..GOOD },
    // Hexadecimal digits mean the same in both cases; their library compares texts.
    Case { name: "digits in upper case", change: |sample| sample.edit(upper), theirs: Theirs::Refused, ..GOOD },
    Case { name: "by another store's secret", secret: OTHER_SECRET, ..BAD },
    Case { name: "about another payment", change: |sample| sample.data_id = some("1234567891"), ..BAD },
    Case { name: "of another request", change: |sample| sample.request_id = some("req-2"), ..BAD },
    Case { name: "the request's id lost", change: |sample| sample.request_id = None, ..BAD },
    Case { name: "a request's id added", request_id: None, change: |s| s.request_id = some("req-1"), ..BAD },
    Case { name: "the payment's id lost", change: |sample| sample.data_id = None, ..BAD },
    Case { name: "a payment's id added", data_id: None, change: |s| s.data_id = some("1234567890"), ..BAD },
    Case { name: "only another scheme", change: |sample| sample.edit(|h| h.replace("v1=", "v2=")), ..BAD },
    Case { name: "unsigned", change: |s| s.header = None, ours: Err(WebhookError::Missing), ..BAD },
];

impl Case {
    fn at(&self, now: OffsetDateTime) -> OffsetDateTime {
        now - Duration::seconds(self.age_s)
    }

    fn ts(&self, now: OffsetDateTime) -> i64 {
        self.at(now).unix_timestamp() * if self.is_in_milliseconds { 1_000 } else { 1 }
    }

    /// The headers of those who can sign it: the adapter knows seconds, the fake gateway's payments and requests have
    /// ids, and its ids are signed in lower case.
    fn signed(&self, now: OffsetDateTime, by_library: String) -> Vec<(&'static str, String)> {
        let by_adapter =
            || sign_mercado_pago(&SecretString::from(self.secret), self.at(now), self.data_id, self.request_id);
        let by_adapter = (!self.is_in_milliseconds).then(by_adapter);
        let by_fake = self.data_id.filter(|id| id.to_lowercase() == *id).zip(self.request_id);
        let by_fake = by_fake
            .map(|(data_id, request_id)| signatures::mercado_pago(self.secret, data_id, request_id, self.ts(now)));
        let headers = SIGNERS.into_iter().zip([by_adapter, by_fake, Some(by_library)]);
        headers.filter_map(|(signer, header)| header.map(|header| (signer, header))).collect()
    }
}

impl Sample {
    fn edit(&mut self, edit: impl FnOnce(&str) -> String) {
        self.header = self.header.as_deref().map(edit);
    }

    fn ours(&self, now: OffsetDateTime) -> Result<WebhookEvent, WebhookError> {
        let account = json!({ "access_token": "TEST-1", "webhook_secrets": [SECRET, OLD_SECRET] }).to_string();
        let account = Credentials::parse(Gateway::MercadoPago, account.as_bytes()).unwrap();
        let pairs = [("x-signature", &self.header), ("x-request-id", &self.request_id)];
        let headers: HeaderMap = pairs
            .into_iter()
            .filter_map(|(name, value)| Some((name.parse().unwrap(), HeaderValue::from_str(value.as_ref()?).unwrap())))
            .collect();
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(self.data_id.iter().map(|id| ("data.id", id)))
            .append_pair("type", "payment")
            .finish();
        verify(&account, &WebhookRequest { headers: &headers, query: &query, body: BODY, now })
    }

    /// The question whether their library takes it.
    fn question(&self, secret: &str, tolerance_s: Option<i64>) -> Value {
        let Self { header, request_id, data_id } = self;
        json!({ "ask": "mercado-pago-check", "secret": secret, "header": header, "data_id": data_id,
            "request_id": request_id, "tolerance_s": tolerance_s })
    }
}

/// What their library says of samples, under one of the secrets.
fn theirs<'a>(samples: impl Iterator<Item = &'a Sample>) -> Vec<Theirs> {
    let asked = [(SECRET, Some(TOLERANCE_S)), (OLD_SECRET, Some(TOLERANCE_S)), (SECRET, None), (OLD_SECRET, None)];
    let questions: Vec<_> =
        samples.flat_map(|sample| asked.map(|(secret, tolerance_s)| sample.question(secret, tolerance_s))).collect();
    let judge = |refusals: &[Option<String>]| match refusals.iter().position(Option::is_none) {
        Some(0 | 1) => Theirs::Taken,
        Some(_) => Theirs::TakenAtAnyAge,
        None => Theirs::Refused,
    };
    sdk::ask(&questions).chunks(asked.len()).map(judge).collect()
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn lower_id(sample: &mut Sample) {
    sample.data_id = sample.data_id.as_ref().map(|id| id.to_lowercase());
}

fn wrong_first(header: &str) -> String {
    header.replace(",v1=", &format!(",v1={},v1=", "0".repeat(64)))
}

fn wrong_last(header: &str) -> String {
    format!("{header},v1={}", "0".repeat(64))
}

fn upper(header: &str) -> String {
    let (time, v1) = header.split_once(",v1=").unwrap();
    format!("{time},v1={}", v1.to_uppercase())
}

fn owned(text: Option<&str>) -> Option<String> {
    text.map(str::to_owned)
}

#[test]
fn both_judge_alike_whoever_signed() {
    let now = OffsetDateTime::now_utc();
    let sign = |case: &Case| sdk::mercado_pago_sign(case.secret, case.ts(now), case.data_id, case.request_id);
    let by_library = sdk::sign(&CASES.iter().map(sign).collect::<Vec<_>>());
    let mut samples = Vec::new();
    for (case, by_library) in CASES.iter().zip(by_library) {
        for (signer, header) in case.signed(now, by_library) {
            let mut sample =
                Sample { header: Some(header), request_id: owned(case.request_id), data_id: owned(case.data_id) };
            (case.change)(&mut sample);
            samples.push((case, signer, sample));
        }
    }
    let theirs = theirs(samples.iter().map(|(_, _, sample)| sample));
    for ((case, signer, sample), theirs) in samples.iter().zip(theirs) {
        let ours = sample.ours(now);
        assert_eq!(ours.as_ref().map(|_| ()).map_err(|error| *error), case.ours, "{}, {signer}: ours", case.name);
        assert_eq!(theirs, case.theirs, "{}, {signer}: theirs", case.name);
        if let Ok(event) = ours {
            let of_query = sample.data_id.as_deref().filter(|id| !id.is_empty() && !id.contains(['/', ' ']));
            assert_eq!(event.payment_id.as_deref(), of_query, "{}: never the one of the body", case.name);
        }
    }
}

#[test]
fn both_notice_every_flipped_bit() {
    let now = OffsetDateTime::now_utc();
    let (data_id, request_id) = ("1234567890", "req-1");
    let question = sdk::mercado_pago_sign(SECRET, now.unix_timestamp(), Some(data_id), Some(request_id));
    let header = sdk::sign(&[question]).remove(0);
    let good = Sample { header: Some(header.clone()), request_id: some(request_id), data_id: some(data_id) };
    assert!(good.ours(now).is_ok());
    let ids = flips(data_id).map(|id| Sample { data_id: Some(id), ..good.clone() });
    let requests = flips(request_id).map(|id| Sample { request_id: Some(id), ..good.clone() });
    // Letters of hexadecimal digits may change their case.
    let headers = flips(&header).filter(|flipped| !flipped.eq_ignore_ascii_case(&header));
    let headers = headers.map(|header| Sample { header: Some(header), ..good.clone() });
    let samples: Vec<_> = ids.chain(requests).chain(headers).collect();
    for (sample, theirs) in samples.iter().zip(theirs(samples.iter())) {
        let told = (&sample.header, &sample.data_id, &sample.request_id);
        assert!(matches!(sample.ours(now), Err(WebhookError::BadSignature)), "{told:?}");
        assert_eq!(theirs, Theirs::Refused, "{told:?}");
    }
}

/// A text with one bit flipped, each in turn, where the result can be in a header.
fn flips(text: &str) -> impl Iterator<Item = String> {
    let flip = |bit: usize| {
        let mut bytes = text.as_bytes().to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        String::from_utf8(bytes).ok().filter(|text| text.bytes().all(|byte| (b' '..=b'~').contains(&byte)))
    };
    (0..text.len() * 8).filter_map(flip).collect::<Vec<_>>().into_iter()
}
