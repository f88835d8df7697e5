//! Every bound of the system, each with its reason. Nothing that can grow is without a line here.

mod files;
mod login;
mod people;

use std::time::Duration;

use time::OffsetDateTime;
use time::macros::datetime;

use crate::login::Share;
pub use files::*;
pub use login::*;
pub use people::*;

/// Largest product, in numbers. Ten million numbers are 1,221 chunks, about 1.3 MB of bitmap.
pub const NUMBERS_PER_PRODUCT_MAX: i32 = 10_000_000;

/// Largest number that may be printed on an item: nine digits, so that first + count stays inside an `int4`.
pub const NUMBER_MAX: i32 = 999_999_999;

/// Numbers in one bitmap chunk. 8,192 bits are 1 KiB: small enough for little WAL per update, large enough that a
/// product of a million numbers has only 123 rows to lock, read and cache.
pub const NUMBERS_PER_CHUNK: i32 = 8_192;

/// Bytes in one bitmap chunk.
pub const BYTES_PER_CHUNK: usize = 1_024;

/// Widest padding of a printed number, in digits; `NUMBER_MAX` has nine.
pub const PADDING_MAX: i16 = 9;

/// Highest price of one number, in minor units: a hundred of them stay far inside an `int8`.
pub const PRICE_MINOR_MAX: i64 = 1_000_000_000_000;

/// Most numbers one order may ask for, whatever its product allows. Bounds the body, the message and the lock set.
pub const NUMBERS_PER_ORDER_MAX: i32 = 100;

/// Most numbers one buyer may hold of one product, whatever its product allows.
pub const NUMBERS_PER_BUYER_MAX: i32 = 100_000;

/// Most orders of one buyer on one product that have not ended. More would let one client fill the queue. Counted
/// without a lock: requests in flight at the same instant can pass it, by as many as intake runs at once.
pub const OPEN_ORDERS_MAX: i64 = 10;

/// Oldest queued orders of a product among which jobs look for overdue and silent ones: the younger are served, or
/// become the oldest.
pub const QUEUE_HEAD_MAX: i64 = 20_000;

/// How long one pass of the continuous audit goes on; the next one starts where it ended.
pub const AUDIT_PASS: Duration = Duration::from_secs(15);

/// Orders that share one row of the list of holds: a row of 1.6 KB, which a page holds without help.
pub const ORDERS_PER_HOLD_MAX: i64 = 100;

/// A buyer's latest orders among which open ones are counted, so that a long history does not slow the next order.
pub const ORDERS_COUNTED_MAX: i64 = 1_000;

/// Largest request body, in bytes. A hundred nine-digit numbers fit several times over.
pub const BODY_BYTES_MAX: usize = 16 * 1_024;

/// Longest `Idempotency-Key`, in bytes. A UUID is 36.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 128;

/// Longest bearer token, in bytes. Ours are about 400; anything longer is refused before any cryptography.
pub const TOKEN_BYTES_MAX: usize = 4_096;

/// Shortest hold that a product can have at all: whoever waits for the end of one has not long to wait.
pub const HOLD_SECONDS_MIN: i32 = 5;

/// Shortest hold that a seller may set: gateways want a minute, and no payment starts in the last `PAYMENT_MARGIN`.
pub const HOLD_SECONDS_OFFERED_MIN: i32 = 60;

/// Longest hold: a week, for bank transfers.
pub const HOLD_SECONDS_MAX: i32 = 7 * 24 * 3_600;

/// Orders that one reservation transaction decides. Past a few hundred the cost per order no longer falls, and the
/// chunk locks would be held longer than `LOCK_TIMEOUT` allows the next worker to wait.
pub const ORDERS_PER_TRANSACTION_MAX: usize = 500;

/// Chunks that quick picks of one group may spread over before the plan widens to all of them. Bounds lock
/// conflicts between workers and the WAL of a batch.
pub const CHUNKS_PER_GROUP_MAX: usize = 16;

/// Free numbers offered to an order that lost some.
pub const SUGGESTIONS_MAX: usize = 5;

