//! Logging in with a code on the phone: which phones there are, what a code looks like, what it may cost, and what the
//! message says.
//!
//! Knows no key: codes and tokens are derived in `edge`. Knows no clock: `store` counts in the database.

mod limits;
mod texts;

use std::fmt;

pub use limits::{Pot, Pots, Share};
pub use texts::{Language, code_text};

/// Digits of a code.
pub const CODE_DIGITS: usize = 6;

/// How many codes there are: all numbers of [`CODE_DIGITS`] digits.
pub const CODES: u64 = 1_000_000;

/// Digits of a phone's number in E.164, its country included. The shortest in use have eight.
const PHONE_DIGITS: std::ops::RangeInclusive<usize> = 8..=15;

/// Country calling codes of two digits. Those of one are 1 and 7, all others have three: no code begins another.
const TWO_DIGITS: [u8; 44] = [
    20, 27, 30, 31, 32, 33, 34, 36, 39, 40, 41, 43, 44, 45, 46, 47, 48, 49, 51, 52, 53, 54, 55, 56, 57, 58, 60, 61, 62,
    63, 64, 65, 66, 81, 82, 84, 86, 90, 91, 92, 93, 94, 95, 98,
];

/// A phone's number in E.164: a plus sign, the country, the rest; nothing between. Not shown by `Debug`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Phone(String);

impl Phone {
    /// Reads a number. Spaces, brackets and national forms are refused: guessing a country would send codes to
    /// strangers.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('+')?;
        let fits = PHONE_DIGITS.contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
        (fits && !digits.starts_with('0')).then(|| Self(text.to_owned()))
    }

    /// `+` and the digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The country calling code, without the plus sign.
    #[must_use]
    pub fn prefix(&self) -> &str {
        let digits = &self.0[1..];
        let two = digits[..2].parse().unwrap_or(0);
        let length = match digits.as_bytes()[0] {
            b'1' | b'7' => 1,
            _ if TWO_DIGITS.contains(&two) => 2,
            _ => 3,
        };
        &digits[..length]
    }

    /// The language that most people with this country's phones read, as far as we have it.
    #[must_use]
    pub fn language(&self) -> Language {
        match self.prefix() {
            "55" | "351" | "244" | "258" | "238" => Language::PtBr,
            "34" | "51" | "52" | "53" | "54" | "56" | "57" | "58" | "502" | "503" | "504" | "505" | "506" | "507"
            | "591" | "593" | "595" | "598" => Language::Es,
            _ => Language::En,
        }
    }
}

impl fmt::Debug for Phone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Phone")
    }
}

/// The code that a keyed hash stands for. 64 bits over a million codes: none is likelier than another by more than
/// one in ten million millions.
#[must_use]
pub fn code_of(hash: [u8; 8]) -> String {
    format!("{:0width$}", u64::from_be_bytes(hash) % CODES, width = CODE_DIGITS)
}

/// Whether a text could be a code at all.
#[must_use]
pub fn is_code(text: &str) -> bool {
    text.len() == CODE_DIGITS && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a text is a country calling code, without the plus sign.
#[must_use]
pub fn is_prefix(text: &str) -> bool {
    (1..=3).contains(&text.len()) && Phone::parse(&format!("+{text:0<15}")).is_some_and(|phone| phone.prefix() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phone_is_a_plus_sign_and_eight_to_fifteen_digits() {
        for good in ["+34600000000", "+12025550123", "+290123456", "+29012345", "+551198765432109"] {
            assert_eq!(Phone::parse(good).unwrap().as_str(), good);
        }
        for bad in [
            "",
            "+",
            "34600000000",
            "0034600000000",
            "+0034600000000",
            "+34 600 000 000",
            "+34-600000000",
            "+3460000",
            "+5511987654321098",
            "+34600000000 ",
            " +34600000000",
            "++34600000000",
            "+3460000000a",
            "+٣٤٦٠٠٠٠٠٠٠٠",
            "+34600000000\n",
            "tel:+34600000000",
            "+34600000000;ext=1",
        ] {
            assert_eq!(Phone::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn countries_have_one_to_three_digits_and_none_begins_another() {
        for (phone, prefix) in [
            ("+12025550123", "1"),
            ("+79161234567", "7"),
            ("+34600000000", "34"),
            ("+351912345678", "351"),
            ("+5511987654321", "55"),
            ("+998901234567", "998"),
            ("+21612345678", "216"),
        ] {
            assert_eq!(Phone::parse(phone).unwrap().prefix(), prefix);
            assert!(is_prefix(prefix), "{prefix}");
        }
        for no in ["", "0", "3", "35", "3511", "34 ", "+34", "a", "2"] {
            assert!(!is_prefix(no), "{no}");
        }
    }

    #[test]
    fn a_phone_is_never_shown_by_accident() {
        assert_eq!(format!("{:?}", Phone::parse("+34600000000")), "Some(Phone)");
    }

    #[test]
    fn codes_have_six_digits_zeros_included() {
        assert_eq!(code_of([0; 8]), "000000");
        assert_eq!(code_of(42_u64.to_be_bytes()), "000042");
        assert_eq!(code_of(12_345_678_u64.to_be_bytes()), "345678");
        assert!(is_code("000042") && !is_code("42") && !is_code("0000042") && !is_code("00004a") && !is_code("٠٠٠٠٤٢"));
    }
}
