//! Buyers who keep coming, whatever happens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use store::catalog::Product;
use tests::simulator::{Shopper, World, wish};
use tokio::task::JoinSet;

/// Buyers of one product. Each places one order, and repeats it until it has an answer.
pub(crate) struct Crowd {
    ends: Arc<AtomicBool>,
    lanes: JoinSet<usize>,
}

impl Crowd {
    /// So many buyers at once, each followed by another after a pause.
    pub(crate) fn gather(world: &World, product: &Product, at_once: usize, pause: Duration) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let described = &product.described;
        let mut lanes = JoinSet::new();
        for _ in 0..at_once {
            let (tenant_id, product_id, ends) = (described.tenant_id, described.id, Arc::clone(&ends));
            let (gateway, ledger) = (world.gateway.clone(), world.ledger.clone());
            lanes.spawn(async move {
                let mut orders = 0;
                while !ends.load(Ordering::Relaxed) {
                    let shopper = Shopper::new(tenant_id, gateway.clone(), ledger.clone());
                    let order = shopper.place(product_id, &wish(&[], 1, "reject")).await;
                    assert!(order.is_some(), "a buyer was refused or gave up: {:?}", ledger.refusals());
                    orders += 1;
                    tokio::time::sleep(pause).await;
                }
                orders
            });
        }
        Self { ends, lanes }
    }

    /// Nobody comes any more. Waits for those who are there; how many orders they all placed, each of them accepted.
    pub(crate) async fn leave(mut self) -> usize {
        self.ends.store(true, Ordering::Relaxed);
        let mut orders = 0;
        while let Some(lane) = self.lanes.join_next().await {
            orders += lane.expect("every buyer has an order");
        }
        orders
    }
}
