//! A thousand requests for codes: what is sent stays within the budget, and the rightful owner gets in.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use domain::limits::{CODES_PER_ADDRESS, CODES_PER_STRANGERS_PHONE};
use futures::stream::{self, StreamExt};
use serde_json::{Value, json};
use tests::login::Door;

use super::PHONE;

const ASKS: usize = 1_000;
const AT_ONCE: usize = 16;

/// Headers that say where a request came from, all of them lies. Every second one guesses what the CDN knows.
fn forged(n: usize) -> Vec<(&'static str, String)> {
    let address = format!("198.51.{}.{}", n / 250, n % 250);
    let mut headers = vec![
        ("x-forwarded-for", address.clone()),
        ("x-forwarded", format!("for={address}")),
        ("forwarded", format!("for={address}")),
        ("x-real-ip", address.clone()),
        ("x-client-ip", address.clone()),
        ("x-cluster-client-ip", address.clone()),
        ("true-client-ip", address.clone()),
        ("cf-connecting-ip", address.clone()),
        ("fastly-client-ip", address.clone()),
        ("cloudfront-viewer-address", format!("{address}:443")),
    ];
    if n.is_multiple_of(2) {
        headers.push(("x-origin-secret", "guessed-guessed-guessed-guessed-guessed".into()));
    }
    headers
}

/// Whoever has logged in before gets in with their device.
async fn gets_in(door: &Door, owner: &Value) {
    let answer = door.ask(&json!({ "phone": PHONE, "device": owner["device"] })).await;
    assert_eq!(answer.status, 202, "{}", answer.text());
    let asking = answer.json()["asking_session"].clone();
    door.send().await;
    let answer = door.give(&json!({ "asking_session": asking, "code": door.phones.code(PHONE) })).await;
    assert_eq!(answer.status, 201, "the owner gets in: {}", answer.text());
}

/// Asks a thousand times; the statuses.
async fn storm(door: &Door, ask: impl Fn(usize) -> (String, String)) -> BTreeMap<u16, usize> {
    let one = |n: usize| {
        let (address, phone) = ask(n);
        async move {
            let forged = forged(n);
            let headers: Vec<(&str, &str)> = forged.iter().map(|(name, value)| (*name, value.as_str())).collect();
            door.ask_from(&address, &headers, &json!({ "phone": phone })).await.status
        }
    };
    let mut statuses = BTreeMap::new();
    let mut answers = stream::iter((0..ASKS).map(one)).buffer_unordered(AT_ONCE);
    while let Some(status) = answers.next().await {
        *statuses.entry(status).or_default() += 1;
    }
    statuses
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_over_a_hundred_phones_from_one_address() {
    let door = Door::open().await;
    let owner = door.log_in(PHONE).await;
    let sent_before = door.phones.messages().len();
    let began = Instant::now();
    // Addresses within one /64 are one address.
    let statuses = storm(&door, |n| (format!("2001:db8:1:2::{n:x}"), format!("+346000{:05}", 1_000 + n % 100))).await;
    let refilled = began.elapsed().as_secs() / CODES_PER_ADDRESS.one_per.as_secs() + 1;
    let budget = u64::from(CODES_PER_ADDRESS.messages) + refilled;
    assert_eq!(statuses.keys().copied().collect::<Vec<_>>(), [202, 429]);
    assert!(statuses[&202] as u64 <= budget, "{statuses:?}, budget {budget}");
    assert!(statuses[&202] >= 190, "{statuses:?}: carriers' addresses are shared by thousands");
    door.send().await;
    let sent = door.phones.messages().split_off(sent_before);
    assert!(sent.len() as u64 <= budget, "{} were sent", sent.len());
    let mut of_phone = HashMap::new();
    sent.iter().for_each(|(phone, _)| *of_phone.entry(phone.clone()).or_insert(0_u32) += 1);
    assert!(of_phone.values().all(|count| *count <= CODES_PER_STRANGERS_PHONE.messages));

    gets_in(&door, &owner).await;
    door.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_over_one_phone_from_a_hundred_addresses() {
    let door = Door::open().await;
    let owner = door.log_in(PHONE).await;
    let sent_before = door.phones.messages().len();
    let statuses = storm(&door, |n| (format!("203.0.113.{}", n % 100), PHONE.to_owned())).await;
    // The login took one.
    assert_eq!(statuses, BTreeMap::from([(202, 4), (429, 996)]));
    assert_eq!(CODES_PER_STRANGERS_PHONE.messages, 5);
    door.send().await;
    assert_eq!(door.phones.messages().len() - sent_before, 4);

    gets_in(&door, &owner).await;
    door.database.finish().await;
}
