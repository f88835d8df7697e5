//! Numbers that an act cannot be done with, named in its refusal.

use domain::Reason;
use domain::catalog::Range;
use edge::Problem;

/// Refuses an act by its rule, and says which numbers break it; none if they have stopped doing so meanwhile.
pub(crate) fn refused(rule: &str, numbers: &[i32], padding: i16) -> Problem {
    let detail =
        if numbers.is_empty() { rule.to_owned() } else { format!("{rule}, not {}", Range::labels(numbers, padding)) };
    Problem::new(Reason::NumbersTaken).with_detail(detail)
}
