use rand::SeedableRng;
use rand::rngs::StdRng;

use super::*;
use crate::numbers::Plan;

const RANGE: Range = Range { first: 0, count: 100 };

fn ask(buyer: u128, numbers: &[i32], quantity: i32, fallback: Fallback) -> Ask {
    Ask {
        order_id: Uuid::from_u128(buyer << 64),
        buyer_id: Uuid::from_u128(buyer),
        numbers: numbers.to_vec(),
        quantity,
        fallback,
    }
}

fn chunks(range: Range, taken: &[i32]) -> Vec<Chunk> {
    let mut chunks: Vec<_> = (0..range.chunk_count()).map(|index| Chunk::new(range, index)).collect();
    for number in taken {
        let index = usize::try_from(range.chunk_of(*number)).unwrap();
        assert!(chunks[index].take(*number, Kind::Paid));
    }
    chunks
}

fn decide_one(taken: &[i32], held: i32, limit: i32, wish: &Ask) -> (Decision, Vec<Chunk>) {
    let mut rng = StdRng::seed_from_u64(1);
    let held = HashMap::from([(wish.buyer_id, held)]);
    let mut decider = Decider::new(RANGE, Scope::Every, chunks(RANGE, taken), held, limit, &mut rng);
    let decision = decider.decide(wish).unwrap();
    (decision, decider.into_chunks())
}

fn reserved(decision: &Decision) -> (&[i32], &[i32], &[i32]) {
    match decision {
        Decision::Reserved { numbers, lost, substitutes } => (numbers, lost, substitutes),
        Decision::Rejected { .. } => panic!("{decision:?}"),
    }
}

#[test]
fn reject_is_all_or_nothing() {
    let (decision, chunks) = decide_one(&[5], 0, 10, &ask(1, &[4, 5], 1, Fallback::Reject));
    assert_eq!(decision, Decision::Rejected { reason: Reason::NumbersTaken, lost: vec![5] });
    assert!(chunks[0].is_free(4));
    assert_eq!(chunks[0].counters().reserved, 0);
}

#[test]
fn drop_keeps_what_is_free() {
    let (decision, _) = decide_one(&[5], 0, 10, &ask(1, &[4, 5], 0, Fallback::Drop));
    assert_eq!(reserved(&decision), (&[4][..], &[5][..], &[][..]));
    let (decision, _) = decide_one(&[4, 5], 0, 10, &ask(1, &[4, 5], 0, Fallback::Drop));
    assert_eq!(decision, Decision::Rejected { reason: Reason::NumbersTaken, lost: vec![4, 5] });
}

#[test]
fn replace_finds_substitutes_while_there_are_any() {
    let (decision, _) = decide_one(&[5], 0, 10, &ask(1, &[4, 5], 0, Fallback::Replace));
    let (numbers, lost, substitutes) = reserved(&decision);
    assert_eq!((numbers.len(), lost, substitutes.len()), (2, &[5][..], 1));
    assert!(numbers.contains(&4) && numbers.contains(&substitutes[0]) && substitutes[0] != 5);
    let all_but_one: Vec<_> = (1..100).collect();
    let (decision, _) = decide_one(&all_but_one, 0, 10, &ask(1, &[4, 5, 6], 0, Fallback::Replace));
    assert_eq!(reserved(&decision), (&[0][..], &[4, 5, 6][..], &[0][..]));
}

#[test]
fn quick_picks_for_more_than_is_left() {
    let all_but_two: Vec<_> = (2..100).collect();
    let (decision, _) = decide_one(&all_but_two, 0, 10, &ask(1, &[], 3, Fallback::Reject));
    assert_eq!(decision, Decision::Rejected { reason: Reason::SoldOut, lost: vec![] });
    let (decision, _) = decide_one(&all_but_two, 0, 10, &ask(1, &[], 3, Fallback::Drop));
    assert_eq!(reserved(&decision).0, [0, 1]);
    let (decision, _) = decide_one(&(0..100).collect::<Vec<_>>(), 0, 10, &ask(1, &[], 3, Fallback::Drop));
    assert_eq!(decision, Decision::Rejected { reason: Reason::SoldOut, lost: vec![] });
}

#[test]
fn the_buyers_limit_trims_or_refuses() {
    let (decision, _) = decide_one(&[], 8, 10, &ask(1, &[1, 2, 3], 0, Fallback::Reject));
    assert_eq!(decision, Decision::Rejected { reason: Reason::LimitExceeded, lost: vec![] });
    let (decision, _) = decide_one(&[], 8, 10, &ask(1, &[1, 2, 3], 2, Fallback::Drop));
    assert_eq!(reserved(&decision).0, [1, 2]);
    let (decision, _) = decide_one(&[], 12, 10, &ask(1, &[1], 0, Fallback::Replace));
    assert_eq!(decision, Decision::Rejected { reason: Reason::LimitExceeded, lost: vec![] });
}

