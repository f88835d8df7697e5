//! Reserving: the orders of one product, decided together in one transaction.

mod orders;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use domain::Result;
use domain::catalog::{Range, Reserving};
use domain::messages::Queue;
use domain::numbers::{Ask, Chunk, Decider, Decision, Plan};
use rand::rngs::StdRng;
use tokio_postgres::{Client, Transaction};
use uuid::Uuid;

use crate::catalog::{Product, find_of_store};
use crate::errors::{constraint_of, from_postgres};
use crate::numbers::Failure;
use crate::numbers::locks::{lock_chunks, lock_known_holdings};
use crate::numbers::mend::repair;
use crate::numbers::writes::{add_to_holdings, expect, insert_holdings, insert_taken, update_chunks};
use crate::rows::column;
use crate::types::{INT4, INT4S};
use crate::{outbox, switches};

use orders::{Verdict, explain_missing, lock_orders, update_orders};

/// Times that a group may find another one first with a buyer's first holding.
const OVERTAKEN_MAX: u32 = 3;

/// What became of one order in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Served {
    /// Decided now, decided before, or parked: its message is done.
    Done,
    /// Not decided: somebody else holds it, or it failed in a way that may pass. Its message must come again.
    Again,
    /// There is no such order of this product.
    Unknown,
}

/// One decision, for the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decided {
    /// `reserved`, or the code of the reason why not.
    pub outcome: &'static str,
    /// Numbers it got.
    pub numbers: usize,
    /// How long it waited.
    pub queued: Duration,
}

/// What a call did with a group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Group {
    /// What became of each order.
    pub served: Vec<(Uuid, Served)>,
    /// What was decided now.
    pub decided: Vec<Decided>,
    /// Slug of the product's store.
    pub store: String,
    /// The product's campaign.
    pub campaign: String,
}

impl Group {
    fn extend(&mut self, other: Self) {
        self.served.extend(other.served);
        self.decided.extend(other.decided);
    }
}

/// Decides orders of one product: at most `ORDERS_PER_TRANSACTION_MAX` of them.
///
/// When bits and rows turn out to disagree, the chunks in question are mended and the group is decided again; should
/// that not help, or the group meet a fault, each order gets its own transaction, so that one impossible order does
/// not hold up the others.
///
/// # Errors
/// Busy or fault; then nothing of the group was changed, or it is unknown whether it was.
pub async fn reserve(
    client: &mut Client,
    tenant_id: Uuid,
    product_id: Uuid,
    order_ids: &[Uuid],
    rng: &mut StdRng,
) -> Result<Group> {
    let Some(product) = find_of_store(client, tenant_id, product_id).await? else {
        let served = order_ids.iter().map(|id| (*id, Served::Unknown)).collect();
        return Ok(Group { served, ..Group::default() });
    };
    let group = match mending(client, &product, order_ids, rng).await {
        Err(failure) if failure.is_about_data() => one_by_one(client, &product, order_ids, rng).await,
        other => other.map_err(Failure::into_error)?,
    };
    Ok(Group { store: product.store, campaign: product.described.campaign, ..group })
}

async fn one_by_one(client: &mut Client, product: &Product, order_ids: &[Uuid], rng: &mut StdRng) -> Group {
    let mut group = Group::default();
    for id in order_ids {
        match mending(client, product, &[*id], rng).await {
            Ok(one) => group.extend(one),
            Err(failure) => {
                tracing::error!(order.id = %id, error = failure.into_error().chain(), "order not decided");
                group.served.push((*id, Served::Again));
            }
        }
    }
    group
}

async fn mending(
    client: &mut Client,
    product: &Product,
    order_ids: &[Uuid],
    rng: &mut StdRng,
) -> std::result::Result<Group, Failure> {
    match widening(client, product, order_ids, rng).await {
        Err(failure @ (Failure::Disagreement(_) | Failure::Miscounted(_))) => {
            repair(client, product, &failure).await?;
            widening(client, product, order_ids, rng).await
        }
        other => other,
    }
}

/// Tries again with every chunk when the drawn ones hold too few, and when another group was first with a buyer's
/// first holding.
async fn widening(
    client: &mut Client,
    product: &Product,
    order_ids: &[Uuid],
    rng: &mut StdRng,
) -> std::result::Result<Group, Failure> {
    let mut every_chunk = false;
    let mut overtaken = 0;
    loop {
        match attempt(client, product, order_ids, every_chunk, rng).await {
            Err(Failure::TooNarrow) if !every_chunk => every_chunk = true,
            Err(Failure::Overtaken) if overtaken < OVERTAKEN_MAX => overtaken += 1,
            other => return other,
        }
    }
}

