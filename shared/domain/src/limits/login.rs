//! Bounds of logging in: codes for buyers, links and one-time passwords for staff, and the sessions of both.

use std::time::Duration;

use crate::login::Share;

/// How long a login code is good. Long enough for a slow message, short for somebody who looks over a shoulder.
pub const LOGIN_CODE_LIVES: Duration = Duration::from_secs(300);

/// Codes that may be tried in one asking session. Five in a million.
pub const LOGIN_TRIES_MAX: i16 = 5;

/// How long the worker has to send a code before its message is owed again.
pub const LOGIN_CODE_GRACE: Duration = Duration::from_secs(20);

/// How long sending one message may take: whoever has not said by then what became of it is taken for dead, and the
/// message is sent again. Longer than the provider is given to answer.
pub const LOGIN_CODE_CLAIM: Duration = Duration::from_secs(15);

/// What the provider of messages is given to answer.
pub const SEND_TIMEOUT: Duration = Duration::from_secs(8);

/// Messages that one worker has under way at once.
pub const SENT_AT_ONCE: usize = 5;

/// How long asking sessions are kept after their end, for support. Phones stand in them.
pub const LOGIN_CODES_KEPT: Duration = Duration::from_secs(3_600);

/// Codes for one phone, asked for by devices that have logged in with it.
pub const CODES_PER_USERS_PHONE: Share = Share { messages: 5, one_per: Duration::from_secs(600) };

/// Codes for one phone, asked for by anybody else: 29 on the first day and 24 on others, with five tries each. Somebody
/// who guesses all the year gets in with 4 %, after sending 8,700 messages that their owner saw.
pub const CODES_PER_STRANGERS_PHONE: Share = Share { messages: 5, one_per: Duration::from_secs(3_600) };

/// Codes asked for from one address, or one /64 of IPv6. Thousands of phones share an address of a mobile carrier.
pub const CODES_PER_ADDRESS: Share = Share { messages: 200, one_per: Duration::from_secs(5) };

/// Codes of one store: what a large opening needs in its last hour, and a bill that a store survives.
pub const CODES_PER_STORE: Share = Share { messages: 20_000, one_per: Duration::from_secs(1) };

/// Codes to one country, of all stores together: messages to some countries are sold by those who ask for them.
pub const CODES_PER_PREFIX: Share = Share { messages: 30_000, one_per: Duration::from_secs(1) };

/// Codes altogether: the fuse between an attack and the bill.
pub const CODES_PER_PLATFORM: Share = Share { messages: 50_000, one_per: Duration::from_millis(500) };

/// The part of the pots of stores, countries and the platform that devices may take which have not logged in before.
pub const SHARE_OF_STRANGERS: f64 = 0.8;

/// How long an access token is good. It cannot be called back, so that it is short.
pub const ACCESS_TOKEN_LIVES: Duration = Duration::from_secs(600);

/// How long a refresh token is good while it is not used.
pub const SESSION_IDLE_MAX: Duration = Duration::from_secs(30 * 24 * 3_600);

/// How long a session is good, however often it is refreshed.
pub const SESSION_LIVES_MAX: Duration = Duration::from_secs(180 * 24 * 3_600);

/// How long a used refresh token gets the same successor again: for lost answers and second tabs.
pub const REFRESH_REPLAY: Duration = Duration::from_secs(30);

/// How long ended sessions are kept, for support.
pub const SESSIONS_KEPT: Duration = Duration::from_secs(30 * 24 * 3_600);

/// How long a device is known after its last login. Longer than any session.
pub const DEVICE_KNOWN_FOR: Duration = Duration::from_secs(400 * 24 * 3_600);

/// How long a link to sign in is good. Long enough for slow mail.
pub const SIGN_IN_LINK_LIVES: Duration = Duration::from_secs(900);

/// How long an invitation, or a link to set one-time passwords up again, is good: over a weekend.
pub const INVITATION_LIVES: Duration = Duration::from_secs(3 * 24 * 3_600);

/// One-time passwords that may be tried with one link, or in one session without a right one between. Five of three
/// good ones in a million.
pub const STAFF_TRIES_MAX: i16 = 5;

/// How long a one-time password proves who somebody is, for what wants a fresh proof.
pub const FRESH_FOR: Duration = Duration::from_secs(600);

/// How long the session of staff lives while it is not used: a working day.
pub const STAFF_SESSION_IDLE_MAX: Duration = Duration::from_secs(12 * 3_600);

/// How long it lives, however often it is refreshed.
pub const STAFF_SESSION_LIVES_MAX: Duration = Duration::from_secs(7 * 24 * 3_600);

/// When a request for a link to sign in is answered, and until when its mail must have left: the same for addresses
/// that are staff's and addresses that are not.
pub const STAFF_LINK_ANSWER_AFTER: Duration = Duration::from_secs(1);

/// What the provider of mail is given to answer where nobody must not know.
pub const MAIL_TIMEOUT: Duration = Duration::from_secs(5);

/// Wrong one-time passwords of one member of staff, with whatever links and in whatever sessions. Somebody who reads
/// the mail and guesses all the year has 8,770 tries with three good ones in a million: 2.6 %, and the audit log says
/// so every hour. By the tries of links alone it would be 55 %.
pub const WRONG_PASSWORDS_PER_MEMBER: Share = Share { messages: 10, one_per: Duration::from_secs(3_600) };

/// Links to sign in for one address at one store, with five tries each.
pub const STAFF_LINKS_PER_EMAIL: Share = Share { messages: 5, one_per: Duration::from_secs(600) };

/// Links to sign in asked for from one client's address.
pub const STAFF_LINKS_PER_ADDRESS: Share = Share { messages: 20, one_per: Duration::from_secs(60) };
