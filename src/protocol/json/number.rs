//! Numbers as Java spells and converts them.

/// The integer that a decimal text stands for: a sign, leading zeros, a fraction (cut) and an exponent are allowed, as is one of
/// Java's type suffixes (spec 1.2). `None` when it is no number or no `i64`.
pub(super) fn integer(text: &str) -> Option<i64> {
    let text = text.strip_suffix(['L', 'S', 'B', 'F', 'D']).unwrap_or(text);
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, rest) = split_digits(unsigned);
    if whole.is_empty() {
        return None;
    }
    let fraction_and_exponent = rest.strip_prefix('.').unwrap_or(rest);
    let (_, exponent) = if rest.starts_with('.') {
        split_digits(fraction_and_exponent)
    } else {
        ("", rest)
    };
    if exponent.is_empty() {
        return text[..text.len() - rest.len()].parse().ok();
    }
    let digits = exponent.strip_prefix(['e', 'E'])?;
    let digits = digits.strip_prefix(['+', '-']).unwrap_or(digits);
    if digits.is_empty() || !split_digits(digits).1.is_empty() {
        return None;
    }
    float_to_integer(text.parse().ok()?)
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

fn float_to_integer(float: f64) -> Option<i64> {
    /// 2^63, the first float above every `i64`.
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if !(-LIMIT..LIMIT).contains(&float) {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the range is checked; the fraction is cut on purpose"
    )]
    let integer = float as i64;
    Some(integer)
}

#[cfg(test)]
mod tests {
    use super::integer;

    #[test]
    fn every_java_spelling_of_105_is_105() {
        for text in [
            "105",
            "0105",
            "+105",
            "105.",
            "105.0",
            "105.9",
            "105L",
            "1.05e2",
            "1050E-1",
            "105e0",
            "10500e-2D",
        ] {
            assert_eq!(integer(text), Some(105), "{text}");
        }
    }

    #[test]
    fn the_ends_of_the_range_are_exact_and_what_lies_beyond_is_none() {
        assert_eq!(integer("9223372036854775807.9"), Some(i64::MAX));
        assert_eq!(integer("-9223372036854775808"), Some(i64::MIN));
        assert_eq!(integer("9223372036854775808"), None);
        assert_eq!(integer("1e19"), None);
        assert_eq!(integer("1e99999"), None);
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in [
            "", "+", "-", ".", ".5", "1.2.3", "1e", "1e+", "--1", "1-", "0x10", "1 ", "L", "e5",
            "1_0",
        ] {
            assert_eq!(integer(text), None, "{text}");
        }
    }
}
