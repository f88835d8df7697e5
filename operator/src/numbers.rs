//! Blocking and unblocking numbers.

use std::collections::BTreeSet;

use domain::catalog::{Range, Reserving};
use domain::limits::{NUMBER_MAX, NUMBERS_PER_ACT_MAX};
use domain::roles::Action;
use domain::{Error, Reason};
use serde_json::json;
use store::Client;
use store::acts::Subject;
use store::numbers::{block, list_unfit, unblock};

use crate::acts::act as made;
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
    let runs = runs(&numbers);
    if runs.len() > NUMBERS_PER_ACT_MAX {
        let text =
            format!("{} runs of numbers are too many for the audit log; the most is {NUMBERS_PER_ACT_MAX}", runs.len());
        return Err(Failure::refused(text));
    }
    let detail = json!({ "runs": runs.join(",") });
    let act = |action| made(product.described.tenant_id, action, (Subject::Product, id), Some(&detail), Some(&reason));
    let (changed, only, done) = if take {
        let changed = block(client, &product, &numbers, &act(Action::BlockNumbers)).await;
        (changed, "free numbers can be blocked", "blocked")
    } else {
        let changed = unblock(client, &product, &numbers, &act(Action::UnblockNumbers)).await;
        (changed, "blocked numbers can be unblocked", "unblocked")
    };
    let range = product.described.range;
    match changed {
        Ok(()) => {}
        Err(Error::Rejected(Reason::OutOfRange)) => {
            return Err(Failure::refused(format!("the product's numbers are {} to {}", range.first, range.last())));
        }
        Err(Error::Rejected(Reason::NumbersTaken)) => {
            let unfit = list_unfit(client, &product, &numbers, take).await?;
            let not = match Range::labels(&unfit, product.described.padding) {
                // It is another moment.
                none if none.is_empty() => none,
                some => format!(", not {some}"),
            };
            return Err(Failure::refused(format!("only {only}{not}; nothing was changed")));
        }
        Err(other) => return Err(other.into()),
    }
    let text = format!("product {id}: {} numbers {done} ({reason})", numbers.len());
    Ok(Output::new(text, json!({"product": id, "act": done, "numbers": numbers, "reason": reason})))
}

/// Numbers as `1`, `2` and `5-9`: runs of them, each as long as it can be.
fn runs(numbers: &BTreeSet<i32>) -> Vec<String> {
    let mut runs: Vec<(i32, i32)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => runs.push((*number, *number)),
        }
    }
    let written = |(first, last): (i32, i32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    runs.into_iter().map(written).collect()
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
    fn runs_are_as_long_as_they_can_be() {
        let of = |text: &str| runs(&read(text).unwrap().into_iter().collect());
        assert_eq!(of("9,1-3,4,7,0"), ["0-4", "7", "9"]);
        assert_eq!(of("999999998,999999999"), ["999999998-999999999"]);
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
