//! A batch as groups that one transaction can serve: one product each, bounded, tenants taking turns.

use std::collections::{BTreeMap, HashSet, VecDeque};

use domain::limits::ORDERS_PER_TRANSACTION_MAX;
use domain::messages::OrderMessage;
use uuid::Uuid;

/// Orders of one store's product, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) tenant_id: Uuid,
    pub(crate) product_id: Uuid,
    pub(crate) orders: Vec<Uuid>,
}

/// Groups in the order in which they are served: each tenant's first, then each tenant's second, and so on, so that
/// a tenant with a thousand orders in the batch does not keep another with one waiting for all of them.
pub(crate) fn in_turns(messages: impl IntoIterator<Item = OrderMessage>) -> Vec<Group> {
    let mut seen = HashSet::new();
    let mut tenants: BTreeMap<Uuid, BTreeMap<Uuid, Vec<Uuid>>> = BTreeMap::new();
    for message in messages {
        if seen.insert((message.tenant_id, message.product_id, message.order_id)) {
            let products = tenants.entry(message.tenant_id).or_default();
            products.entry(message.product_id).or_default().push(message.order_id);
        }
    }
    let groups = tenants.into_iter().map(|(tenant_id, products)| bounded(tenant_id, products));
    let mut waiting: VecDeque<VecDeque<Group>> = groups.collect();
    let mut turns = Vec::new();
    while let Some(mut groups) = waiting.pop_front() {
        turns.extend(groups.pop_front());
        if !groups.is_empty() {
            waiting.push_back(groups);
        }
    }
    turns
}

fn bounded(tenant_id: Uuid, products: BTreeMap<Uuid, Vec<Uuid>>) -> VecDeque<Group> {
    let mut groups = VecDeque::new();
    for (product_id, mut orders) in products {
        // UUIDv7: about the order of arrival, so that a group holds orders of about the same age.
        orders.sort_unstable();
        let some = orders.chunks(ORDERS_PER_TRANSACTION_MAX);
        groups.extend(some.map(|some| Group { tenant_id, product_id, orders: some.to_vec() }));
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(tenant: u128, product: u128, order: u128) -> OrderMessage {
        OrderMessage::new(Uuid::from_u128(order), Uuid::from_u128(product), Uuid::from_u128(tenant))
    }

    #[test]
    fn tenants_take_turns_and_groups_are_bounded() {
        let flood = (0..1_200).map(|order| message(1, 10, order));
        let groups = in_turns(flood.chain([message(2, 20, 5_000), message(2, 21, 5_001)]));
        let shape: Vec<_> = groups.iter().map(|group| (group.product_id.as_u128(), group.orders.len())).collect();
        assert_eq!(shape, [(10, 500), (20, 1), (10, 500), (21, 1), (10, 200)]);
    }

    #[test]
    fn a_message_that_came_twice_is_one_order() {
        let groups = in_turns([message(1, 10, 7), message(1, 10, 7), message(1, 10, 3)]);
        let orders = vec![Uuid::from_u128(3), Uuid::from_u128(7)];
        assert_eq!(groups, [Group { tenant_id: Uuid::from_u128(1), product_id: Uuid::from_u128(10), orders }]);
    }

    #[test]
    fn a_message_of_another_tenant_is_no_duplicate() {
        assert_eq!(in_turns([message(1, 10, 7), message(2, 10, 7)]).len(), 2);
    }
}