/// Orders that one expiry or release pass frees in one transaction.
pub const ORDERS_PER_SWEEP_MAX: i64 = 500;

/// Rows that the outbox relay claims at once. A claim lives as long as its backoff, so a dead relay delays only these.
pub const OUTBOX_CLAIM_ROWS_MAX: i64 = 1_000;

/// How long the relay leaves a fresh outbox row alone, because its own request is about to publish it.
pub const OUTBOX_GRACE: Duration = Duration::from_secs(20);

/// Longest wait between two tries to publish one outbox row.
pub const OUTBOX_BACKOFF_MAX: Duration = Duration::from_secs(300);

/// Published ids that one instance remembers to acknowledge with its next insert. More are left to the relay.
pub const PUBLISHED_IDS_MAX: usize = 256;

/// Age of the oldest queued order, or unpublished message, at which intake answers 503 queue-full.
pub const INTAKE_CLOSES_AT_AGE: Duration = Duration::from_secs(600);

/// How long an instance trusts its last look at the queue's health.
pub const HEALTH_CACHE: Duration = Duration::from_secs(1);

/// How long an order may wait in the queue before it is refused. Longer than `INTAKE_CLOSES_AT_AGE`, so that intake
/// closes before accepted orders start to be refused for the wait.
pub const QUEUE_DEADLINE: Duration = Duration::from_secs(900);

/// How long a queued order may be silent (no outbox row left) before the reconciler sends its message again.
/// Above the longest backoff of a busy message, so that healthy retries are not doubled.
pub const QUEUED_SILENT_AFTER: Duration = Duration::from_secs(120);

/// How long an order of a halted product waits before it is tried again.
pub const PARKED_FOR: Duration = Duration::from_secs(30);

/// Orders counted for a place in the queue; above it the answer is "more than".
pub const PLACE_COUNT_MAX: i64 = 1_000;

/// Age from which an order's place is known: by then no older order can still be inside its insert, so the place
/// never rises afterwards. One lock timeout plus a margin.
pub const PLACE_KNOWN_AFTER: Duration = Duration::from_secs(3);

/// Shortest and longest wait that a client is asked to keep between two polls.
pub const POLL_AFTER_MIN: Duration = Duration::from_secs(2);
/// See [`POLL_AFTER_MIN`].
pub const POLL_AFTER_MAX: Duration = Duration::from_secs(30);

/// Orders whose last poll one instance remembers, to answer early polls from memory.
pub const POLLS_REMEMBERED_MAX: usize = 10_000;

/// Largest page of a list.
pub const PAGE_MAX: i64 = 100;

/// Availability buckets in a product's summary, at most.
pub const BUCKETS_MAX: usize = 1_000;

/// Shortest and longest visibility that a retryable message gets.
pub const RETRY_BACKOFF_MIN: Duration = Duration::from_secs(1);
/// See [`RETRY_BACKOFF_MIN`].
pub const RETRY_BACKOFF_MAX: Duration = Duration::from_secs(30);

/// Chunks that one pass of the continuous audit compares.
pub const CHUNKS_PER_AUDIT_PASS: i64 = 256;

/// How long answers under an idempotency key are kept, orders excepted (theirs live as long as the order).
pub const IDEMPOTENCY_KEYS_KEPT: Duration = Duration::from_secs(24 * 3_600);

/// How long resolved audit findings are kept.
pub const FINDINGS_KEPT: Duration = Duration::from_secs(90 * 24 * 3_600);

/// Rows that one pruning statement deletes.
pub const ROWS_PER_PRUNE_MAX: i64 = 5_000;

/// What must be left of a hold for a payment to be started: longer than a gateway is given to answer.
pub const PAYMENT_MARGIN: Duration = Duration::from_secs(10);

/// Attempts of a buyer to pay one order. More would only test cards.
pub const ATTEMPTS_PER_ORDER_MAX: i16 = 20;

/// Attempts to pay one order with those that staff book after the buyer has used up his.
pub const ATTEMPTS_PER_ORDER_WITH_STAFF_MAX: i16 = 40;

