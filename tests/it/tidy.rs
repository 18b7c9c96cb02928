//! Rules of the house that a machine can check: who may use whom, where concurrency lives, how long a file may be.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Source files of a folder, sorted.
pub(crate) fn sources(folder: &str) -> Vec<PathBuf> {
    fn visit(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a folder of this repository") {
            let path = entry.expect("a folder of this repository").path();
            if path.is_dir() {
                visit(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    visit(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join(folder),
        &mut found,
    );
    found.sort();
    found
}

/// The code of a file without its unit tests and comments.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("a source file");
    let text = text
        .split("#[cfg(test)]\nmod ")
        .next()
        .expect("split yields one part at least");
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

fn is_test(path: &Path) -> bool {
    path.file_stem().is_some_and(|stem| stem == "tests")
        || path.components().any(|part| part.as_os_str() == "tests")
}

/// Module, what it must not name.
const FORBIDDEN: [(&str, &[&str]); 7] = [
    (
        "src/protocol",
        &[
            "crate::registry",
            "crate::processor",
            "crate::connection",
            "crate::sync",
            "crate::worker",
            "crate::server",
            "crate::config",
            "crate::time",
        ],
    ),
    (
        "src/config",
        &[
            "crate::protocol",
            "crate::registry",
            "crate::processor",
            "crate::connection",
            "crate::sync",
            "crate::worker",
            "crate::server",
        ],
    ),
    (
        "src/registry",
        &[
            "crate::processor",
            "crate::connection",
            "crate::sync::mailbox",
            "crate::sync::snapshot",
            "crate::worker",
            "crate::server",
        ],
    ),
    (
        "src/processor",
        &[
            "crate::connection",
            "crate::sync",
            "crate::worker",
            "crate::server",
        ],
    ),
    (
        "src/connection",
        &[
            "crate::registry",
            "crate::sync",
            "crate::worker",
            "crate::server",
            "mio::",
        ],
    ),
    ("src/worker", &["crate::config", "crate::server", "mio::"]),
    (
        "src/sync",
        &[
            "crate::protocol",
            "crate::registry",
            "crate::processor",
            "crate::connection",
            "crate::worker",
            "crate::server",
            "crate::config",
        ],
    ),
];

/// What only `server`, `main.rs` and `logging.rs` may touch.
const IMPURE: [&str; 7] = [
    "std::fs",
    "std::thread",
    "std::env",
    "std::process",
    "TcpStream",
    "Instant::now",
    "SystemTime::now",
];

#[test]
fn modules_use_only_what_lies_below_them() {
    let mut broken = Vec::new();
    for (module, forbidden) in FORBIDDEN {
        for path in sources(module).iter().filter(|path| !is_test(path)) {
            let code = code(path);
            let used = forbidden.iter().filter(|name| code.contains(**name));
            broken.extend(used.map(|name| format!("{} uses {name}", path.display())));
            if module != "src/sync" {
                let used = IMPURE.iter().filter(|name| code.contains(**name));
                broken.extend(used.map(|name| format!("{} touches {name}", path.display())));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn concurrency_lives_in_one_folder() {
    let mut broken = Vec::new();
    for path in sources("src") {
        if path.components().any(|part| part.as_os_str() == "sync") {
            continue;
        }
        let code = code(&path);
        let used = [
            "Mutex",
            "RwLock",
            "Condvar",
            "Atomic",
            "arc_swap",
            "crossbeam",
            "loom",
        ]
        .into_iter();
        broken.extend(
            used.filter(|name| code.contains(name))
                .map(|name| format!("{} names {name}", path.display())),
        );
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn no_file_is_too_long_to_find_ones_way_in() {
    let long = |path: &PathBuf| {
        let lines = fs::read_to_string(path)
            .expect("a source file")
            .lines()
            .count();
        (lines > 800 && !is_test(path)).then(|| format!("{}: {lines} lines", path.display()))
    };
    let broken: Vec<String> = sources("src").iter().filter_map(long).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_source_file_says_what_it_is_for() {
    let silent = |path: &PathBuf| {
        !is_test(path)
            && !fs::read_to_string(path)
                .expect("a source file")
                .starts_with("//!")
    };
    let broken: Vec<PathBuf> = sources("src").into_iter().filter(silent).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}
