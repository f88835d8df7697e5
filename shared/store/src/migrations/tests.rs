use domain::limits::{IDLE_IN_TRANSACTION_TIMEOUT, LOCK_TIMEOUT, STATEMENT_TIMEOUT};

use super::{APP_ROLE, RIGHTS, embedded};

#[test]
fn the_role_has_the_timeouts_of_the_limits() {
    for (name, limit) in [
        ("lock_timeout", LOCK_TIMEOUT),
        ("statement_timeout", STATEMENT_TIMEOUT),
        ("idle_in_transaction_session_timeout", IDLE_IN_TRANSACTION_TIMEOUT),
    ] {
        let wanted = format!("\nalter role {APP_ROLE} set {name} = {};\n", limit.as_millis());
        assert!(RIGHTS.contains(&wanted), "rights.sql lacks {wanted}");
        assert_eq!(RIGHTS.matches(name).count(), 1, "rights.sql sets {name} once");
    }
}

#[test]
fn rights_are_no_migration() {
    let runner = embedded::migrations::runner();
    assert!(!runner.get_migrations().is_empty());
    assert!(runner.get_migrations().iter().all(|migration| migration.sql() != Some(RIGHTS)));
}
