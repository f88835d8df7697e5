//! CSV files. What is in a part that is saved is never read again: whoever goes on begins after its last row.

use domain::exports::{BYTE_ORDER_MARK, Cell, csv_line, headings};
use domain::limits::EXPORT_PART_TIME;
use domain::{Error, Result};
use edge::Deadline;
use store::exports::{Claimed, page, renew};

use crate::upload::{Added, Content, add, complete, start_over};
use crate::{End, State};

/// Pages after which a writer says that it lives, in a part that finds few rows.
const PAGES_PER_SIGN: usize = 100;

/// Writes what is left.
pub(crate) async fn write(state: &State, claimed: &mut Claimed, deadline: Deadline) -> Result<End> {
    // Of an upload that has no saved part nothing is known: whoever began it may still add parts, or complete it.
    if claimed.parts.is_empty() && !start_over(state, claimed).await? {
        return Ok(End::Lost);
    }
    // An upload that is gone, as after a day of rest, is begun again once.
    for _ in 0..2 {
        if let Some(end) = parts(state, claimed, deadline).await? {
            return Ok(end);
        }
        if !start_over(state, claimed).await? {
            return Ok(End::Lost);
        }
    }
    Err(Error::busy("the upload of an export was gone twice"))
}

/// The parts that are left, and the end. None when the upload is over.
async fn parts(state: &State, claimed: &mut Claimed, deadline: Deadline) -> Result<Option<End>> {
    let before = claimed.parts.len();
    while !claimed.is_written {
        let content = match next(state, claimed, deadline).await? {
            Next::Content(content) => content,
            Next::Lost => return Ok(Some(End::Lost)),
            // Without any part in all that time another try would end the same.
            Next::OutOfTime if claimed.parts.len() == before => {
                return Ok(Some(End::Failed(domain::exports::Failure::TookTooLong)));
            }
            Next::OutOfTime => return Ok(Some(End::PutDown)),
        };
        match add(state, claimed, content).await? {
            Added::Yes => {}
            Added::Lost => return Ok(Some(End::Lost)),
            Added::Gone => return Ok(None),
        }
    }
    complete(state, claimed).await
}

enum Next {
    Content(Content),
    Lost,
    OutOfTime,
}

/// Pages until a part is full or nothing is left.
async fn next(state: &State, claimed: &Claimed, deadline: Deadline) -> Result<Next> {
    let mut text = String::new();
    if claimed.parts.is_empty() {
        text.push_str(BYTE_ORDER_MARK);
        let names = headings(claimed.kind, claimed.language);
        let names: Vec<Cell> = names.iter().map(|name| Cell::Text((*name).to_owned())).collect();
        csv_line(&mut text, &names);
    }
    let (mut cursor, mut rows) = (claimed.cursor.clone(), 0);
    for pages in 1.. {
        if deadline.left() < EXPORT_PART_TIME {
            return Ok(Next::OutOfTime);
        }
        let client = state.database.client().await?;
        let found = page(&client, claimed, cursor.as_deref()).await?;
        found.rows.iter().for_each(|cells| csv_line(&mut text, cells));
        rows += i64::try_from(found.rows.len()).map_err(Error::fault)?;
        let is_last = found.next.is_none();
        cursor = found.next.or(cursor);
        if is_last || text.len() >= state.part_bytes {
            let content = Content { bytes: text.into_bytes(), cursor, rows, percent: found.percent, is_last };
            return Ok(Next::Content(content));
        }
        if pages % PAGES_PER_SIGN == 0 && !renew(&client, claimed, claimed.rows, found.percent).await? {
            return Ok(Next::Lost);
        }
    }
    Err(Error::fault("pages have no end"))
}
