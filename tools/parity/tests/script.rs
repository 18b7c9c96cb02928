//! The script, its golden files and its deviations fit together.

use std::collections::BTreeSet;

use parity::script::{Section, sections};
use parity::{EXPECTED, deviations, golden};

const ORACLES: [&str; 4] = ["5.5.0", "5.3.3", "4.9.7", "4.9.3"];

fn ids(sections: &[Section]) -> Vec<String> {
    let steps = sections
        .iter()
        .flat_map(|section| &section.themes)
        .flat_map(|theme| &theme.steps);
    steps
        .map(|step| step.id.clone())
        .filter(|id| !id.is_empty())
        .collect()
}

#[test]
fn every_step_has_an_id_of_its_own() {
    let ids = ids(&sections());
    let distinct: BTreeSet<&String> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len());
    assert!(ids.len() >= 450, "{} steps", ids.len());
}

#[test]
fn few_servers_are_started() {
    assert!(sections().len() <= 8);
}

#[test]
fn every_oracle_has_a_golden_file_of_this_script() {
    let script = sections();
    for release in ORACLES {
        let report = golden::read(release).expect("the golden file is readable");
        let recorded: Vec<&str> = report.records().map(|record| record.id.as_str()).collect();
        assert_eq!(recorded, ids(&script), "{release}");
    }
    let expected = golden::read(EXPECTED).expect("the golden file is readable");
    let steps = script
        .iter()
        .flat_map(|section| &section.themes)
        .flat_map(|theme| &theme.steps);
    for step in steps.filter(|step| !step.id.is_empty()) {
        let record = expected.record(&step.id).expect("compared above");
        assert_eq!(record.sent, step.action.describe(), "{}", step.id);
    }
}

#[test]
fn deviations_speak_of_steps_that_exist_and_differ() {
    let expected = golden::read(EXPECTED).expect("the golden file is readable");
    let deviations = deviations::read().expect("the deviations are readable");
    let mut names = BTreeSet::new();
    for deviation in &deviations {
        assert!(names.insert(&deviation.id), "{} twice", deviation.id);
        for (step, patch) in &deviation.steps {
            let record = expected
                .record(step)
                .unwrap_or_else(|| panic!("{}: no step {step}", deviation.id));
            let ours = deviations::patched(&record.observed, patch)
                .expect("the patch makes an observation");
            assert_ne!(ours, record.observed, "{}: {step}", deviation.id);
        }
    }
}
