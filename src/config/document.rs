//! Keeps the tables of `docs/configuration.md` in step with the table of keys.

use std::{env, fs, path::Path};

use super::key::{Group, KEYS, Key, Kind, Reach, Standard};

const TABLES: [(&str, Group); 5] = [
    ("name-server", Group::NameServer),
    ("server", Group::Server),
    ("own", Group::Own),
    ("system", Group::System),
    ("client", Group::Client),
];

/// The rows of one group.
fn table(group: Group) -> String {
    let mut text =
        "| key | value | default | takes effect | meaning |\n|---|---|---|---|---|\n".to_owned();
    for key in KEYS.iter().filter(|key| key.group == group) {
        let Key { name, meaning, .. } = key;
        let reach = match key.reach {
            Reach::Live => "at once".to_owned(),
            Reach::Restart => "at start".to_owned(),
            Reach::NoMeaning(instead) => format!("never: {instead}"),
            Reach::Blocked => "at start; refused by 318".to_owned(),
        };
        text += &format!(
            "| `{name}` | {} | {} | {reach} | {meaning} |\n",
            kind(key.kind),
            standard(key.standard)
        );
    }
    text
}

fn kind(kind: Kind) -> String {
    match kind {
        Kind::Boolean => "boolean".to_owned(),
        Kind::Off(_) => "false".to_owned(),
        Kind::Int(i32::MIN, i32::MAX) | Kind::Long(i64::MIN, i64::MAX) => "number".to_owned(),
        Kind::Int(min, i32::MAX) => format!("number from {min}"),
        Kind::Int(min, max) => format!("{min} to {max}"),
        Kind::Long(min, max) => format!("{min} to {max}"),
        Kind::Text => "text".to_owned(),
        Kind::Path => "path".to_owned(),
        Kind::Address => "host or address".to_owned(),
        Kind::Word(words) => words.join(", "),
        Kind::Zone => "`GMT`, `UTC`, `GMT±h[:mm]`".to_owned(),
    }
}

fn standard(standard: Standard) -> String {
    match standard {
        Standard::Is(text) => format!("`{text}`"),
        Standard::InUserHome(file) => format!("`~/namesrv/{file}`"),
        Standard::RocketmqHome => "environment `ROCKETMQ_HOME`".to_owned(),
        Standard::Unset => "none".to_owned(),
    }
}

/// `text` with everything between the markers of `name` replaced by `table`.
fn with_table(text: &str, name: &str, table: &str) -> String {
    let begin = format!("<!-- table {name}: made from src/config/key.rs -->\n");
    let end = format!("<!-- end of table {name} -->\n");
    let (before, rest) = text
        .split_once(&begin)
        .unwrap_or_else(|| panic!("the document has no {begin}"));
    let (_, after) = rest
        .split_once(&end)
        .unwrap_or_else(|| panic!("the document has no {end}"));
    format!("{before}{begin}\n{table}\n{end}{after}")
}

/// `WAYPOST_BLESS=1 cargo test document` rewrites the tables.
#[test]
fn e13_the_document_shows_every_key_as_the_table_of_keys_has_it() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/configuration.md");
    let found = fs::read_to_string(&path).expect("docs/configuration.md is there");
    let wanted = TABLES.iter().fold(found.clone(), |text, &(name, group)| {
        with_table(&text, name, &table(group))
    });
    if env::var_os("WAYPOST_BLESS").is_some() {
        fs::write(&path, &wanted).expect("docs/configuration.md can be written");
        return;
    }
    assert!(
        found == wanted,
        "docs/configuration.md is out of date: WAYPOST_BLESS=1 cargo test document"
    );
}