#[test]
fn two_orders_of_one_buyer_in_a_batch_share_the_limit() {
    let mut rng = StdRng::seed_from_u64(1);
    let mut decider = Decider::new(RANGE, Scope::Every, chunks(RANGE, &[]), HashMap::new(), 5, &mut rng);
    let first = decider.decide(&ask(1, &[1, 2, 3], 0, Fallback::Reject)).unwrap();
    assert_eq!(reserved(&first).0, [1, 2, 3]);
    let second = decider.decide(&ask(1, &[4, 5, 6], 0, Fallback::Reject)).unwrap();
    assert_eq!(second, Decision::Rejected { reason: Reason::LimitExceeded, lost: vec![] });
    let third = decider.decide(&ask(1, &[4, 5, 6], 0, Fallback::Drop)).unwrap();
    assert_eq!(reserved(&third).0, [4, 5]);
}

#[test]
fn a_drawn_scope_never_answers_sold_out() {
    let range = Range { first: 0, count: 20_000 };
    let mut rng = StdRng::seed_from_u64(1);
    let mut full: Vec<_> = (0..8_192).collect();
    full.pop();
    let scope = Scope::Drawn([0].into());
    let mut decider = Decider::new(range, scope, chunks(range, &full), HashMap::new(), 10, &mut rng);
    assert_eq!(decider.decide(&ask(1, &[], 2, Fallback::Drop)), Err(TooNarrow));
    assert_eq!(
        reserved(&decider.decide(&ask(2, &[], 1, Fallback::Reject)).unwrap()).0,
        [8_191],
        "the failed try gave its number back"
    );
}

#[test]
fn undo_gives_back_what_a_panicking_order_took() {
    let mut rng = StdRng::seed_from_u64(1);
    let mut decider = Decider::new(RANGE, Scope::Every, chunks(RANGE, &[]), HashMap::new(), 10, &mut rng);
    decider.take_exact(&[1, 2], 10);
    decider.undo();
    assert!(decider.into_chunks()[0].compare(&[]).is_none());
}

#[test]
fn suggestions_are_free_and_few() {
    let mut rng = StdRng::seed_from_u64(1);
    let taken: Vec<_> = (0..97).collect();
    let mut decider = Decider::new(RANGE, Scope::Every, chunks(RANGE, &taken), HashMap::new(), 10, &mut rng);
    let suggestions = decider.suggest(&[1, 2]);
    assert!(!suggestions.is_empty() && suggestions.iter().all(|n| *n >= 97));
    assert!(decider.suggest(&[]).is_empty());
}

/// Over many groups, each drawing its own chunks, every chunk gets its share. 24 equal chunks and a short one,
/// one pick per group: chi-square with 24 degrees of freedom, of which 60 is beyond 1 in 10,000.
#[test]
fn picks_are_spread_in_proportion_to_what_is_available() {
    let range = Range { first: 0, count: 24 * 8_192 + 4_096 };
    let mut rng = StdRng::seed_from_u64(7);
    let available: Vec<_> = (0..range.chunk_count()).map(|c| (c, range.chunk_size(c))).collect();
    let wish = ask(1, &[], 1, Fallback::Reject);
    let mut seen = [0_u32; 25];
    for _ in 0..24_500 {
        let plan = Plan::draw(range, std::slice::from_ref(&wish), &available, &mut rng);
        assert_eq!(plan.chunks.len(), 1);
        seen[usize::try_from(plan.chunks[0]).unwrap()] += 1;
    }
    let statistic: f64 = seen
        .iter()
        .enumerate()
        .map(|(index, count)| {
            let expected = if index == 24 { 500.0 } else { 1_000.0 };
            (f64::from(*count) - expected).powi(2) / expected
        })
        .sum();
    assert!(statistic < 60.0, "chi-square {statistic}: {seen:?}");
}

#[test]
fn a_plan_is_ascending_and_bounded() {
    let range = Range { first: 0, count: 1_000_000 };
    let available: Vec<_> = (0..range.chunk_count()).map(|c| (c, 8_000)).collect();
    let mut rng = StdRng::seed_from_u64(3);
    let asks: Vec<_> = (0..500).map(|b| ask(b, &[999_999, 1], 5, Fallback::Replace)).collect();
    let plan = Plan::draw(range, &asks, &available, &mut rng);
    assert!(plan.chunks.is_sorted() && plan.chunks.len() <= crate::limits::CHUNKS_PER_GROUP_MAX + 2);
    assert!(plan.chunks.contains(&0) && plan.chunks.contains(&122));
    let none = Plan::draw(range, &[ask(1, &[5], 0, Fallback::Drop)], &available, &mut rng);
    assert_eq!(none.chunks, [0]);
}
