//! Finding differences, and allowing those that are meant.

use std::collections::BTreeMap;

use parity::check::{check, compare};
use parity::deviations::{Deviation, Rule};
use parity::frame::{Codec, Frame};
use parity::observed::{Answer, Observed, Record, Report, SOME_TEXT, SectionRecord};
use parity::script::{Section, Theme};
use serde_json::{Value, json};

fn answer(codec: Codec, code: i32, remark: Option<&str>) -> Observed {
    Observed::Reply(Answer {
        codec,
        code,
        flag: 1,
        remark: remark.map(str::to_owned),
        ext: None,
        header: None,
        body: None,
    })
}

/// A script of one step `t/s`, sent with the given codec.
fn script(codec: Codec) -> Vec<Section> {
    let mut theme = Theme::new("t");
    let frame = Frame::request(106);
    theme.ask(
        "s",
        if codec == Codec::Json {
            frame
        } else {
            frame.binary()
        },
    );
    vec![Section {
        name: "section",
        settings: Vec::new(),
        themes: vec![theme],
    }]
}

fn report(observed: Observed) -> Report {
    let record = Record {
        id: "t/s".to_owned(),
        sent: "something".to_owned(),
        observed,
    };
    let section = SectionRecord {
        section: "section".to_owned(),
        settings: BTreeMap::new(),
        steps: vec![record],
        notes: Vec::new(),
    };
    Report {
        server: "x".to_owned(),
        sections: vec![section],
    }
}

fn deviation(step: &str, patch: Value) -> Deviation {
    Deviation {
        id: "D-1".to_owned(),
        quirk: "Q1".to_owned(),
        reason: "because".to_owned(),
        rule: None,
        steps: BTreeMap::from([(step.to_owned(), patch)]),
    }
}

fn differences(golden: Observed, got: Observed, deviations: &[Deviation]) -> Vec<String> {
    match check(
        &script(Codec::Json),
        &report(got),
        &report(golden),
        deviations,
    ) {
        Ok(()) => Vec::new(),
        Err(mismatches) => mismatches.list,
    }
}

#[test]
fn equal_answers_agree() {
    assert!(
        differences(
            answer(Codec::Json, 0, None),
            answer(Codec::Json, 0, None),
            &[]
        )
        .is_empty()
    );
}

#[test]
fn a_difference_names_step_request_and_both_answers() {
    let list = differences(
        answer(Codec::Json, 17, Some("none")),
        answer(Codec::Json, 0, None),
        &[],
    );
    assert_eq!(list.len(), 1);
    for part in ["t/s", "something", "17", "none"] {
        assert!(list[0].contains(part), "{part} in {}", list[0]);
    }
}

#[test]
fn an_exception_s_text_may_be_any_but_must_be_there() {
    let golden = || answer(Codec::Json, 1, Some(SOME_TEXT));
    assert!(
        differences(
            golden(),
            answer(Codec::Json, 1, Some("brokerId is missing")),
            &[]
        )
        .is_empty()
    );
    assert_eq!(
        differences(golden(), answer(Codec::Json, 1, None), &[]).len(),
        1
    );
    assert_eq!(
        differences(golden(), answer(Codec::Json, 0, Some("x")), &[]).len(),
        1
    );
}

#[test]
fn a_deviation_is_expected_in_the_place_of_the_original() {
    let golden = || answer(Codec::Json, 0, Some("not set any response code"));
    let deviations = [deviation("t/s", json!({"remark": null}))];
    assert!(differences(golden(), answer(Codec::Json, 0, None), &deviations).is_empty());
    assert_eq!(
        differences(golden(), answer(Codec::Json, 0, Some("other")), &deviations).len(),
        1
    );
}

#[test]
fn a_deviation_may_replace_the_whole_observation() {
    let deviations = [deviation("t/s", json!({"got": "closed"}))];
    assert!(differences(answer(Codec::Json, 0, None), Observed::Closed, &deviations).is_empty());
}

#[test]
fn a_deviation_that_is_none_is_a_difference() {
    let golden = || answer(Codec::Json, 0, None);
    let unused = differences(golden(), golden(), &[deviation("t/s", json!({"code": 1}))]);
    assert!(unused[0].contains("does not deviate"), "{unused:?}");
    let idle = differences(golden(), golden(), &[deviation("t/s", json!({"code": 0}))]);
    assert!(idle[0].contains("what the original answers"), "{idle:?}");
    let unknown = differences(
        golden(),
        golden(),
        &[deviation("t/none", json!({"code": 1}))],
    );
    assert!(unknown[0].contains("no step t/none"), "{unknown:?}");
}

#[test]
fn a_binary_request_may_be_answered_in_binary() {
    let rule = Deviation {
        rule: Some(Rule::MirroredCodec),
        steps: BTreeMap::new(),
        ..deviation("t/s", json!({}))
    };
    let golden = report(answer(Codec::Json, 0, None));
    let ours = report(answer(Codec::RocketMq, 0, None));
    assert!(
        check(
            &script(Codec::RocketMq),
            &ours,
            &golden,
            std::slice::from_ref(&rule)
        )
        .is_ok()
    );
    let idle = check(&script(Codec::Json), &golden, &golden, &[rule])
        .expect_err("the rule applies to nothing");
    assert!(idle.list[0].contains("applies to no step"), "{idle}");
}

#[test]
fn a_golden_file_of_another_script_is_a_difference() {
    let mut golden = report(Observed::Closed);
    golden.sections[0].steps[0].sent = "something else".to_owned();
    let stale = check(
        &script(Codec::Json),
        &report(Observed::Closed),
        &golden,
        &[],
    )
    .expect_err("it is stale");
    assert!(stale.list[0].contains("record again"), "{stale}");
}

#[test]
fn two_reports_are_compared_step_by_step() {
    let (one, other) = (report(Observed::Silence), report(Observed::Closed));
    assert_eq!(compare(&one, &other).len(), 1);
    assert!(compare(&one, &one).is_empty());
}
