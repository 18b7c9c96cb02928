//! The committed inputs of the fuzz targets, through the same properties, with the compiler that everyone has.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

#[expect(unreachable_pub, reason = "it is the library of another package there")]
#[path = "../../fuzz/src/lib.rs"]
pub(crate) mod properties;

use properties::TARGETS;

/// What all inputs together may take: they are cloned and built with by everyone.
const CORPUS_LEN_MAX: u64 = 300_000;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz")
}

/// The entries of a folder, sorted.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("an entry of this repository").path())
        .collect();
    entries.sort();
    entries
}

fn stems(folder: &Path) -> BTreeSet<String> {
    let stem = |path: PathBuf| path.file_stem().map(|stem| stem.to_string_lossy().into());
    entries(folder).into_iter().filter_map(stem).collect()
}

fn check_corpus(target: &str) {
    let inputs = entries(&fuzz().join("corpus").join(target));
    assert!(!inputs.is_empty(), "{target} has no input");
    for input in inputs {
        let bytes = fs::read(&input).expect("an input of this repository");
        // The panic says where the property is broken, this by what.
        let held = std::panic::catch_unwind(|| properties::run(target, &bytes));
        assert!(held.is_ok(), "{} breaks {target}", input.display());
    }
}

macro_rules! corpora {
    ($($target:ident)*) => {
        $(
            #[test]
            fn $target() {
                check_corpus(stringify!($target));
            }
        )*

        #[test]
        fn every_target_has_a_test_an_entry_point_and_a_corpus_and_nothing_else_has() {
            let names: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
            let tested = [$(stringify!($target)),*].map(str::to_owned);
            assert_eq!(names, BTreeSet::from(tested));
            assert_eq!(names, stems(&fuzz().join("fuzz_targets")));
            assert_eq!(names, stems(&fuzz().join("corpus")));
        }
    };
}

corpora! {
    config_text
    connection
    frame
    header_json
    header_rocketmq
    header_scan
    kv_file
    register_body
    register_body_compressed
}

#[test]
fn the_corpus_stays_small() {
    let folders = entries(&fuzz().join("corpus"));
    let inputs = folders.iter().flat_map(|folder| entries(folder));
    let len: u64 = inputs
        .map(|input| {
            fs::metadata(input)
                .expect("an input of this repository")
                .len()
        })
        .sum();
    assert!(len <= CORPUS_LEN_MAX, "{len} bytes");
}
