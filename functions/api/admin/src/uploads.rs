//! Images that staff upload, straight to the bucket by a form that allows exactly one.

use std::collections::BTreeMap;
use std::time::SystemTime;

use access::StaffAuth;
use axum::Json;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use domain::limits::{UPLOAD_BYTES_MAX, UPLOAD_BYTES_MIN};
use domain::roles::Action;
use domain::uploads::{Image, Refusal, State as UploadState, public_key, quarantine_key};
use domain::{Reason, Result};
use edge::Problem;
use edge::http::{IDEMPOTENCY_REPLAYED, IdempotencyKey, JsonBody, PathParams};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::acts::Subject;
use store::uploads::Upload;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::State;

/// An image to be uploaded.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UploadRequest {
    /// What it is: `image/png`, `image/jpeg`, `image/webp` or `image/avif`.
    #[schema(pattern = "^image/(png|jpeg|webp|avif)$", example = "image/webp")]
    media_type: String,
}

/// A form that the bucket takes. It is sent as `multipart/form-data`: these fields, then the file as `file`.
#[derive(Serialize, ToSchema)]
pub(crate) struct UploadForm {
    /// Where it is sent, by POST.
    url: String,
    /// Its fields, to be sent as they are.
    fields: BTreeMap<String, String>,
    /// Fewest bytes of the file.
    #[schema(example = 64)]
    bytes_min: u64,
    /// Most bytes of the file.
    #[schema(example = 5_242_880)]
    bytes_max: u64,
}

/// An image that is uploaded, or about to be.
#[derive(Serialize, ToSchema)]
pub(crate) struct StoreUpload {
    /// Its id.
    id: Uuid,
    /// What it must be.
    #[schema(value_type = String, example = "image/webp")]
    media_type: &'static str,
    /// `waiting`, `accepted`, `rejected` or `expired`.
    #[schema(value_type = String, example = "waiting")]
    state: &'static str,
    /// Until when the bucket takes it.
    #[serde(with = "time::serde::rfc3339")]
    expires_at: OffsetDateTime,
    /// How it is sent; null once that is too late.
    form: Option<UploadForm>,
    /// Its path at the origin that serves images, once it is accepted.
    path: Option<String>,
    /// Its size, once it is accepted.
    bytes: Option<i64>,
    /// Why it was rejected: wrong-size, wrong-kind, more-than-an-image or too-many-pixels.
    #[schema(value_type = Option<String>)]
    refusal: Option<&'static str>,
}

impl State {
    /// An upload as staff see it.
    fn shown(&self, upload: &Upload) -> Result<StoreUpload> {
        let waits = upload.state == UploadState::Waiting && upload.is_open;
        let path = public_key(upload.tenant_id, upload.id, upload.image);
        Ok(StoreUpload {
            id: upload.id,
            media_type: upload.image.media_type(),
            state: upload.state.word(),
            expires_at: upload.expires_at,
            form: waits.then(|| self.form(upload)).transpose()?,
            path: (upload.state == UploadState::Accepted).then(|| format!("/{path}")),
            bytes: upload.bytes,
            refusal: upload.refusal.map(Refusal::word),
        })
    }

    /// Good until the upload's own end, however often it is asked for.
    fn form(&self, upload: &Upload) -> Result<UploadForm> {
        let key = quarantine_key(upload.tenant_id, upload.id);
        let bytes = UPLOAD_BYTES_MIN..=UPLOAD_BYTES_MAX;
        let until = SystemTime::from(upload.expires_at);
        let form = self.uploads.form(&key, upload.image.media_type(), &bytes, until, SystemTime::now())?;
        let fields = form.fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Ok(UploadForm { url: form.url, fields, bytes_min: UPLOAD_BYTES_MIN, bytes_max: UPLOAD_BYTES_MAX })
    }
}

/// Upload an image.
///
/// The answer has a form that the bucket takes within five minutes: one key, one media type, 64 bytes to 5 MiB. What
/// comes is looked at, and public only when it is the image that it claims to be. Repeated under its key it gives
/// another form for the same upload.
#[utoipa::path(
    post, path = "/v1/admin/uploads", tag = "admin", operation_id = "begin_upload",
    params(("Idempotency-Key" = String, Header, description = "Chosen by the client, one per image")),
    request_body = UploadRequest,
    responses(
        (status = 201, description = "What to send, and where", body = StoreUpload, headers(
            ("Location" = String, description = "The upload"),
            ("Idempotency-Replayed" = String, description = "true when the key had been used before"))),
        (status = 400, description = "key-missing, invalid", body = Problem),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 403, description = "forbidden", body = Problem),
        (status = 409, description = "key-in-flight", body = Problem),
        (status = 413, description = "too-large", body = Problem),
        (status = 415, description = "unsupported-media-type", body = Problem),
        (status = 422, description = "invalid, key-reused", body = Problem),
        (status = 429, description = "too-many-requests", body = Problem, headers(
            ("Retry-After" = u32, description = "Seconds to wait"))),
        (status = 503, description = "unavailable", body = Problem)),
    security(("staff" = []))
)]
pub(crate) async fn begin(
    Shared(state): Shared<State>,
    auth: StaffAuth,
    key: IdempotencyKey,
    JsonBody(body): JsonBody<UploadRequest>,
) -> Result<Response, Problem> {
    let staff = auth.may(Action::BeginUpload)?;
    let wrong = || {
        let detail = "must be image/png, image/jpeg, image/webp or image/avif";
        Problem::new(Reason::Invalid).with_error("/media_type", detail)
    };
    let image = Image::from_media_type(&body.media_type).ok_or_else(wrong)?;
    let id = staff.id_of(&key, staff.tenant_id);
    let deed = staff.act(Subject::Upload, id).with(&json!({ "media_type": image.media_type() })).under(&key, &body)?;
    let mut client = state.database.client().await?;
    let is_new = store::uploads::begin(&mut client, id, staff.staff_id, image, &deed.act).await?;
    let made = store::uploads::find(&client, staff.tenant_id, id).await?;
    let made = made.ok_or_else(|| Problem::new(Reason::NotFound))?;
    let replayed = (!is_new).then_some([(IDEMPOTENCY_REPLAYED, "true")]);
    let location = [(LOCATION, format!("/v1/admin/uploads/{id}"))];
    Ok((StatusCode::CREATED, replayed, location, Json(state.shown(&made)?)).into_response())
}

/// Follow an upload.
#[utoipa::path(
    get, path = "/v1/admin/uploads/{upload}", tag = "admin", operation_id = "read_upload",
    params(("upload" = Uuid, Path, description = "The upload")),
    responses(
        (status = 200, description = "The upload", body = StoreUpload),
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
) -> Result<Json<StoreUpload>, Problem> {
    let staff = auth.may(Action::ReadUpload)?;
    let found = store::uploads::find(&*state.database.client().await?, staff.tenant_id, id).await?;
    let found = found.ok_or_else(|| Problem::new(Reason::NotFound))?;
    Ok(Json(state.shown(&found)?))
}
