//! What another process may ask of the gateway: acts of buyers, faults, accounts, time, the ledger.
//!
//! `POST /_buyer/<act>`, `POST /_faults`, `POST /_accounts`, `POST /_time`, `GET /_ledger`, `GET /_webhooks`.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use time::Duration;

use super::account::Account;
use super::buyers::{self, Act, NotDone};
use super::calls::Answer;
use super::faults::{Fault, Matcher, Rates};
use super::ledger::{Ledger, account_name};
use super::{Shared, webhooks};

/// A change of the fault script.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Order {
    Script {
        #[serde(default)]
        matcher: Matcher,
        fault: Fault,
        #[serde(default = "once")]
        times: u32,
    },
    Random {
        seed: u64,
        #[serde(default)]
        rates: Rates,
    },
    Heal {},
}

const fn once() -> u32 {
    1
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Advance {
    seconds: u32,
}

/// Answers a request to one of the gateway's own addresses.
pub(super) fn answer(shared: &Arc<Shared>, method: &str, first: &str, rest: &[&str], body: &[u8]) -> Answer {
    let done = match (method, first, rest) {
        ("POST", "_buyer", [act]) => buyer(shared, act, body),
        ("POST", "_faults", []) => read(body).and_then(|order| change(shared, order)),
        ("POST", "_accounts", []) => read(body).map(|account| json!({ "account": add_account(shared, account) })),
        ("POST", "_time", []) => read(body).map(|Advance { seconds }| {
            advance(shared, Duration::seconds(seconds.into()));
            json!({})
        }),
        ("GET", "_ledger", []) => Ok(json!(Ledger::of(&shared.books()))),
        ("GET", "_webhooks", []) => Ok(json!({ "pending": shared.post.pending(), "deliveries": shared.post.log() })),
        _ => Err((404, "there is nothing here".to_owned())),
    };
    done.map_or_else(|(status, message)| Answer::new(status, json!({ "message": message })), Answer::ok)
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, (u16, String)> {
    serde_json::from_slice(body).map_err(|error| (400, error.to_string()))
}

fn buyer(shared: &Arc<Shared>, act: &str, body: &[u8]) -> Result<Value, (u16, String)> {
    let mut body: Value = read(body)?;
    body["act"] = act.into();
    let act: Act = serde_json::from_value(body).map_err(|error| (400, error.to_string()))?;
    match buyers::act(shared, &act) {
        Ok(payment_id) => Ok(json!({ "payment_id": payment_id })),
        Err(NotDone::NoSuchPayment) => Err((404, "no such payment".into())),
        Err(NotDone::NotNow) => Err((409, "not in the state that it is in".into())),
    }
}

fn change(shared: &Arc<Shared>, order: Order) -> Result<Value, (u16, String)> {
    let is_valid = match &order {
        Order::Script { matcher, fault, .. } => matcher.allows(*fault),
        Order::Random { rates, .. } => rates.are_valid(),
        Order::Heal {} => true,
    };
    if !is_valid {
        return Err((400, format!("impossible: {order:?}")));
    }
    let script = &mut shared.books().script;
    match order {
        Order::Script { matcher, fault, times } => script.add(matcher, fault, times),
        Order::Random { seed, rates } => script.random(seed, rates),
        Order::Heal {} => script.heal(),
    }
    Ok(json!({}))
}

/// Takes an account in, or gives a known one another address and secret; its name.
pub(super) fn add_account(shared: &Shared, account: Account) -> String {
    let mut books = shared.books();
    let index = match books.account(account.dialect, &account.key) {
        Some(index) => {
            books.accounts[index] = account;
            index
        }
        None => {
            books.accounts.push(account);
            books.accounts.len() - 1
        }
    };
    account_name(index)
}

/// Moves the gateway's clock, and sends what that brings about.
pub(super) fn advance(shared: &Arc<Shared>, time: Duration) {
    let mut books = shared.books();
    books.advance(time);
    webhooks::send(shared, books.take_events(), false);
}
