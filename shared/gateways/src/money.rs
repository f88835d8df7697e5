//! Amounts as decimal text, without floating point on the way.

/// Longest decimal text that is read, in bytes. An `i64` has 19 digits.
const TEXT_BYTES_MAX: usize = 40;

/// Digits after the decimal point that Mercado Pago shows for a currency, upper case. Chile's peso has none.
pub(crate) fn digits(currency: &str) -> u32 {
    if currency == "CLP" { 0 } else { 2 }
}

/// Minor units as a decimal number: 1050 with two digits is `10.50`.
pub(crate) fn decimal(minor: i64, digits: u32) -> String {
    let sign = if minor < 0 { "-" } else { "" };
    let unit = 10_u64.pow(digits);
    let (whole, rest) = (minor.unsigned_abs() / unit, minor.unsigned_abs() % unit);
    match digits {
        0 => format!("{sign}{whole}"),
        _ => format!("{sign}{whole}.{rest:0width$}", width = digits as usize),
    }
}

/// Minor units from a JSON number's text. None for negative ones, for more precision than the currency has, and for
/// what does not fit. Exponents are understood, because some servers write large numbers with one.
pub(crate) fn minor(text: &str, digits: u32) -> Option<i64> {
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().ok().filter(|exponent| (-20..=20).contains(exponent))?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = [whole, fraction].concat();
    if whole.is_empty() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let shift = exponent + i32::try_from(digits).ok()? - i32::try_from(fraction.len()).ok()?;
    let value: i128 = all.parse().ok()?;
    let power = 10_i128.checked_pow(shift.unsigned_abs())?;
    let value = match shift {
        0.. => value.checked_mul(power)?,
        _ if value % power == 0 => value / power,
        _ => return None,
    };
    i64::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decimal_texts() {
        for (minor, digits, text) in [
            (0, 2, "0.00"),
            (5, 2, "0.05"),
            (1_050, 2, "10.50"),
            (100_000_000_000_000, 2, "1000000000000.00"),
            (1_050, 0, "1050"),
            (-5, 2, "-0.05"),
        ] {
            assert_eq!(decimal(minor, digits), text);
        }
    }

    #[test]
    fn numbers_of_others() {
        for (text, expected) in [
            ("10", Some(1_000)),
            ("10.5", Some(1_050)),
            ("10.50", Some(1_050)),
            ("10.5000", Some(1_050)),
            ("0.1", Some(10)),
            ("1.0E7", Some(1_000_000_000)),
            ("1.5e-1", Some(15)),
            ("92233720368547758.07", Some(i64::MAX)),
            ("92233720368547758.08", None),
            ("10.505", None),
            ("-1", None),
            (".5", None),
            ("", None),
            ("1e99", None),
            ("null", None),
        ] {
            assert_eq!(minor(text, 2), expected, "{text}");
        }
        assert_eq!(minor("1050", 0), Some(1_050));
        assert_eq!(minor("1050.0", 0), Some(1_050));
    }

    proptest! {
        #[test]
        fn every_amount_round_trips(amount in 0_i64..) {
            for digits in [0, 2] {
                prop_assert_eq!(minor(&decimal(amount, digits), digits), Some(amount));
            }
        }

        #[test]
        fn any_text_is_survived(text in "[0-9eE.+-]{0,50}") {
            let _ = minor(&text, 2);
        }
    }
}
