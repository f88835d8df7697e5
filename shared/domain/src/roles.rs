//! Who may do what: the only table of roles and actions.
//!
//! An action is one thing that a token protects; its word is the operation's id in `openapi.json`. A route that bears a
//! token and is missing here fails a test, and one that asks for another action than its own does too.

use serde::{Deserialize, Serialize};

/// What somebody is to a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", try_from = "String")]
pub enum Role {
    /// Buys. Nobody's colleague.
    Buyer,
    /// Everything, colleagues included.
    Owner,
    /// Sells: products, numbers, switches.
    Operator,
    /// Looks after money.
    Finance,
    /// Helps buyers with their orders.
    Support,
    /// Looks.
    Viewer,
}

use Role::{Buyer, Finance, Operator, Owner, Support, Viewer};

impl Role {
    /// Every role.
    pub const ALL: [Self; 6] = [Buyer, Owner, Operator, Finance, Support, Viewer];

    /// Those of staff.
    pub const STAFF: [Self; 5] = [Owner, Operator, Finance, Support, Viewer];

    /// The word used in the database, in JSON and in the documentation.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Buyer => "buyer",
            Owner => "owner",
            Operator => "operator",
            Finance => "finance",
            Support => "support",
            Viewer => "viewer",
        }
    }

    /// The role of staff with this word. Nobody is made a buyer.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::STAFF.into_iter().find(|role| role.word() == word)
    }

    /// Whether the role may do something.
    #[must_use]
    pub fn may(self, action: Action) -> bool {
        action.roles().contains(&self)
    }
}

impl TryFrom<String> for Role {
    type Error = &'static str;

    fn try_from(word: String) -> Result<Self, Self::Error> {
        Self::from_word(&word).ok_or("must be owner, operator, finance, support or viewer")
    }
}

/// Whether an action wants somebody who has proved a moment ago who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Proof {
    /// A session is enough.
    Session,
    /// A one-time password within `FRESH_FOR`.
    Fresh,
}

use Proof::{Fresh, Session};

