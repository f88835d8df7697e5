//! Products: a range of numbers, a price, a window in time, limits, and two switches.

use time::OffsetDateTime;
use uuid::Uuid;

use crate::limits::{
    HOLD_SECONDS_MAX, HOLD_SECONDS_MIN, HOLD_SECONDS_OFFERED_MIN, MOMENT_MAX, MOMENT_MIN, NUMBER_MAX,
    NUMBERS_PER_BUYER_MAX, NUMBERS_PER_CHUNK, NUMBERS_PER_ORDER_MAX, NUMBERS_PER_PRODUCT_MAX, PADDING_MAX,
    PRICE_MINOR_MAX,
};
use crate::orders::InvalidField;

/// Numbers that a sentence names.
const LABELS_MAX: usize = 10;

/// The numbers of a product: `count` of them, from `first` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// The smallest number.
    pub first: i32,
    /// How many numbers there are.
    pub count: i32,
}

impl Range {
    /// Whether the product has this number.
    #[must_use]
    pub const fn contains(self, number: i32) -> bool {
        number >= self.first && number - self.first < self.count
    }

    /// The largest number.
    #[must_use]
    pub const fn last(self) -> i32 {
        self.first + self.count - 1
    }

    /// How many bitmap chunks cover the range.
    #[must_use]
    pub const fn chunk_count(self) -> i32 {
        (self.count + NUMBERS_PER_CHUNK - 1) / NUMBERS_PER_CHUNK
    }

    /// How many numbers of the range lie in a chunk; the last one may be partly padding.
    #[must_use]
    pub const fn chunk_size(self, chunk: i32) -> i32 {
        let rest = self.count - chunk * NUMBERS_PER_CHUNK;
        if rest < NUMBERS_PER_CHUNK { rest } else { NUMBERS_PER_CHUNK }
    }

    /// The chunk that holds a number of the range.
    #[must_use]
    pub const fn chunk_of(self, number: i32) -> i32 {
        (number - self.first) / NUMBERS_PER_CHUNK
    }

    /// The smallest number of a chunk.
    #[must_use]
    pub const fn chunk_first(self, chunk: i32) -> i32 {
        self.first + chunk * NUMBERS_PER_CHUNK
    }

    /// A number as it is printed: padded with zeros to `padding` digits.
    #[must_use]
    pub fn label(number: i32, padding: i16) -> String {
        format!("{number:0width$}", width = usize::try_from(padding).unwrap_or(0))
    }

    /// Numbers as they are shown in a sentence: the first few, and how many more there are.
    #[must_use]
    pub fn labels(numbers: &[i32], padding: i16) -> String {
        let (shown, more) = numbers.split_at(numbers.len().min(LABELS_MAX));
        let mut text = shown.iter().map(|number| Self::label(*number, padding)).collect::<Vec<_>>().join(", ");
        if !more.is_empty() {
            text.push_str(&format!(" and {} more", more.len()));
        }
        text
    }
}

/// An amount of money in minor units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Money {
    /// Minor units, cents for most currencies.
    pub minor: i64,
    /// ISO 4217 code.
    pub currency: String,
}

/// Whether new orders are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intake {
    /// Orders are accepted.
    Open,
    /// New orders are refused; accepted ones finish.
    Paused,
}

impl Intake {
    /// The word used in the database and in JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Paused => "paused",
        }
    }

    /// The value with this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Open, Self::Paused].into_iter().find(|v| v.word() == word)
    }
}

/// Whether numbers of a product may change hands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reserving {
    /// Workers serve the product.
    On,
    /// A data fault: nothing changes the product's numbers until an operator resumes.
    Halted,
}

impl Reserving {
    /// The word used in the database and in JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Halted => "halted",
        }
    }

    /// The value with this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::On, Self::Halted].into_iter().find(|v| v.word() == word)
    }
}

