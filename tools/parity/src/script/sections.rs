//! Which themes are asked of which server.

use super::{Section, Theme};
use super::{errors, framing, header_binary, header_json};

/// The whole script.
#[must_use]
pub fn sections() -> Vec<Section> {
    vec![section(
        "wire",
        &[],
        vec![
            framing::theme(),
            header_json::theme(),
            header_binary::theme(),
            errors::theme(),
        ],
    )]
}

fn section(
    name: &'static str,
    settings: &[(&'static str, &'static str)],
    themes: Vec<Theme>,
) -> Section {
    Section {
        name,
        settings: settings.to_vec(),
        themes,
    }
}
