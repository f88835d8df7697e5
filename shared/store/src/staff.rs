//! Staff of stores: the links that let them in, their sessions, and who they are.
//!
//! Links and tokens stand in no row, only what they are recognised by. One-time passwords are computed elsewhere, with
//! secrets that are sealed here; this module decides which step is still good, so that each is used once.

mod links;
mod members;
mod passwords;
mod proofs;
mod sealed;
mod sessions;
mod sign_in;

pub use links::{AskLink, Enrolment, NewLink, Password, ask, find_enrolment, save_enrolment, take_from_pots, try_link};
pub use members::{Invite, Invited, Member, change_role, find_by_email, invite, list, recover, remove};
pub use passwords::{Tried, note_wrong};
pub use proofs::{Proof, Prover, prove};
pub use sealed::{SealedTotp, list_sealed, reseal};
pub use sessions::{Look, Refreshed, Session, end, end_other, list_sessions, look, refresh};
pub use sign_in::{SignIn, SignedIn, sign_in};