/// How long a payment at Stripe may wait for its buyer: a Checkout Session lives for 24 h at most, and ours get half an
/// hour more than they are told to wait.
pub const STRIPE_WAITS_MAX: Duration = Duration::from_secs(23 * 3_600);

/// How long the request that made an attempt may take before others ask the gateway about it.
pub const CREATE_UNANSWERED_FOR: Duration = Duration::from_secs(30);

/// Age from which an attempt that nobody was told how to pay is given up, if its gateway can neither find it nor say
/// what it keeps under its key.
pub const UNANSWERED_FOR_MAX: Duration = Duration::from_secs(15 * 60);

/// How long a gateway surely remembers an idempotency key. Stripe prunes them after 24 h.
pub const KEY_KEPT_FOR: Duration = Duration::from_secs(20 * 3_600);

/// By how much a gateway's clock may differ from the database's.
pub const CLOCKS_DIFFER: Duration = Duration::from_secs(300);

/// First wait until an open attempt, or a refund under way, is looked at although nobody told us anything.
pub const LOOK_AFTER: Duration = Duration::from_secs(30);

/// Longest wait between two such looks.
pub const LOOK_BACKOFF_MAX: Duration = Duration::from_secs(600);

/// First wait until a captured payment is looked at for refunds and disputes that nobody told us about.
pub const LOOK_AFTER_CAPTURE: Duration = Duration::from_secs(24 * 3_600);

/// First wait until an attempt that ended unpaid is looked at for money that came all the same.
pub const LOOK_AFTER_CLOSED: Duration = Duration::from_secs(900);

/// Looks at an attempt that ended unpaid: with growing distance they cover about ten days.
pub const CLOSED_LOOKS_MAX: i16 = 10;

/// Requests for a refund without an answer after which, if the gateway does not list it either, it is asked for under
/// another key: between them lie minutes, so that none under the old one can still be under way.
pub const REFUND_KEY_ASKED_MAX: i16 = 4;

/// Age before which a refund keeps its key, however often it was asked for.
pub const REFUND_KEY_AGE: Duration = Duration::from_secs(900);

/// Attempts, refunds or events that one pass of the reconciler owes a look.
pub const LOOKS_PER_PASS_MAX: i64 = 500;

/// Such passes of one run, while there is more to do.
pub const LOOK_PASSES_MAX: usize = 10;

/// Orders whose money one pass of the auditor compares.
pub const ORDERS_PER_AUDIT_PASS: i64 = 2_000;

/// First moment that a product may name, and the first that it may not: well within what databases, gateways and RFC 3339
/// can write, in every zone.
pub const MOMENT_MIN: OffsetDateTime = datetime!(2000-01-01 0:00 UTC);
/// See [`MOMENT_MIN`].
pub const MOMENT_MAX: OffsetDateTime = datetime!(2200-01-01 0:00 UTC);

/// Products of a store.
pub const PRODUCTS_PER_STORE_MAX: i64 = 1_000;
/// Numbers of all products of a store together: about 700 MB of rows before anything is sold.
pub const NUMBERS_PER_STORE_MAX: i64 = 100_000_000;

/// How long the money of an order must be wrong before it is recorded: longer than any message of it is on its way.
pub const WRONG_MONEY_SETTLES_IN: Duration = Duration::from_secs(900);

/// How long an event may stay unprocessed before its message is owed again.
pub const INBOX_GRACE: Duration = Duration::from_secs(30);

/// How long processed events are kept, to know repetitions. Gateways repeat for three days.
pub const INBOX_KEPT: Duration = Duration::from_secs(30 * 24 * 3_600);

/// Orders that one settling worker has under way at once.
pub const SETTLED_AT_ONCE: usize = 5;

/// What a request gives a gateway to answer. Less than `REQUEST_BUDGET`, so that the buyer is told what is known.
pub const GATEWAY_BUDGET: Duration = Duration::from_secs(6);

/// Slow questions without an answer, one after the other, after which an account is left alone.
pub const SILENCES_MAX: u32 = 3;

/// For how long.
pub const LEFT_ALONE_FOR: Duration = Duration::from_secs(10);

