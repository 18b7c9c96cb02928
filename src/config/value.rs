//! Text → typed value by Java's rules, and which values a server may start with.

use std::{fmt, net::Ipv6Addr};

use super::{
    Problem,
    key::{Key, Kind},
};
use crate::limits::CONFIG_VALUE_LEN_MAX;

/// What a key holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// Java's null.
    Unset,
    Boolean(bool),
    Number(i64),
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unset => Ok(()),
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Number(value) => write!(f, "{value}"),
            Self::Text(value) => f.write_str(value),
        }
    }
}

/// Why a text is no value of its key. The key then stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BadValue {
    NotANumber { min: i64, max: i64 },
    BlanksAroundNumber,
    ControlCharacter,
    TooLong,
    NotOneOf(&'static [&'static str]),
    NotAZone,
}

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotANumber { min, max } => write!(f, "is not a whole number from {min} to {max}"),
            Self::BlanksAroundNumber => {
                f.write_str("has blanks after the number, which make it none")
            }
            Self::ControlCharacter => f.write_str("contains a control character"),
            Self::TooLong => write!(f, "is longer than {CONFIG_VALUE_LEN_MAX} bytes"),
            Self::NotOneOf(words) => write!(f, "is not one of {}", words.join(", ")),
            Self::NotAZone => {
                f.write_str("is not GMT, UTC or an offset such as GMT+8 or GMT-03:30")
            }
        }
    }
}

impl Value {
    /// Reads `text` as `MixAll#properties2Object` would, except that no value holds a control character.
    pub(super) fn read(kind: Kind, text: &str) -> Result<Self, BadValue> {
        let number = |parsed: Option<i64>, min: i64, max: i64| {
            let blanks =
                text.len() != java_trim(text).len() && java_trim(text).parse::<i64>().is_ok();
            let bad = if blanks {
                BadValue::BlanksAroundNumber
            } else {
                BadValue::NotANumber { min, max }
            };
            parsed.map(Self::Number).ok_or(bad)
        };
        match kind {
            Kind::Boolean | Kind::Off(_) => Ok(Self::Boolean(text.eq_ignore_ascii_case("true"))),
            Kind::Int(min, max) => number(
                text.parse::<i32>().ok().map(i64::from),
                min.into(),
                max.into(),
            ),
            Kind::Long(min, max) => number(text.parse().ok(), min, max),
            Kind::Text | Kind::Path | Kind::Address => {
                plain(java_trim(text)).map(|text| Self::Text(text.to_owned()))
            }
            Kind::Word(words) => {
                let lower = java_trim(text).to_ascii_lowercase();
                if words.contains(&lower.as_str()) {
                    Ok(Self::Text(lower))
                } else {
                    Err(BadValue::NotOneOf(words))
                }
            }
            Kind::Zone => {
                let text = java_trim(text);
                zone_minutes(text)
                    .map(|_| Self::Text(text.to_owned()))
                    .ok_or(BadValue::NotAZone)
            }
        }
    }

    /// Refuses a value that no server may start with, and so 318 may not store (spec Q45).
    pub(super) fn check(&self, key: &Key) -> Result<(), Problem> {
        let allowed = match (key.kind, self) {
            (Kind::Int(min, max), &Self::Number(value)) => {
                let range = i64::from(min)..=i64::from(max);
                if range.contains(&value) { None } else { Some(format!("allowed is {min} to {max}")) }
            }
            (Kind::Long(min, max), &Self::Number(value)) => {
                if (min..=max).contains(&value) { None } else { Some(format!("allowed is {min} to {max}")) }
            }
            (Kind::Off(instead), Self::Boolean(true)) => Some(format!("not supported by this server; {instead}")),
            (Kind::Address, Self::Text(text)) if !is_address(text) => {
                Some("allowed is a host name or an IPv4 or IPv6 address, without a port, such as 0.0.0.0".to_owned())
            }
            (Kind::Path, Self::Text(text)) if text.is_empty() => Some("allowed is the path of a file".to_owned()),
            (_, Self::Text(text)) if plain(text).is_err() => Some(format!(
                "allowed is a text of at most {CONFIG_VALUE_LEN_MAX} bytes without control characters"
            )),
            _ => None,
        };
        match allowed {
            None => Ok(()),
            Some(allowed) => Err(Problem {
                key: key.name,
                value: self.to_string(),
                allowed,
            }),
        }
    }
}

/// Refuses what could not be shown on one line, or is longer than any use of it.
pub(super) fn plain(text: &str) -> Result<&str, BadValue> {
    if text.len() > CONFIG_VALUE_LEN_MAX {
        return Err(BadValue::TooLong);
    }
    if text.contains(char::is_control) {
        Err(BadValue::ControlCharacter)
    } else {
        Ok(text)
    }
}

/// `String#trim`: drops everything up to the blank from both ends.
pub(super) fn java_trim(text: &str) -> &str {
    text.trim_matches(|character| character <= ' ')
}

/// Offset of a zone to GMT in minutes.
pub(super) fn zone_minutes(text: &str) -> Option<i32> {
    let rest = text
        .strip_prefix("GMT")
        .or_else(|| text.strip_prefix("UTC"))?;
    if rest.is_empty() {
        return Some(0);
    }
    let (sign, rest) = match rest.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':').unwrap_or((rest, "00"));
    let number = |digits: &str, lengths: &[usize]| {
        let well_formed =
            lengths.contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
        well_formed.then(|| digits.parse::<i32>().ok()).flatten()
    };
    let (hours, minutes) = (number(hours, &[1, 2])?, number(minutes, &[2])?);
    (hours <= 14 && minutes < 60).then_some(sign * (hours * 60 + minutes))
}

/// Whether the system could be asked to listen at `text`.
fn is_address(text: &str) -> bool {
    if text.parse::<std::net::Ipv4Addr>().is_ok() {
        return true;
    }
    let bare = unbracketed(text);
    if bare.contains(':') || bare.len() != text.len() {
        let (address, scope) = bare.split_once('%').unwrap_or((bare, "0"));
        let scope_is_plain = scope
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'));
        return address.parse::<Ipv6Addr>().is_ok() && !scope.is_empty() && scope_is_plain;
    }
    is_host_name(text)
}

/// An IPv6 address without the brackets that Java tolerates around it.
pub(super) fn unbracketed(address: &str) -> &str {
    address
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(address)
}

fn is_host_name(text: &str) -> bool {
    let text = text.strip_suffix('.').unwrap_or(text);
    let is_label = |label: &str| {
        let plain = label
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        plain && (1..=63).contains(&label.len()) && !label.starts_with('-') && !label.ends_with('-')
    };
    // A last label of digits is a mistyped IPv4 address: no top-level domain looks like that.
    let last_is_number = text
        .rsplit('.')
        .next()
        .is_some_and(|label| label.bytes().all(|byte| byte.is_ascii_digit()));
    text.len() <= 253 && text.split('.').all(is_label) && !last_is_number
}
