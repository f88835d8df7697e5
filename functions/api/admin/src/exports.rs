//! Files that staff take away: asked for, followed, fetched by a link.

use std::time::SystemTime;

use access::StaffAuth;
use axum::Json;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use domain::exports::{Failure, Format, Kind};
use domain::limits::DOWNLOAD_LINK_LIVES;
use domain::login::Language;
use domain::roles::Action;
use domain::{Reason, Result};
use edge::Problem;
use edge::http::{IDEMPOTENCY_REPLAYED, IdempotencyKey, JsonBody, Page, PathParams, QueryParams, cut};
use edge::storage::Bucket;
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::acts::Subject;
use store::exports::{Export, NewExport};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::State;

/// A file to be written.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExportRequest {
    /// `orders`, or `numbers`: those that are not available, with their owners.
    #[schema(pattern = "^(orders|numbers)$", example = "orders")]
    kind: String,
    /// `csv`, of any length, or `xlsx`, of 1,000,000 rows at most.
    #[schema(pattern = "^(csv|xlsx)$", example = "xlsx")]
    format: String,
    /// The language of its headings: `es`, `pt-BR` or `en`.
    #[schema(pattern = "^(es|pt-BR|en)$", example = "pt-BR")]
    language: String,
}

impl ExportRequest {
    fn described(&self, id: Uuid, product_id: Uuid, staff_id: Uuid) -> Result<NewExport, Problem> {
        let wrong = |pointer: &str, detail: &str| Problem::new(Reason::Invalid).with_error(pointer, detail);
        let kind = Kind::from_word(&self.kind).ok_or_else(|| wrong("/kind", "must be orders or numbers"))?;
        let format = Format::from_word(&self.format).ok_or_else(|| wrong("/format", "must be csv or xlsx"))?;
        let language = Language::from_tag(&self.language);
        let language = language.ok_or_else(|| wrong("/language", "must be es, pt-BR or en"))?;
        Ok(NewExport { id, product_id, staff_id, kind, format, language })
    }
}

/// A file that somebody took away, or is about to.
#[derive(Serialize, ToSchema)]
pub(crate) struct StoreExport {
    /// Its id.
    id: Uuid,
    /// Its product.
    product_id: Uuid,
    /// Who asked for it.
    staff_id: Uuid,
    /// `orders` or `numbers`.
    #[schema(value_type = String, example = "orders")]
    kind: &'static str,
    /// `csv` or `xlsx`.
    #[schema(value_type = String, example = "xlsx")]
    format: &'static str,
    /// `queued`, `writing`, `ready` or `failed`.
    #[schema(value_type = String, example = "writing")]
    state: &'static str,
    /// Rows so far, the headings not counted.
    rows: i64,
    /// Bytes so far.
    bytes: i64,
    /// How much of it is done, roughly.
    #[schema(minimum = 0, maximum = 100)]
    percent: i16,
    /// When it was asked for. Later orders are not in it.
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    /// When it was over.
    #[serde(with = "time::serde::rfc3339::option")]
    finished_at: Option<OffsetDateTime>,
    /// Until when its file is kept.
    #[serde(with = "time::serde::rfc3339::option")]
    expires_at: Option<OffsetDateTime>,
    /// Why there is no file: too-many-rows, took-too-long or gave-up.
    #[schema(value_type = Option<String>)]
    failure: Option<&'static str>,
    /// Where it can be fetched within five minutes, without a token; null while it is not there, in lists, without a
    /// fresh proof, and when it is not kept any more.
    download: Option<String>,
}

impl From<Export> for StoreExport {
    fn from(export: Export) -> Self {
        Self {
            id: export.id,
            product_id: export.product_id,
            staff_id: export.staff_id,
            kind: export.kind.word(),
            format: export.format.word(),
            state: export.state.word(),
            rows: export.rows,
            bytes: export.bytes,
            percent: export.percent,
            created_at: export.created_at,
            finished_at: export.finished_at,
            expires_at: export.expires_at,
            failure: export.failure.map(Failure::word),
            download: None,
        }
    }
}

impl StoreExport {
    fn with_link(export: Export, bucket: &Bucket) -> Result<Self> {
        let key = export.is_there.then(|| export.key());
        let link = key.map(|key| bucket.link(&key, DOWNLOAD_LINK_LIVES, SystemTime::now())).transpose()?;
        Ok(Self { download: link, ..Self::from(export) })
    }
}

/// A page of a store's exports, newest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct StoreExports {
    /// The exports.
    exports: Vec<StoreExport>,
    /// For the next page; null on the last one.
    next_cursor: Option<String>,
}