/// A product as its seller describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewProduct {
    /// Public id, a UUIDv7.
    pub id: Uuid,
    /// The tenant that sells it.
    pub tenant_id: Uuid,
    /// Label under which metrics are grouped.
    pub campaign: String,
    /// Name for people.
    pub name: String,
    /// Its numbers.
    pub range: Range,
    /// Digits of a printed number.
    pub padding: i16,
    /// Price of one number.
    pub price: Money,
    /// First instant of the sale.
    pub opens_at: OffsetDateTime,
    /// First instant after the sale.
    pub closes_at: OffsetDateTime,
    /// IANA name of the zone in which the seller thinks.
    pub zone: String,
    /// How long reserved numbers wait for their payment, in seconds.
    pub hold_seconds: i32,
    /// Most numbers in one order.
    pub numbers_per_order_max: i32,
    /// Most numbers one buyer may hold.
    pub numbers_per_buyer_max: i32,
}

impl NewProduct {
    /// Checks every rule.
    ///
    /// # Errors
    /// One [`InvalidField`] per broken rule.
    pub fn validate(&self) -> Result<(), Vec<InvalidField>> {
        let mut wrong = Vec::new();
        let mut check = |ok: bool, pointer, detail: &str| {
            if !ok {
                wrong.push(InvalidField { pointer, detail: detail.to_owned() });
            }
        };
        let Range { first, count } = self.range;
        check(is_name(&self.name), "/name", "must have 1 to 120 characters on one line");
        check(is_label(&self.campaign), "/campaign", "must be 1 to 40 characters of a-z, 0-9 and -");
        check((1..=NUMBERS_PER_PRODUCT_MAX).contains(&count), "/count", "must be 1 to 10,000,000");
        check((0..=NUMBER_MAX).contains(&first), "/first", "must be 0 to 999,999,999");
        let last = i64::from(first) + i64::from(count) - 1;
        check(last <= i64::from(NUMBER_MAX), "/count", "the last number must not exceed 999,999,999");
        check((0..=PADDING_MAX).contains(&self.padding), "/padding", "must be 0 to 9 digits");
        check(
            (0..=PRICE_MINOR_MAX).contains(&self.price.minor),
            "/price/amount",
            "must be 0 to 1,000,000,000,000 minor units",
        );
        check(
            minor_digits(&self.price.currency).is_some(),
            "/price/currency",
            "must be the ISO 4217 code of a currency that people pay with",
        );
        let moments = MOMENT_MIN..MOMENT_MAX;
        check(moments.contains(&self.opens_at), "/opens_at", "must be a moment from 2000 to 2199, in UTC");
        check(moments.contains(&self.closes_at), "/closes_at", "must be a moment from 2000 to 2199, in UTC");
        check(self.opens_at < self.closes_at, "/closes_at", "must be after the opening");
        check(crate::schedule::is_zone(&self.zone), "/zone", "must be an IANA time zone");
        check(
            (HOLD_SECONDS_MIN..=HOLD_SECONDS_MAX).contains(&self.hold_seconds),
            "/hold_seconds",
            "must be 5 seconds to 7 days",
        );
        check(
            (1..=NUMBERS_PER_ORDER_MAX).contains(&self.numbers_per_order_max),
            "/numbers_per_order_max",
            "must be 1 to 100",
        );
        check(
            (1..=NUMBERS_PER_BUYER_MAX).contains(&self.numbers_per_buyer_max),
            "/numbers_per_buyer_max",
            "must be 1 to 100,000",
        );
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }
}

/// Whether a seller may set this hold, in seconds: a shorter one leaves nobody the time to pay.
#[must_use]
pub fn is_hold(seconds: i32) -> bool {
    (HOLD_SECONDS_OFFERED_MIN..=HOLD_SECONDS_MAX).contains(&seconds)
}

/// Whether a text can be the name of a product: 1 to 120 characters on one line.
#[must_use]
pub fn is_name(text: &str) -> bool {
    crate::text::is_name(text, 120)
}

