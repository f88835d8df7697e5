//! `scheduler-*.json`: what EventBridge Scheduler sends to the jobs.

use tests::chain::Chain;
use tests::{look, randomness};

use super::{ORDERS, as_named, event, names};

#[tokio::test(flavor = "multi_thread")]
async fn scheduler_files_start_their_jobs() {
    let (database, _) = as_named().await;
    let chain = Chain::new(&database, 1, 10, randomness::seed());
    // What every minute finds: messages that are owed, then holds that ran out.
    look::change(&database, "update outbox set next_attempt_at = now()", 3).await;
    let mut jobs = names("scheduler-");
    jobs.sort_unstable_by(|a, b| b.cmp(a));
    for name in jobs {
        let event = event(&name);
        assert!(event.is_object() && event["source"] == "aws.scheduler", "{name}");
        let job = name.strip_prefix("scheduler-").unwrap();
        assert!(event["resources"][0].as_str().unwrap().ends_with(&format!("-{job}")), "{name}");
        match job {
            "reconcile-orders" => {
                let report = chain.reconcile().await;
                assert_eq!((report.published, report.failed_steps), (3, vec![]));
                chain.run().await;
                look::change(
                    &database,
                    "update orders set expires_at = now() - interval '1 second', sweep_at = now()",
                    3,
                )
                .await;
            }
            "expire-reservations" => {
                let report = chain.expire().await;
                assert_eq!((report.orders, report.numbers, report.failed, report.lag_ms), (3, 3, 0, 0));
            }
            other => panic!("there is no job {other}"),
        }
    }
    for order in look::orders(&database, &ORDERS).await {
        assert_eq!(order.state, domain::orders::State::Expired);
    }
    database.finish().await;
}
