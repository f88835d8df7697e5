//! Money: attempts to pay, refunds, disputes, and what gateways told us.
//!
//! Whoever asks a gateway does it outside any transaction and brings the answer here. Every change locks the order
//! first, writes down what was heard, and decides from the rows alone what that makes of the order ([`settle`]); so
//! answers may come late, twice, out of order, or from several workers at once.

mod accounts;
mod attempts;
mod book;
mod disputes;
mod inbox;
mod looks;
mod measure;
mod money;
mod moves;
mod overview;
mod policy;
mod record;
mod refunds;
mod settle;
mod start;
mod view;
mod withdraw;

pub use accounts::{
    Account, SealedAccount, find_account, list_accounts, list_sealed, reseal_account, save_account,
    save_account_as_operator,
};
pub use attempts::{Attempt, find_attempt, find_attempt_of_payment};
pub use book::book;
pub use inbox::{Event, Received, claim_unprocessed, find_event, mark_processed, receive};
pub use looks::owe_looks;
pub use measure::{Measures, measure};
pub use overview::{DisputeOf, Overview, RefundEntry, find_overview, find_refund};
pub use policy::{Policy, find_policy, save_policy, save_policy_as_operator};
pub use record::{Answer, RefundAnswer, record, record_refund};
pub use refunds::{
    MayAsk, Refund, RefundRequest, list_failed, list_refundable, note_refund_asked, renew_refund_key, request_refund,
    retry_refund,
};
pub use start::{NewAttempt, Started, start, start_by};
pub use view::{Payable, PaymentOf, RefundOf, find_payable, list_payments};
pub use withdraw::withdraw;