/// How long opened credentials are kept in memory, and of how many stores.
pub const ACCOUNTS_REMEMBERED_FOR: Duration = Duration::from_secs(60);
/// See [`ACCOUNTS_REMEMBERED_FOR`].
pub const ACCOUNTS_REMEMBERED_MAX: usize = 1_000;

/// Age from which credentials that do not work are read again: a rotation must not cost a sale its memory's minute.
pub const ACCOUNTS_READ_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Longest address that a gateway sends a buyer back to, in bytes.
pub const RETURN_URL_BYTES_MAX: usize = 500;

/// Largest webhook, in bytes.
pub const WEBHOOK_BYTES_MAX: usize = 64 * 1_024;

/// How long a notice is of use, counted from what it is about. Nobody wants to read of yesterday's hold.
pub const NOTICE_LIVES: Duration = Duration::from_secs(24 * 3_600);

/// How long a notice's message may wait in its queue before it is owed again; later ones wait as long as the notice is
/// old, so that a long queue is not multiplied.
pub const NOTICE_GRACE: Duration = Duration::from_secs(300);

/// How long sending one notice may take, to the phone and by mail. Longer than both providers are given to answer, and
/// shorter than the first backoff, so that who comes next finds the claim over.
pub const NOTICE_CLAIM: Duration = Duration::from_secs(30);

/// First wait after a provider did not take a notice; it doubles.
pub const NOTICE_BACKOFF_MIN: Duration = Duration::from_secs(60);

/// Longest such wait.
pub const NOTICE_BACKOFF_MAX: Duration = Duration::from_secs(3_600);

/// Tries to send one notice: with the waits between them, an outage of half a day.
pub const NOTICE_ATTEMPTS_MAX: i16 = 16;

/// Notices that one pass of the reconciler owes to the queue.
pub const NOTICES_PER_PASS_MAX: i64 = 1_000;

/// Such passes of one run: more than the workers send in a minute, so that the queue always has some.
pub const NOTICE_PASSES_MAX: usize = 10;

/// Notices that one look at all owed ones counts; more than these are as bad.
pub const NOTICES_COUNTED_MAX: i64 = 10_000;

/// How long notices are kept, so that none is sent twice: longer than orders move.
pub const NOTICES_KEPT: Duration = Duration::from_secs(90 * 24 * 3_600);

/// Notices to one buyer: what somebody may cost who reserves and lets go all day.
pub const NOTICES_PER_BUYER: Share = Share { messages: 40, one_per: Duration::from_secs(1_800) };

/// Notices altogether: several large openings, and the fuse between an attack and the bill.
pub const NOTICES_PER_PLATFORM: Share = Share { messages: 300_000, one_per: Duration::from_millis(200) };

/// Most that one act adds to a hold.
pub const HOLD_EXTENSION_SECONDS_MAX: i32 = 24 * 3_600;

/// Numbers that staff block or unblock with one request: they change in one transaction, whose locks buyers' orders
/// wait for, and fit the body.
pub const NUMBERS_PER_ACT_MAX: usize = 1_000;

/// Longest reason that staff give, in characters.
pub const REASON_CHARS_MAX: usize = 200;

// Timeouts, from the inside out. Each is shorter than what encloses it, or the outer one would cut an inner one
// short and leave its outcome unknown. `edge::config` checks the chain at start-up.

/// Longest wait for one lock. Set on the database role.
pub const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest statement. Set on the database role.
pub const STATEMENT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest time a transaction may sit idle before the server ends it. Set on the database role.
pub const IDLE_IN_TRANSACTION_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest wait for a connection.
pub const BORROW_TIMEOUT: Duration = Duration::from_secs(6);
/// Budget of one HTTP request inside its function.
pub const REQUEST_BUDGET: Duration = Duration::from_secs(9);
/// What API Gateway allows an integration.
pub const GATEWAY_TIMEOUT: Duration = Duration::from_secs(30);
/// What a worker or job leaves unused of its function's timeout, to answer for what it did.
pub const DEADLINE_MARGIN: Duration = Duration::from_secs(8);
