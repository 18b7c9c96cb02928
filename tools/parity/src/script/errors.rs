//! Codes nobody serves.

use super::Theme;
use crate::frame::Frame;

pub(super) fn theme() -> Theme {
    let mut theme = Theme::new("errors");
    for code in [
        0,
        1,
        10,
        11,
        34,
        40,
        47,
        105_105,
        320,
        321,
        900,
        902,
        903,
        905,
        1001,
        1003,
        1011,
        5001,
        9999,
        200_070,
        40_000,
        i32::MAX,
        -1,
        -105,
        i32::MIN,
    ] {
        theme.ask(&format!("code-{code}"), Frame::request(code));
    }
    theme.ask(
        "unknown-with-ext-and-body",
        Frame::request(9999).ext("topic", "x").body("{}"),
    );
    theme.ask("unknown-version-0", Frame::request(9999).version(0));
    theme.ask(
        "unknown-version-10000",
        Frame::request(9999).version(10_000),
    );
    theme.ask("unknown-version-negative", Frame::request(9999).version(-1));
    theme.ask("unknown-binary", Frame::request(9999).binary());
    theme.ask("unknown-binary-zero", Frame::request(0).binary());
    theme.quiet("unknown-oneway", Frame::request(9999).oneway());
    theme.quiet("unknown-response", Frame::request(9999).flag(1));
    theme.ask("still-usable", Frame::request(106));
    theme
}
