//! Finding orders for staff: by what a buyer can name.

use domain::Result;
use domain::limits::PAGE_MAX;
use domain::login::Phone;
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::read::{COLUMNS, Order, order_from};
use crate::errors::from_postgres;
use crate::types::{INT4, INT8, TEXT, Type, UUID};

/// What is known about an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// Its id, which the buyer sees as its code.
    Code(Uuid),
    /// The phone that its buyer logged in with.
    Phone(Phone),
    /// A number of a product that it owns now.
    Number {
        /// The product.
        product_id: Uuid,
        /// The number.
        number: i32,
    },
}

/// Orders of a store that fit, newest first, after one of them.
///
/// # Errors
/// Busy or fault from the database.
pub async fn search(
    client: &Client,
    tenant_id: Uuid,
    wanted: &Wanted,
    after: Option<Uuid>,
    limit: usize,
) -> Result<Vec<Order>> {
    let limit = i64::try_from(limit).unwrap_or(PAGE_MAX);
    let mut params: Vec<(&(dyn ToSql + Sync), Type)> = vec![(&tenant_id, UUID), (&after, UUID), (&limit, INT8)];
    let phone;
    let fits = match wanted {
        Wanted::Code(id) => {
            params.push((id, UUID));
            "o.id = $4"
        }
        Wanted::Phone(wanted) => {
            phone = wanted.as_str();
            params.push((&phone, TEXT));
            "o.buyer_id = (select id from buyers where tenant_id = $1 and phone = $4)"
        }
        Wanted::Number { product_id, number } => {
            params.extend([(product_id as &(dyn ToSql + Sync), UUID), (number, INT4)]);
            "o.id = (select t.order_id from taken_numbers t join products q on q.key = t.product_key
                where q.id = $4 and q.tenant_id = $1 and t.number = $5)"
        }
    };
    let sql = format!(
        "select {COLUMNS} from orders o join products p on p.id = o.product_id
        where o.tenant_id = $1 and {fits} and ($2::uuid is null or o.id < $2) order by o.id desc limit $3"
    );
    let rows = client.query_typed(&sql, &params).await.map_err(from_postgres)?;
    rows.iter().map(order_from).collect()
}
