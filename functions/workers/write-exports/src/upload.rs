//! What both formats do with an upload: begin it, add a part, complete it. The row says it before anybody believes it.

use domain::{Error, Result};
use store::exports::{Claimed, Part, begin, finish, save_part};

use crate::bucket::Kept;
use crate::{End, State};

/// Begins with nothing: another upload, no parts. False when somebody else has the export.
pub(crate) async fn start_over(state: &State, claimed: &mut Claimed) -> Result<bool> {
    if let Some(old) = claimed.upload_id.take() {
        state.bucket.abort(&claimed.key(), &old).await;
    }
    let upload_id = state.bucket.begin(&claimed.key(), claimed.format.media_type(), &claimed.file_name()).await?;
    let is_ours = begin(&*state.database.client().await?, claimed, &upload_id).await?;
    claimed.upload_id = Some(upload_id);
    claimed.parts.clear();
    claimed.cursor = None;
    claimed.rows = 0;
    claimed.is_written = false;
    Ok(is_ours)
}

/// A part to be.
pub(crate) struct Content {
    pub(crate) bytes: Vec<u8>,
    pub(crate) cursor: Option<String>,
    pub(crate) rows: i64,
    pub(crate) percent: i16,
    pub(crate) is_last: bool,
}

/// What became of a part.
pub(crate) enum Added {
    /// It is saved.
    Yes,
    /// Somebody else has the export.
    Lost,
    /// The upload is over: only another one helps.
    Gone,
}

/// Uploads the next part and saves that it is there.
pub(crate) async fn add(state: &State, claimed: &mut Claimed, content: Content) -> Result<Added> {
    let number = i32::try_from(claimed.parts.len() + 1).map_err(Error::fault)?;
    let bytes = i64::try_from(content.bytes.len()).map_err(Error::fault)?;
    let etag = match state.bucket.put_part(&claimed.key(), upload_id(claimed)?, number, content.bytes).await? {
        Kept::Yes(etag) => etag,
        Kept::Gone => return Ok(Added::Gone),
    };
    fail::fail_point!("export.before_save");
    let part = Part {
        number,
        etag: &etag,
        cursor: content.cursor.as_deref(),
        rows: content.rows,
        bytes,
        percent: content.percent,
        is_last: content.is_last,
    };
    if !save_part(&*state.database.client().await?, claimed, &part).await? {
        return Ok(Added::Lost);
    }
    claimed.parts.push(etag);
    claimed.cursor = content.cursor.or(claimed.cursor.take());
    claimed.rows += content.rows;
    claimed.is_written = content.is_last;
    Ok(Added::Yes)
}

/// Makes a file of the parts. None when the upload is over and left no file: then all of it is to be written again.
pub(crate) async fn complete(state: &State, claimed: &Claimed) -> Result<Option<End>> {
    let key = claimed.key();
    let kept = state.bucket.complete(&key, upload_id(claimed)?, &claimed.parts).await?;
    // Whoever completed it and died before saying so has left the file.
    if kept == Kept::Gone && !state.bucket.has(&key).await? {
        return Ok(None);
    }
    fail::fail_point!("export.before_finish");
    let is_ours = finish(&*state.database.client().await?, claimed).await?;
    Ok(Some(if is_ours { End::Ready } else { End::Lost }))
}

fn upload_id(claimed: &Claimed) -> Result<&str> {
    claimed.upload_id.as_deref().ok_or_else(|| Error::fault("an export without an upload"))
}
