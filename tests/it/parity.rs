//! What the original answers, frame by frame, recorded; and what we answer on purpose instead.

use std::path::Path;

#[test]
fn every_recorded_answer_of_the_original_is_given_or_listed_as_a_deviation() {
    let mut launcher = parity::ProcessLauncher::new(env!("CARGO_BIN_EXE_mqnamesrv"));
    let report = parity::run_sections(&mut launcher).expect("the server starts and serves");
    let golden = parity::golden::read(parity::EXPECTED).expect("a golden file");
    let deviations = parity::deviations::read().expect("a list of deviations");
    if let Err(mismatches) = parity::check(&report, &golden, &deviations) {
        panic!("{mismatches}");
    }
}

#[test]
fn every_deviation_is_explained_and_every_explanation_has_its_steps() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/deviations.md");
    let document = std::fs::read_to_string(document).expect("the list of deviations for readers");
    let deviations = parity::deviations::read().expect("a list of deviations");
    for deviation in &deviations {
        let row = format!("| {} |", deviation.id);
        assert!(
            document.contains(&row),
            "{} is not in docs/deviations.md",
            deviation.id
        );
    }
    let explained = document
        .lines()
        .filter(|line| line.starts_with("| D-"))
        .count();
    assert_eq!(
        explained,
        deviations.len(),
        "docs/deviations.md has rows without steps"
    );
}
