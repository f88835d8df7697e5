//! Workbooks. Written row by row into a file of this environment, zipped into another, uploaded from there: memory
//! holds a page and a part.
//!
//! Cells are text and say so, beginning with whatever they like; they keep the mark that they are text when a person
//! edits them. Amounts and moments are numbers.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::PathBuf;

use domain::exports::{Cell, Failure, headings};
use domain::limits::{EXPORT_PART_TIME, XLSX_ROWS_MAX};
use domain::{Error, Result};
use edge::Deadline;
use rust_xlsxwriter::{ExcelDateTime, Format, Workbook, Worksheet, XlsxError};
use store::exports::{Claimed, page, renew};

use crate::upload::{Added, Content, add, complete, start_over};
use crate::{End, State};

/// Pages after which a writer says that it lives, and how far it is.
const PAGES_PER_SIGN: usize = 10;
/// Characters that a column shows.
const COLUMN_WIDTH: f64 = 22.0;

/// Writes all of it, or completes what is uploaded already.
pub(crate) async fn write(state: &State, claimed: &mut Claimed, deadline: Deadline) -> Result<End> {
    if claimed.is_written
        && let Some(end) = complete(state, claimed).await?
    {
        return Ok(end);
    }
    let (file, rows) = match build(state, claimed, deadline).await? {
        Built::File(file, rows) => (file, rows),
        Built::End(end) => return Ok(end),
    };
    if !start_over(state, claimed).await? {
        return Ok(End::Lost);
    }
    match upload(state, claimed, &file, rows).await? {
        Added::Yes => {}
        Added::Lost => return Ok(End::Lost),
        Added::Gone => return Err(Error::busy("the upload of a workbook is gone")),
    }
    complete(state, claimed).await?.ok_or_else(|| Error::busy("the upload of a workbook is gone"))
}

/// A file of this environment, until it is dropped.
struct Temporary(PathBuf);

impl Temporary {
    /// A name that no other claim has.
    fn of(claimed: &Claimed) -> Self {
        Self(std::env::temp_dir().join(format!("tirada-{}.xlsx", claimed.claim.simple())))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // One that was never made cannot be removed.
        let _ = std::fs::remove_file(&self.0);
    }
}

enum Built {
    File(Temporary, i64),
    End(End),
}

async fn build(state: &State, claimed: &Claimed, deadline: Deadline) -> Result<Built> {
    let mut workbook = Workbook::new();
    let formats = Formats::new();
    let names = headings(claimed.kind, claimed.language);
    formats.head(workbook.add_worksheet_with_constant_memory().map_err(fault)?, names).map_err(fault)?;
    let (mut cursor, mut rows) = (None::<String>, 0_i64);
    for pages in 1.. {
        // Zipping it takes as long again as its parts.
        if deadline.left() < EXPORT_PART_TIME * 2 {
            return Ok(Built::End(End::Failed(Failure::TookTooLong)));
        }
        let client = state.database.client().await?;
        let found = page(&client, claimed, cursor.as_deref()).await?;
        let sheet = workbook.worksheet_from_index(0).map_err(fault)?;
        for cells in &found.rows {
            rows += 1;
            if rows > XLSX_ROWS_MAX {
                return Ok(Built::End(End::Failed(Failure::TooManyRows)));
            }
            formats.row(sheet, u32::try_from(rows).map_err(Error::fault)?, cells).map_err(fault)?;
        }
        let is_last = found.next.is_none();
        if (is_last || pages % PAGES_PER_SIGN == 0) && !renew(&client, claimed, rows, found.percent.min(99)).await? {
            return Ok(Built::End(End::Lost));
        }
        if is_last {
            break;
        }
        cursor = found.next;
    }
    let file = Temporary::of(claimed);
    let mut writer = BufWriter::new(File::create(&file.0).map_err(Error::fault)?);
    workbook.save_to_writer(&mut writer).map_err(fault)?;
    writer.flush().map_err(Error::fault)?;
    Ok(Built::File(file, rows))
}

/// Uploads a file; what became of its last part.
async fn upload(state: &State, claimed: &mut Claimed, file: &Temporary, rows: i64) -> Result<Added> {
    let mut reader = File::open(&file.0).map_err(Error::fault)?;
    let size = reader.metadata().map_err(Error::fault)?.len();
    let part_bytes = u64::try_from(state.part_bytes).map_err(Error::fault)?;
    let mut left = size;
    while left > 0 {
        let mut bytes = Vec::new();
        (&mut reader).take(part_bytes).read_to_end(&mut bytes).map_err(Error::fault)?;
        left = left.saturating_sub(part_bytes);
        let is_first = claimed.parts.is_empty();
        // Rows are those of the whole file: its parts have none of their own.
        let rows = if is_first { rows } else { 0 };
        let content = Content { bytes, cursor: None, rows, percent: 99, is_last: left == 0 };
        match add(state, claimed, content).await? {
            Added::Yes => {}
            other => return Ok(other),
        }
    }
    Ok(Added::Yes)
}

/// How cells look.
struct Formats {
    heading: Format,
    text: Format,
    whole: Format,
    moment: Format,
}

impl Formats {
    fn new() -> Self {
        Self {
            heading: Format::new().set_bold(),
            // As if a person had typed an apostrophe in front: editing a cell makes no formula of it.
            text: Format::new().set_num_format("@").set_quote_prefix(),
            whole: Format::new().set_num_format("0"),
            moment: Format::new().set_num_format("yyyy-mm-dd hh:mm:ss"),
        }
    }

    fn head(&self, sheet: &mut Worksheet, names: &[&str]) -> Result<(), XlsxError> {
        sheet.set_freeze_panes(1, 0)?;
        for (name, column) in names.iter().zip(0_u16..) {
            sheet.set_column_width(column, COLUMN_WIDTH)?;
            sheet.write_string_with_format(0, column, *name, &self.heading)?;
        }
        Ok(())
    }

    fn row(&self, sheet: &mut Worksheet, row: u32, cells: &[Cell]) -> Result<(), XlsxError> {
        for (cell, column) in cells.iter().zip(0_u16..) {
            match cell {
                Cell::Text(text) => sheet.write_string_with_format(row, column, text.as_str(), &self.text)?,
                Cell::Whole(number) => sheet.write_number_with_format(row, column, float(*number), &self.whole)?,
                Cell::Moment(moment) => {
                    let moment = ExcelDateTime::from_timestamp(moment.unix_timestamp())?;
                    sheet.write_datetime_with_format(row, column, &moment, &self.moment)?
                }
                Cell::Empty => continue,
            };
        }
        Ok(())
    }
}

/// Prices of a hundred numbers are far below 2^53, up to which every whole number has a float of its own.
#[allow(clippy::cast_precision_loss, reason = "amounts stay below 2^53")]
const fn float(number: i64) -> f64 {
    number as f64
}

fn fault(error: XlsxError) -> Error {
    Error::fault(error)
}