/// Take a product's orders or numbers away as a file.
///
/// It is begun within a minute. Each page of it is as it was when it was written; phones and numbers are text. In a CSV
/// file an apostrophe stands in front of texts that a spreadsheet could take for a formula, and of those that begin
/// with one: take one off.
#[utoipa::path(
    post, path = "/v1/admin/products/{product}/exports", tag = "admin", operation_id = "export_product",
    params(("product" = Uuid, Path, description = "The product"),
        ("Idempotency-Key" = String, Header, description = "Chosen by the client, one per export")),
    request_body = ExportRequest,
    responses(
        (status = 202, description = "Recorded", body = StoreExport, headers(
            ("Location" = String, description = "The export"),
            ("Idempotency-Replayed" = String, description = "true when the key had been used before"))),
        (status = 400, description = "key-missing, invalid", body = Problem),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 403, description = "forbidden, not-fresh", body = Problem),
        (status = 404, description = "not-found", body = Problem),
        (status = 409, description = "key-in-flight", body = Problem),
        (status = 413, description = "too-large", body = Problem),
        (status = 415, description = "unsupported-media-type", body = Problem),
        (status = 422, description = "invalid, key-reused", body = Problem),
        (status = 429, description = "too-many-requests", body = Problem, headers(
            ("Retry-After" = u32, description = "Seconds to wait"))),
        (status = 503, description = "unavailable", body = Problem)),
    security(("staff" = []))
)]
pub(crate) async fn request(
    Shared(state): Shared<State>,
    auth: StaffAuth,
    PathParams(product_id): PathParams<Uuid>,
    key: IdempotencyKey,
    JsonBody(body): JsonBody<ExportRequest>,
) -> Result<Response, Problem> {
    let staff = auth.may(Action::ExportProduct)?;
    let id = staff.id_of(&key, product_id);
    let new = body.described(id, product_id, staff.staff_id)?;
    let detail = json!({ "product": product_id, "kind": new.kind.word(), "format": new.format.word() });
    let deed = staff.act(Subject::Export, id).with(&detail).under(&key, &body)?;
    let mut client = state.database.client().await?;
    let is_new = store::exports::request(&mut client, &new, &deed.act).await?;
    let made = store::exports::find(&client, staff.tenant_id, id).await?;
    let replayed = (!is_new).then_some([(IDEMPOTENCY_REPLAYED, "true")]);
    let location = [(LOCATION, format!("/v1/admin/exports/{id}"))];
    Ok((StatusCode::ACCEPTED, replayed, location, Json(StoreExport::from(made))).into_response())
}

/// List the store's exports.
#[utoipa::path(
    get, path = "/v1/admin/exports", tag = "admin", operation_id = "list_exports", params(Page),
    responses(
        (status = 200, description = "A page of exports", body = StoreExports),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 403, description = "forbidden", body = Problem),
        (status = 422, description = "invalid", body = Problem),
        (status = 503, description = "unavailable", body = Problem)),
    security(("staff" = []))
)]
pub(crate) async fn list(
    Shared(state): Shared<State>,
    auth: StaffAuth,
    QueryParams(page): QueryParams<Page>,
) -> Result<Json<StoreExports>, Problem> {
    let staff = auth.may(Action::ListExports)?;
    let (limit, after) = page.bounds()?;
    let client = state.database.client().await?;
    let mut found = store::exports::list(&client, staff.tenant_id, after, limit + 1).await?;
    let next_cursor = cut(&mut found, limit, |export| export.id);
    Ok(Json(StoreExports { exports: found.into_iter().map(StoreExport::from).collect(), next_cursor }))
}

/// Follow an export, and fetch its file.
///
/// Each answer has a link of its own, for who has proved within ten minutes who they are, and each link stands in the
/// audit log.
#[utoipa::path(
    get, path = "/v1/admin/exports/{export}", tag = "admin", operation_id = "read_export",
    params(("export" = Uuid, Path, description = "The export")),
    responses(
        (status = 200, description = "The export", body = StoreExport),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 403, description = "forbidden", body = Problem),
        (status = 404, description = "not-found", body = Problem),
        (status = 503, description = "unavailable", body = Problem)),
    security(("staff" = []))
)]
pub(crate) async fn read(
    Shared(state): Shared<State>,
    auth: StaffAuth,
    PathParams(id): PathParams<Uuid>,
) -> Result<Json<StoreExport>, Problem> {
    let staff = auth.may(Action::ReadExport)?;
    let mut client = state.database.client().await?;
    let export = store::exports::find(&client, staff.tenant_id, id).await?;
    // What the file holds is what asking for it wanted a fresh proof for.
    let is_fresh = auth.may(Action::ExportProduct).is_ok();
    let shown = if is_fresh { StoreExport::with_link(export, &state.exports)? } else { export.into() };
    if shown.download.is_some() {
        let detail = json!({ "product": shown.product_id, "kind": shown.kind, "format": shown.format });
        store::acts::note(&mut client, &staff.act(Subject::Export, id).with(&detail).act).await?;
    }
    Ok(Json(shown))
}