/// One transaction: lock, decide, write, commit.
async fn attempt(
    client: &mut Client,
    product: &Product,
    order_ids: &[Uuid],
    every_chunk: bool,
    rng: &mut StdRng,
) -> std::result::Result<Group, Failure> {
    let tx = client.transaction().await?;
    let (locked, reserving) = futures::future::try_join(
        lock_orders(&tx, product.described.id, order_ids),
        switches::reserving(&tx, product.key),
    )
    .await?;
    fail::fail_point!("reserve.locked");
    let mut served = explain_missing(&tx, product.described.id, order_ids, &locked).await?;
    let ids: Vec<Uuid> = locked.iter().map(|order| order.ask.order_id).collect();
    if reserving == Reserving::Halted {
        outbox::park(&tx, Queue::ReserveNumbers, &ids).await?;
        tx.commit().await?;
        served.extend(ids.into_iter().map(|id| (id, Served::Done)));
        return Ok(Group { served, ..Group::default() });
    }
    let queued: HashMap<Uuid, Duration> = locked.iter().map(|order| (order.ask.order_id, order.queued)).collect();
    let (late, asking): (Vec<_>, Vec<_>) = locked.into_iter().partition(|order| order.too_late.is_some());
    let mut verdicts: Vec<Verdict> = late.iter().map(Verdict::too_late).collect();
    let asks: Vec<Ask> = asking.into_iter().map(|order| order.ask).collect();
    let panicked = if asks.is_empty() {
        update_orders(&tx, &verdicts).await?;
        HashSet::new()
    } else {
        decide_and_write(&tx, product, &asks, every_chunk, rng, &mut verdicts).await?
    };
    fail::fail_point!("reserve.before_commit");
    tx.commit().await?;
    fail::fail_point!("reserve.after_commit");
    served.extend(ids.into_iter().map(|id| (id, if panicked.contains(&id) { Served::Again } else { Served::Done })));
    let decided = verdicts.iter().map(|verdict| Decided {
        outcome: verdict.outcome(),
        numbers: verdict.numbers.len(),
        queued: queued.get(&verdict.order_id).copied().unwrap_or_default(),
    });
    Ok(Group { served, decided: decided.collect(), ..Group::default() })
}

/// Locks chunks and holdings, decides, and writes everything, late orders included; returns the orders that panicked.
async fn decide_and_write(
    tx: &Transaction<'_>,
    product: &Product,
    asks: &[Ask],
    every_chunk: bool,
    rng: &mut StdRng,
    verdicts: &mut Vec<Verdict>,
) -> std::result::Result<HashSet<Uuid>, Failure> {
    let range = product.described.range;
    let plan = if every_chunk { Plan::every(range) } else { plan(tx, product, asks, rng).await? };
    let buyers: Vec<Uuid> = asks.iter().map(|ask| ask.buyer_id).collect::<BTreeSet<_>>().into_iter().collect();
    let (chunks, held) = futures::future::try_join(
        lock_chunks(tx, product.key, range, &plan.chunks),
        lock_known_holdings(tx, product.key, &buyers),
    )
    .await?;
    let known: HashSet<Uuid> = held.keys().copied().collect();
    let wrong: Vec<i32> = chunks.iter().filter(|chunk| !chunk.adds_up()).map(Chunk::index).collect();
    if !wrong.is_empty() {
        return Err(Failure::Disagreement(wrong));
    }
    let mut decider = Decider::new(range, plan.scope, chunks, held, product.described.numbers_per_buyer_max, rng);
    let (decisions, panicked) = decide_all(&mut decider, asks)?;
    let taken: Vec<(i32, Option<Uuid>)> = taken_by(&decisions);
    verify_lost(tx, product.key, range, &decisions, &taken).await?;
    for (ask, decision) in &decisions {
        verdicts.push(Verdict::decided(ask, decision, &mut decider));
    }
    let (mut more, mut first) = (BTreeMap::new(), BTreeMap::new());
    for (ask, decision) in &decisions {
        if let Decision::Reserved { numbers, .. } = decision {
            let holdings = if known.contains(&ask.buyer_id) { &mut more } else { &mut first };
            *holdings.entry(ask.buyer_id).or_insert(0) += i32::try_from(numbers.len()).unwrap_or(i32::MAX);
        }
    }
    let chunks = decider.into_chunks();
    let changed: Vec<i32> = chunks.iter().filter(|chunk| chunk.is_changed()).map(|chunk| chunk.index()).collect();
    let take = async {
        match insert_taken(tx, product.key, &taken).await {
            Ok(inserted) => Ok(expect(taken.len(), inserted, "taken numbers")?),
            Err(error) if constraint_of(&error) == Some("taken_numbers_pkey") => Err(Failure::Disagreement(changed)),
            Err(error) => Err(error.into()),
        }
    };
    // Sent together, executed in this order. The first failure counts; the others only say that the transaction is lost.
    let (chunks, added, made, taken, decided) = futures::join!(
        update_chunks(tx, product.key, &chunks),
        add_to_holdings(tx, product.key, &more),
        insert_holdings(tx, product.key, &first),
        take,
        update_orders(tx, verdicts)
    );
    chunks?;
    added?;
    made?;
    taken?;
    decided?;
    Ok(panicked)
}

