//! Whatever was heard in between, in whatever order and how often: what the gateway says in the end is what counts.

use domain::payments::{AttemptState, Method, Observed, ObservedRefund, RefundState};
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use store::payments::{Answer, NewAttempt, Started, record, start};
use tests::look::{self, count};
use tests::randomness;
use tests::seed::quick;
use tests::till::{Policy, Till};
use uuid::Uuid;

const CASES: u64 = 60;

/// What a gateway would have said at successive moments of one payment.
fn history(rng: &mut StdRng, attempt_id: Uuid, amount: i64) -> Vec<Observed> {
    let open = Observed {
        payment_id: format!("pi_{attempt_id}"),
        attempt_id: Some(attempt_id),
        state: AttemptState::Open,
        amount_minor: amount,
        currency: "BRL".into(),
        captured_minor: 0,
        refunded_minor: 0,
        decline_code: None,
        instructions: None,
        refunds: Vec::new(),
        disputes: Vec::new(),
    };
    let with = |state| Observed { state, ..open.clone() };
    let captured = Observed { captured_minor: amount, ..with(AttemptState::Captured) };
    let refund = |id: &str, amount_minor, state| ObservedRefund {
        gateway_refund_id: format!("re_{id}_{attempt_id}"),
        refund_id: None,
        amount_minor,
        state,
    };
    let back = |refunds: Vec<ObservedRefund>| Observed {
        refunded_minor: refunds.iter().map(|refund| refund.amount_minor).sum(),
        refunds,
        ..captured.clone()
    };
    let declined = Observed { decline_code: Some("insufficient_funds".into()), ..open.clone() };
    let closed = Observed { decline_code: declined.decline_code.clone(), ..with(AttemptState::Cancelled) };
    match rng.random_range(0..6) {
        0 => vec![open.clone(), with(AttemptState::Processing), captured],
        1 => vec![open.clone(), with(AttemptState::Cancelled)],
        2 => vec![open.clone(), declined, closed],
        3 => vec![open.clone(), with(AttemptState::Authorised), captured],
        4 => {
            let half = |state| refund("a", amount / 2, state);
            vec![
                captured.clone(),
                back(vec![half(RefundState::Pending)]),
                back(vec![half(RefundState::Succeeded)]),
                back(vec![half(RefundState::Succeeded), refund("b", amount - amount / 2, RefundState::Succeeded)]),
            ]
        }
        // Late: the code was cancelled, and some bank paid it all the same.
        _ => vec![open.clone(), with(AttemptState::Cancelled), captured],
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn any_order_and_multiplicity_ends_where_the_gateway_ended() {
    let till = Till::open(Policy::default()).await;
    let seed = randomness::seed();
    for case in 0..CASES {
        let mut rng = randomness::stream(seed, case);
        let order = till.reserve(&till.buyer(), &quick(2)).await;
        let attempt_id = begin(&till, order).await;
        let said = history(&mut rng, attempt_id, 500);
        let last = said.last().unwrap().clone();
        let mut heard: Vec<&Observed> =
            said.iter().flat_map(|one| std::iter::repeat_n(one, rng.random_range(0..4))).chain([&last]).collect();
        heard.shuffle(&mut rng);
        let mut client = till.database.app_client().await;
        for observed in &heard {
            record(&mut client, till.tenant_id(), attempt_id, Answer::Observed(observed)).await.unwrap();
        }
        let stored = store::payments::find_attempt(&client, till.tenant_id(), attempt_id).await.unwrap().unwrap();
        let state = look::order(&till.database, order).await.state.word();
        let wanted = match (last.state, last.refunded_minor) {
            (AttemptState::Captured, 0) => (AttemptState::Captured, "paid"),
            (AttemptState::Captured, _) => (AttemptState::Captured, "refunded"),
            _ if last.decline_code.is_some() => (AttemptState::Declined, "reserved"),
            _ => (AttemptState::Cancelled, "reserved"),
        };
        // A refused one that was heard as closed before it was heard as refused is called cancelled: closed all the same.
        let closed = |state| matches!(state, AttemptState::Declined | AttemptState::Cancelled);
        assert!(
            stored.state == wanted.0 || (closed(stored.state) && closed(wanted.0)),
            "case {case}: {stored:?} after {heard:?}"
        );
        assert_eq!(state, wanted.1, "case {case} after {heard:?}");
        assert_eq!((stored.captured_minor, stored.refunded_minor), (last.captured_minor, last.refunded_minor));
    }
    let twice =
        "select count(*) from (select from refunds group by attempt_id, gateway_refund_id having count(*) > 1) t";
    assert_eq!(count(&till.database, twice).await, 0);
    till.database.finish().await;
}

async fn begin(till: &Till, order_id: Uuid) -> Uuid {
    let new = NewAttempt {
        id: Uuid::now_v7(),
        tenant_id: till.product.described.tenant_id,
        buyer_id: None,
        order_id,
        method: Method::Card,
        return_url: None,
        key: "first",
    };
    match start(&mut till.database.app_client().await, &new).await.unwrap() {
        Started::New(attempt) => attempt.id,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_documented_ranks_are_those_of_the_code() {
    let text = std::fs::read_to_string(tests::files::root().join("ARCHITECTURE.md")).unwrap();
    let told = |word: &str, rank: u8| {
        text.lines().filter(|line| line.starts_with("| ")).any(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            cells.windows(2).any(|pair| pair[0].split(", ").any(|one| one == word) && pair[1] == rank.to_string())
        })
    };
    let attempts = AttemptState::ALL.iter().map(|state| (state.word(), state.rank()));
    let refunds = RefundState::ALL.iter().map(|state| (state.word(), state.rank()));
    let disputes = domain::payments::DisputeState::ALL.iter().map(|state| (state.word(), state.rank()));
    for (word, rank) in attempts.chain(refunds).chain(disputes) {
        assert!(told(word, rank), "ARCHITECTURE.md does not say that {word} has the rank {rank}");
    }
    for (from, to) in domain::orders::TRANSITIONS {
        let section = text.split("## Order states").nth(1).unwrap();
        let told = section.split([';', '.']).any(|part| {
            let states: Vec<&str> = part.split('→').collect();
            states.windows(2).any(|pair| pair[0].contains(from.word()) && pair[1].contains(to.word()))
        });
        assert!(told, "ARCHITECTURE.md does not say {} → {}", from.word(), to.word());
    }
}
