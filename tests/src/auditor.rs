//! The independent auditor over a test's database.

use auditor::imbalances_in;
pub use auditor::{Expect, findings_in};

use crate::TestDatabase;
use crate::gateway::Ledger;

/// Everything that is wrong, one sentence each, from one snapshot.
pub async fn findings(database: &TestDatabase, expect: Expect) -> Vec<String> {
    findings_in(&mut database.another_owner().await, expect).await
}

/// Panics unless everything is right and at rest.
pub async fn assert_clean(database: &TestDatabase) {
    assert_none(&findings(database, Expect::Rest).await);
}

/// Panics unless everything is right and at rest, and a gateway's ledger says the same about the money.
pub async fn assert_balanced(database: &TestDatabase, ledger: &Ledger) {
    assert_none(&imbalances_in(&mut database.another_owner().await, ledger).await);
}

/// Panics unless everything is right; orders may be under way.
pub async fn assert_consistent(database: &TestDatabase) {
    assert_none(&findings(database, Expect::UnderWay).await);
}

fn assert_none(findings: &[String]) {
    let shown = findings.iter().take(20).cloned().collect::<Vec<_>>().join("\n  ");
    assert!(findings.is_empty(), "the auditor has {} findings:\n  {shown}", findings.len());
}
