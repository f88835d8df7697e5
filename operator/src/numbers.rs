//! Blocking and unblocking numbers.

use std::collections::BTreeSet;

use domain::Reason;
use domain::catalog::Reserving;
use domain::limits::NUMBER_MAX;
use serde_json::json;
use store::Client;

use crate::cli::{Numbers, NumbersAct, NumbersArgs};
use crate::failure::Failure;
use crate::output::Output;
use crate::products::require;

/// Numbers of one command. They change in one transaction, whose locks buyers' orders wait for.
const NUMBERS_MAX: usize = 10_000;

/// `tirada numbers`
pub(crate) async fn change(client: &mut Client, act: NumbersAct) -> Result<Output, Failure> {
    let (take, NumbersArgs { product: id, numbers, reason }) = match act {
        NumbersAct::Block(args) => (true, args),
        NumbersAct::Unblock(args) => (false, args),
    };
    let numbers: BTreeSet<i32> = numbers.0.into_iter().flatten().collect();
    let product = require(client, id).await?;
    if product.reserving == Reserving::Halted {
        return Err(Failure::refused(format!("reserving of product {id} is halted: its numbers must not change")));
    }
    let (changed, only, done) = if take {
        (store::numbers::block(client, &product, &numbers).await, "free numbers can be blocked", "blocked")
    } else {
        (store::numbers::unblock(client, &product, &numbers).await, "blocked numbers can be unblocked", "unblocked")
    };
    let range = product.described.range;
    changed.map_err(|error| match error {
        domain::Error::Rejected(Reason::OutOfRange) => {
            Failure::refused(format!("the product's numbers are {} to {}", range.first, range.last()))
        }
        other => Failure::explained(other, Reason::NumbersTaken, format!("only {only}; nothing was changed")),
    })?;
    let text = format!("product {id}: {} numbers {done} ({reason})", numbers.len());
    Ok(Output::new(text, json!({"product": id, "act": done, "numbers": numbers, "reason": reason})))
}

/// Reads `1,2,5-9`.
pub(crate) fn parse_numbers(text: &str) -> Result<Numbers, String> {
    let mut runs = Vec::new();
    let mut count = 0_usize;
    for part in text.split(',').map(str::trim) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| {
            let number = text.trim().parse::<i32>().ok().filter(|number| (0..=NUMBER_MAX).contains(number));
            number.ok_or_else(|| format!("{part:?} is no number and no run of numbers such as 5-9"))
        };
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(format!("{part:?} runs backwards"));
        }
        count += usize::try_from(last - first).unwrap_or(0) + 1;
        runs.push(first..=last);
    }
    if count > NUMBERS_MAX {
        return Err(format!("{count} numbers are too many for one command; the most is {NUMBERS_MAX}"));
    }
    Ok(Numbers(runs))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<i32>, String> {
        parse_numbers(text).map(|numbers| numbers.0.into_iter().flatten().collect())
    }

    #[test]
    fn numbers_and_runs() {
        assert_eq!(read("7").unwrap(), [7]);
        assert_eq!(read("1,2,5-9").unwrap(), [1, 2, 5, 6, 7, 8, 9]);
        assert_eq!(read(" 007 , 8 - 9 ").unwrap(), [7, 8, 9]);
        assert_eq!(read("1-10000").unwrap().len(), 10_000);
    }

    #[test]
    fn what_is_no_list_is_refused_before_anything_is_expanded() {
        for bad in ["", ",", "1,", "x", "-1", "1-", "9-5", "1-2-3", "1.5", "1000000000", "99999999999"] {
            assert!(read(bad).is_err(), "{bad}");
        }
        assert!(read("0-999999999").unwrap_err().contains("too many"));
        assert!(read("1-9999,1-9999").unwrap_err().contains("too many"));
    }
}
