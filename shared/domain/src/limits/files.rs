//! Bounds of files: those that staff take away, and those that they upload.

use std::time::Duration;

/// Exports of one store that are not finished: each keeps a worker busy for minutes.
pub const EXPORTS_OPEN_MAX: i64 = 5;

/// Rows that an export reads with one statement: far inside `STATEMENT_TIMEOUT`, and a few hundred KiB of memory.
pub const EXPORT_PAGE_ROWS: i64 = 2_000;

/// Orders of all products that one page looks at to find those of its own: there is no index by product, which intake
/// would pay for.
pub const EXPORT_SCAN_ROWS: i64 = 5_000;

/// Bytes of one part of an upload. S3 wants 5 MiB at least, all but the last, and 10,000 parts at most: 80 GiB.
pub const EXPORT_PART_BYTES: usize = 8 * 1_024 * 1_024;

/// Rows of a workbook. A sheet has 1,048,576.
pub const XLSX_ROWS_MAX: i64 = 1_000_000;

/// How long an export belongs to a worker that says nothing more. Longer than one part and its pages may take.
pub const EXPORT_CLAIM: Duration = Duration::from_secs(120);

/// What must be left of an invocation to begin another part.
pub const EXPORT_PART_TIME: Duration = Duration::from_secs(60);

/// What must be left of an invocation to begin with an export: nearly all of it, or a workbook that would fit has too
/// little time because others came first.
pub const EXPORT_TIME: Duration = Duration::from_secs(240);

/// Tries of an export without one more part between them: with the workers' backoff they outlast four minutes.
pub const EXPORT_TRIES_MAX: i16 = 20;

/// How long a finished file can be fetched. It is full of phones; the bucket deletes it a day later.
pub const EXPORT_KEPT: Duration = Duration::from_secs(3 * 24 * 3_600);

/// How long a link to a file is good. The file may take longer to arrive.
pub const DOWNLOAD_LINK_LIVES: Duration = Duration::from_secs(300);

/// How long rows of exports that are over are kept, as a list of what was taken away.
pub const EXPORT_ROWS_KEPT: Duration = Duration::from_secs(90 * 24 * 3_600);

/// Fewest and most bytes of an uploaded image. Shorter ones cannot be images; longer ones are slow on a phone, and
/// whoever looks at one holds all of it in memory.
pub const UPLOAD_BYTES_MIN: u64 = 64;
/// See [`UPLOAD_BYTES_MIN`].
pub const UPLOAD_BYTES_MAX: u64 = 5 * 1_024 * 1_024;

/// Most pixels of an uploaded image: four bytes each in the memory of whoever looks at it, however few bytes it has.
pub const UPLOAD_PIXELS_MAX: u64 = 25_000_000;

/// How long a form to upload something is good.
pub const UPLOAD_FORM_LIVES: Duration = Duration::from_secs(300);

/// How long after that its bytes may still be arriving, and nobody may have been told.
pub const UPLOAD_GRACE: Duration = Duration::from_secs(60);

/// Uploads of one store that wait for their bytes.
pub const UPLOADS_OPEN_MAX: i64 = 50;

/// What must be left of an invocation to look at another upload.
pub const UPLOAD_TIME: Duration = Duration::from_secs(30);

/// How long rows of uploads that came to nothing are kept. Those of images stay.
pub const UPLOAD_ROWS_KEPT: Duration = Duration::from_secs(30 * 24 * 3_600);
