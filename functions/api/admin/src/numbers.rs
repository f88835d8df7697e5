//! Numbers off sale, and on sale again.

use std::collections::BTreeSet;

use access::{Staff, StaffAuth};
use axum::extract::State as Shared;
use axum::http::StatusCode;
use domain::limits::NUMBERS_PER_ACT_MAX;
use domain::roles::Action;
use domain::{Error, Reason, Result};
use edge::Problem;
use edge::http::{IdempotencyKey, JsonBody, PathParams};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::Client;
use store::acts::{NewAct, Subject};
use store::catalog::Product;
use store::numbers::{self, list_unfit};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::State;
use crate::unfit;

/// Numbers of a product.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NumbersRequest {
    /// All of them or none: at most 1,000.
    #[schema(min_items = 1, max_items = 1_000, example = json!([7, 77]))]
    numbers: Vec<i32>,
    /// Why; kept in the audit log.
    #[schema(max_length = 200, example = "kept for the jury")]
    reason: String,
}

impl NumbersRequest {
    fn numbers(&self) -> Result<BTreeSet<i32>, Problem> {
        if !(1..=NUMBERS_PER_ACT_MAX).contains(&self.numbers.len()) {
            let detail = format!("must be 1 to {NUMBERS_PER_ACT_MAX} numbers");
            return Err(Problem::new(Reason::Invalid).with_error("/numbers", detail));
        }
        Ok(self.numbers.iter().copied().collect())
    }

    fn act(&self, staff: Staff, id: Uuid, key: &IdempotencyKey) -> Result<NewAct, Problem> {
        let deed = staff.act(Subject::Product, id).with(&json!({ "numbers": self.numbers }));
        Ok(deed.because(&self.reason)?.under(key, self)?.act)
    }
}

/// What became of it; which numbers stood in its way.
async fn answer(
    client: &Client,
    product: &Product,
    numbers: &BTreeSet<i32>,
    take: bool,
    done: Result<()>,
) -> Result<StatusCode, Problem> {
    match done {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(Error::Rejected(Reason::NumbersTaken)) => {
            let rule = if take { "only free numbers can be blocked" } else { "only blocked numbers can be unblocked" };
            let found = list_unfit(client, product, numbers, take).await?;
            Err(unfit::refused(rule, &found, product.described.padding))
        }
        Err(other) => Err(other.into()),
    }
}

/// Take free numbers off sale.
#[utoipa::path(
    post, path = "/v1/admin/products/{product}/blocks", tag = "admin", operation_id = "block_numbers",
    params(("product" = Uuid, Path, description = "The product"),
        ("Idempotency-Key" = String, Header, description = "Chosen by the client, one per act")),
    request_body = NumbersRequest,
    responses(
        (status = 204, description = "Blocked"),
        (status = 400, description = "key-missing, invalid", body = Problem),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 403, description = "forbidden", body = Problem),
        (status = 404, description = "not-found", body = Problem),
        (status = 409, description = "numbers-taken, reserving-halted, key-in-flight", body = Problem),
        (status = 413, description = "too-large", body = Problem),
        (status = 415, description = "unsupported-media-type", body = Problem),
        (status = 422, description = "invalid, out-of-range, key-reused", body = Problem),
        (status = 503, description = "unavailable", body = Problem)),
    security(("staff" = []))
)]
pub(crate) async fn block(
    Shared(state): Shared<State>,
    auth: StaffAuth,
    PathParams(id): PathParams<Uuid>,
    key: IdempotencyKey,
    JsonBody(body): JsonBody<NumbersRequest>,
) -> Result<StatusCode, Problem> {
    let staff = auth.may(Action::BlockNumbers)?;
    let (numbers, act) = (body.numbers()?, body.act(staff, id, &key)?);
    let mut client = state.database.client().await?;
    let product = store::products::find(&client, staff.tenant_id, id).await?;
    let done = numbers::block(&mut client, &product, &numbers, &act).await;
    answer(&client, &product, &numbers, true, done).await
}

/// Put blocked numbers on sale again.
#[utoipa::path(
    post, path = "/v1/admin/products/{product}/unblocks", tag = "admin", operation_id = "unblock_numbers",
    params(("product" = Uuid, Path, description = "The product"),
        ("Idempotency-Key" = String, Header, description = "Chosen by the client, one per act")),
    request_body = NumbersRequest,
    responses(
        (status = 204, description = "On sale"),
        (status = 400, description = "key-missing, invalid", body = Problem),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 403, description = "forbidden", body = Problem),
        (status = 404, description = "not-found", body = Problem),
        (status = 409, description = "numbers-taken, reserving-halted, key-in-flight", body = Problem),
        (status = 413, description = "too-large", body = Problem),
        (status = 415, description = "unsupported-media-type", body = Problem),
        (status = 422, description = "invalid, out-of-range, key-reused", body = Problem),
        (status = 503, description = "unavailable", body = Problem)),
    security(("staff" = []))
)]
pub(crate) async fn unblock(
    Shared(state): Shared<State>,
    auth: StaffAuth,
    PathParams(id): PathParams<Uuid>,
    key: IdempotencyKey,
    JsonBody(body): JsonBody<NumbersRequest>,
) -> Result<StatusCode, Problem> {
    let staff = auth.may(Action::UnblockNumbers)?;
    let (numbers, act) = (body.numbers()?, body.act(staff, id, &key)?);
    let mut client = state.database.client().await?;
    let product = store::products::find(&client, staff.tenant_id, id).await?;
    let done = numbers::unblock(&mut client, &product, &numbers, &act).await;
    answer(&client, &product, &numbers, false, done).await
}