async fn plan(tx: &Transaction<'_>, product: &Product, asks: &[Ask], rng: &mut StdRng) -> Result<Plan> {
    let mut available = Vec::new();
    if Plan::picks_wanted(asks) > 0 {
        let sql = "select chunk, available from number_chunks where product_key = $1 and available > 0 order by chunk";
        for row in &tx.query_typed(sql, &[(&product.key, INT4)]).await.map_err(from_postgres)? {
            available.push((column(row, "chunk")?, column(row, "available")?));
        }
    }
    Ok(Plan::draw(product.described.range, asks, &available, rng))
}

type Decisions<'a> = Vec<(&'a Ask, Decision)>;

/// Decides oldest first. An order that panics is left out and gives back what it had; its neighbours do not notice.
fn decide_all<'a>(
    decider: &mut Decider<'_, StdRng>,
    asks: &'a [Ask],
) -> std::result::Result<(Decisions<'a>, HashSet<Uuid>), Failure> {
    let mut decisions = Vec::with_capacity(asks.len());
    let mut panicked = HashSet::new();
    for ask in asks {
        let decision = catch_unwind(AssertUnwindSafe(|| {
            fail::fail_point!("reserve.decide");
            decider.decide(ask)
        }));
        match decision {
            Ok(Ok(decision)) => decisions.push((ask, decision)),
            Ok(Err(domain::numbers::TooNarrow)) => return Err(Failure::TooNarrow),
            Err(_) => {
                tracing::error!(order.id = %ask.order_id, "deciding the order panicked");
                decider.undo();
                panicked.insert(ask.order_id);
            }
        }
    }
    Ok((decisions, panicked))
}

/// What the group takes, by number, as the index will receive it.
fn taken_by(decisions: &Decisions<'_>) -> Vec<(i32, Option<Uuid>)> {
    let mut taken = Vec::new();
    for (ask, decision) in decisions {
        if let Decision::Reserved { numbers, .. } = decision {
            taken.extend(numbers.iter().map(|number| (*number, Some(ask.order_id))));
        }
    }
    taken.sort_unstable_by_key(|(number, _)| *number);
    taken
}

/// A bit alone does not refuse a number: each lost one must have its row, or be taken by this very group.
async fn verify_lost(
    tx: &Transaction<'_>,
    product_key: i32,
    range: Range,
    decisions: &Decisions<'_>,
    taken: &[(i32, Option<Uuid>)],
) -> std::result::Result<(), Failure> {
    let mut lost = BTreeSet::new();
    for (_, decision) in decisions {
        let (Decision::Reserved { lost: some, .. } | Decision::Rejected { lost: some, .. }) = decision;
        lost.extend(some.iter().copied().filter(|number| range.contains(*number)));
    }
    lost.retain(|number| taken.binary_search_by_key(number, |(taken, _)| *taken).is_err());
    if lost.is_empty() {
        return Ok(());
    }
    let numbers: Vec<i32> = lost.iter().copied().collect();
    let sql = "select number from taken_numbers where product_key = $1 and number = any($2)";
    for row in &tx.query_typed(sql, &[(&product_key, INT4), (&numbers, INT4S)]).await? {
        lost.remove(&column::<i32>(row, "number")?);
    }
    if lost.is_empty() {
        return Ok(());
    }
    let chunks: BTreeSet<i32> = lost.iter().map(|number| range.chunk_of(*number)).collect();
    Err(Failure::Disagreement(chunks.into_iter().collect()))
}