/// Whether a text can be a store's slug or a campaign's label.
#[must_use]
pub fn is_label(text: &str) -> bool {
    (1..=40).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// Decimal places of a currency's minor unit (ISO 4217); none for a code that no price has: metals, funds, tests.
#[must_use]
pub fn minor_digits(currency: &str) -> Option<u32> {
    iso_currency::Currency::from_code(currency)?.exponent().map(u32::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn chunks_cover_the_range_exactly() {
        for count in [1, 8_191, 8_192, 8_193, 16_384, 1_000_000, NUMBERS_PER_PRODUCT_MAX] {
            let range = Range { first: 7, count };
            let sizes: i32 = (0..range.chunk_count()).map(|c| range.chunk_size(c)).sum();
            assert_eq!(sizes, count);
            assert_eq!(range.chunk_of(range.first), 0);
            assert_eq!(range.chunk_of(range.last()), range.chunk_count() - 1);
        }
    }

    #[test]
    fn a_hold_that_a_seller_sets_can_be_paid() {
        for (seconds, good) in [(-1, false), (5, false), (10, false), (59, false), (60, true), (604_800, true)] {
            assert_eq!(is_hold(seconds), good, "{seconds}");
        }
        assert!(!is_hold(604_801));
        let margin = i32::try_from(crate::limits::PAYMENT_MARGIN.as_secs()).unwrap();
        assert!((HOLD_SECONDS_MIN..=margin).all(|seconds| !is_hold(seconds)), "nobody can pay within the margin");
    }

    #[test]
    fn labels_are_padded_and_never_cut() {
        assert_eq!(Range::label(42, 6), "000042");
        assert_eq!(Range::label(1_234_567, 6), "1234567");
        assert_eq!(Range::label(0, 0), "0");
    }

    #[test]
    fn currencies_are_those_that_people_pay_with() {
        for (code, digits) in
            [("EUR", Some(2)), ("BRL", Some(2)), ("JPY", Some(0)), ("CLP", Some(0)), ("KWD", Some(3)), ("UGX", Some(0))]
        {
            assert_eq!(minor_digits(code), digits, "{code}");
        }
        for code in ["ZZZ", "XTS", "XAU", "eur", "EU", "EURO", ""] {
            assert_eq!(minor_digits(code), None, "{code}");
        }
    }

    #[test]
    fn moments_are_those_that_can_be_written_everywhere() {
        let wrong = |opens_at, closes_at| {
            let product = NewProduct {
                id: Uuid::nil(),
                tenant_id: Uuid::nil(),
                campaign: "spring".to_owned(),
                name: "A raffle".to_owned(),
                range: Range { first: 1, count: 10 },
                padding: 2,
                price: Money { minor: 100, currency: "EUR".to_owned() },
                opens_at,
                closes_at,
                zone: "Europe/Madrid".to_owned(),
                hold_seconds: 900,
                numbers_per_order_max: 10,
                numbers_per_buyer_max: 10,
            };
            let fields = product.validate().err().unwrap_or_default();
            fields.into_iter().map(|field| field.pointer).collect::<Vec<_>>()
        };
        let read = |text| {
            OffsetDateTime::parse(text, &time::format_description::well_known::Rfc3339).expect("a moment of RFC 3339")
        };
        let (early, late) = (read("2026-01-01T00:00:00Z"), read("2199-12-31T23:59:59Z"));
        assert_eq!(wrong(early, late), Vec::<&str>::new());
        // Each of these is another year in UTC than in its own zone, or none that can be written.
        for text in ["0000-01-01T00:00:00+00:01", "1999-12-31T23:59:59Z", "2000-01-01T00:30:00+01:00"] {
            assert_eq!(wrong(read(text), late), ["/opens_at"], "{text}");
        }
        for text in ["2200-01-01T00:00:00Z", "2199-12-31T23:30:00-01:00", "9999-12-31T23:59:59-00:01"] {
            assert_eq!(wrong(early, read(text)), ["/closes_at"], "{text}");
        }
    }

    #[test]
    fn a_sentence_names_ten_numbers_at_most() {
        let of = |count| Range::labels(&(1..=count).collect::<Vec<i32>>(), 2);
        assert_eq!((of(0), of(2)), (String::new(), "01, 02".to_owned()));
        assert_eq!(of(10), "01, 02, 03, 04, 05, 06, 07, 08, 09, 10");
        assert_eq!(of(12), format!("{} and 2 more", of(10)));
    }

    proptest! {
        #[test]
        fn contains_agrees_with_the_bounds(first in 0..=NUMBER_MAX, count in 1..=NUMBERS_PER_PRODUCT_MAX, number in any::<i32>()) {
            prop_assume!(i64::from(first) + i64::from(count) - 1 <= i64::from(NUMBER_MAX));
            let range = Range { first, count };
            prop_assert_eq!(range.contains(number), number >= first && number <= range.last());
        }
    }
}