macro_rules! actions {
    ($($(#[$doc:meta])* $name:ident = $word:literal, $roles:expr, $proof:ident;)+) => {
        /// One thing that a person with a token may do.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Action { $($(#[$doc])* $name,)+ }

        impl Action {
            /// Every action.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// The operation's id, also the word in the audit log.
            #[must_use]
            pub const fn word(self) -> &'static str { match self { $(Self::$name => $word,)+ } }

            /// Who may.
            #[must_use]
            pub const fn roles(self) -> &'static [Role] { match self { $(Self::$name => &$roles,)+ } }

            const fn proof(self) -> Proof { match self { $(Self::$name => $proof,)+ } }
        }
    };
}

actions! {
    /// Place an order.
    PlaceOrder = "place_order", [Buyer], Session;
    /// Cancel one's own order.
    CancelOrder = "cancel_order", [Buyer], Session;
    /// Pay one's own order.
    PayOrder = "pay_order", [Buyer], Session;
    /// Read one's own order.
    ReadOrder = "read_order", [Buyer], Session;
    /// List one's own orders.
    ListOrders = "list_orders", [Buyer], Session;

    /// Prove again who one is.
    RenewStaffSession = "renew_staff_session", Role::STAFF, Session;
    /// List one's own sessions.
    ListStaffSessions = "list_staff_sessions", Role::STAFF, Session;
    /// End one of them.
    EndStaffSession = "end_staff_session", Role::STAFF, Session;
    /// List the store's staff.
    ListStaff = "list_staff", [Owner], Session;
    /// Invite somebody.
    InviteStaff = "invite_staff", [Owner], Fresh;
    /// Give somebody another role.
    ChangeStaff = "change_staff", [Owner], Fresh;
    /// Remove somebody.
    RemoveStaff = "remove_staff", [Owner], Fresh;
    /// Let somebody who has lost their one-time passwords set up new ones.
    RecoverStaff = "recover_staff", [Owner], Fresh;

    /// Read how the store works.
    InspectStore = "inspect_store", Role::STAFF, Session;
    /// Change it.
    EditStore = "edit_store", [Owner], Session;
    /// List the store's products.
    ListStoreProducts = "list_store_products", Role::STAFF, Session;
    /// Read one with everything that only staff see.
    InspectProduct = "inspect_product", Role::STAFF, Session;
    /// Make a product.
    CreateProduct = "create_product", [Owner, Operator], Session;
    /// Change one.
    EditProduct = "edit_product", [Owner, Operator], Session;
    /// Take new orders of a product, or none.
    SetProductIntake = "set_product_intake", [Owner, Operator], Session;
    /// End a sale.
    CloseProduct = "close_product", [Owner, Operator], Fresh;
    /// Take free numbers off sale.
    BlockNumbers = "block_numbers", [Owner, Operator], Session;
    /// Put them back.
    UnblockNumbers = "unblock_numbers", [Owner, Operator], Session;
    /// The kill switch of a product: nothing changes its numbers.
    SetReserving = "set_reserving", [Owner, Operator], Fresh;
    /// The kill switch of a store: no new orders of anything.
    SetStoreIntake = "set_store_intake", [Owner, Operator], Fresh;

    /// Find orders.
    SearchOrders = "search_orders", [Owner, Operator, Finance, Support], Session;
    /// Read an order with its history and its money.
    InspectOrder = "inspect_order", [Owner, Operator, Finance, Support], Session;
    /// Give a buyer's order up for them.
    ReleaseOrder = "release_order", [Owner, Operator, Support], Session;
    /// Give a buyer more time to pay.
    ExtendHold = "extend_hold", [Owner, Operator, Support], Session;
    /// Sell numbers over the counter: an order in a buyer's name.
    SellNumbers = "sell_numbers", [Owner, Operator, Support], Session;
    /// Book cash or a transfer that has paid for an order.
    BookPayment = "book_payment", [Owner, Operator, Finance], Session;
    /// Give money back.
    RefundOrder = "refund_order", [Owner, Finance], Fresh;

    /// Upload an image.
    BeginUpload = "begin_upload", [Owner, Operator], Session;
    /// Follow an upload.
    ReadUpload = "read_upload", [Owner, Operator], Session;

    /// Take a product's orders or numbers away as a file.
    ExportProduct = "export_product", [Owner, Finance], Fresh;
    /// Follow an export, and fetch its file.
    ReadExport = "read_export", [Owner, Finance], Session;
    /// List the store's exports.
    ListExports = "list_exports", [Owner, Finance], Session;

    /// Read who did what.
    ReadAuditLog = "read_audit_log", [Owner, Finance], Session;
}

impl Action {
    /// The action with this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|action| action.word() == word)
    }

    /// Whether it wants somebody who has proved a moment ago who they are.
    #[must_use]
    pub fn wants_fresh(self) -> bool {
        self.proof() == Fresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_has_a_word_of_its_own_and_somebody_who_may() {
        let mut seen = std::collections::HashSet::new();
        for action in Action::ALL.iter().copied() {
            assert!(seen.insert(action.word()), "{} twice", action.word());
            assert_eq!(Action::from_word(action.word()), Some(action));
            // Buyers and staff share nothing, and an owner may do whatever staff may.
            assert!(Buyer.may(action) != Owner.may(action), "{}", action.word());
            assert!(!Buyer.may(action) || action.roles() == [Buyer], "{}", action.word());
        }
    }

    #[test]
    fn a_viewer_changes_nothing_but_their_own_sessions() {
        let may: Vec<_> =
            Action::ALL.iter().filter(|action| Viewer.may(**action)).map(|action| action.word()).collect();
        let own = ["renew_staff_session", "list_staff_sessions", "end_staff_session"];
        assert_eq!(may, [&own[..], &["inspect_store", "list_store_products", "inspect_product"]].concat());
    }

    #[test]
    fn money_and_kill_switches_want_a_fresh_proof() {
        for action in [
            Action::RefundOrder,
            Action::SetReserving,
            Action::SetStoreIntake,
            Action::InviteStaff,
            Action::ExportProduct,
        ] {
            assert!(action.wants_fresh(), "{}", action.word());
        }
        assert!(!Action::RenewStaffSession.wants_fresh(), "or nobody could ever");
    }

    #[test]
    fn nobody_is_made_a_buyer() {
        for role in Role::ALL {
            assert_eq!(Role::from_word(role.word()), (role != Buyer).then_some(role));
        }
        assert!(
            serde_json::from_str::<Role>("\"buyer\"").is_err() && serde_json::from_str::<Role>("\"owner\"").is_ok()
        );
    }
}
