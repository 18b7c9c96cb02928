use std::collections::BTreeSet;

use super::*;

fn run(line: &str) -> Result<Options> {
    match parse(line.split_whitespace().map(OsString::from))? {
        Command::Run(options) => Ok(*options),
        other @ (Command::Null(_) | Command::Help) => panic!("{other:?}"),
    }
}

fn refusal(line: &str) -> String {
    run(line).unwrap_err().to_string()
}

#[test]
fn no_arguments_are_the_canonical_workload() {
    let options = run("").unwrap();
    assert_eq!(options.target.to_string(), "127.0.0.1:9876");
    assert_eq!(options.workload, Workload::Mixed);
    assert_eq!(options.modes, [Mode::Closed, Mode::Open]);
    assert_eq!(options.population.brokers(), 200);
}

#[test]
fn an_option_overrides_the_workload_s_default_wherever_it_stands() {
    let options = run("run --topics 5 --workload=route-cold --mode open --depth 3").unwrap();
    assert_eq!(options.population.topics, 5);
    assert_eq!(options.modes, [Mode::Open]);
    assert_eq!((options.depth, options.open_depth), (3, 3));
    assert_eq!(options.hot_percent, 0);
}

#[test]
fn only_this_machine_is_loaded() {
    assert!(run("--target localhost:1234").is_ok());
    assert!(run("--target [::1]:1234").is_ok());
    for target in ["10.0.0.1:9876", "0.0.0.0:9876", "example.org:9876", "9876"] {
        let text = refusal(&format!("--target {target}"));
        assert!(text.contains("loopback"), "{text}");
    }
}

#[test]
fn everything_has_a_bound() {
    for line in [
        "--depth 0",
        "--connections 1000000",
        "--duration 1e9",
        "--rate nan",
        "--topics 1000000 --topics-per-broker 1",
        "--threads 17",
        "--disconnect-brokers 151",
        "--workload heartbeat --connections 4",
        "--mode sideways",
        "--no-such-option 1",
    ] {
        assert!(run(line).is_err(), "{line}");
    }
}

#[test]
fn a_refusal_says_what_was_found_and_what_is_allowed() {
    assert_eq!(
        refusal("--depth 0"),
        "--depth 0; allowed are numbers from 1 to 4096"
    );
    assert_eq!(
        refusal("--codec xml"),
        "--codec xml; allowed are json, rocketmq"
    );
}

#[test]
fn a_null_server_has_long_replies_of_several_lengths() {
    let null = |lens: &str| {
        let line = ["null", "--long-reply-bytes", lens].map(OsString::from);
        match parse(line) {
            Ok(Command::Null(options)) => Ok(options.long_reply_bytes),
            Ok(other) => unreachable!("{other:?}"),
            Err(error) => Err(error.to_string()),
        }
    };
    assert_eq!(null("3200000,500"), Ok(vec![3_200_000, 500]));
    let refusal = format!(
        "--long-reply-bytes 20000000; allowed are numbers from {REPLY_LEN_MIN} to {LONG_REPLY_LEN_MAX}"
    );
    assert_eq!(null("500,20000000"), Err(refusal));
    assert!(null("").is_err());
}

#[test]
fn an_unknown_option_is_not_asked_for_a_value() {
    for line in [
        "--foo",
        "--version",
        "--foo --help",
        "--foo=1",
        "run --foo 1",
    ] {
        let option = if line.contains("foo") {
            "foo"
        } else {
            "version"
        };
        let expected = format!("unknown option --{option} of run; loadgen --help lists them all");
        assert_eq!(refusal(line), expected, "{line}");
    }
    assert_eq!(
        refusal("null --depth"),
        "unknown option --depth of null; loadgen --help lists them all"
    );
    assert_eq!(
        refusal("-V"),
        "unknown option -V of run; loadgen --help lists them all"
    );
    assert_eq!(refusal("--depth"), "missing argument for option '--depth'");
}

#[test]
fn every_option_is_understood_and_helped_with() {
    for kind in [Kind::Run, Kind::Null] {
        for name in kind.options() {
            assert!(HELP.contains(&format!("\n  --{name} ")), "--{name}");
            // A folder or a file may have this name; all else is wrong.
            let line = [kind.name(), &format!("--{name}"), "/"].map(OsString::from);
            let is_path = matches!(*name, "histogram-file" | "plot" | "ready-file");
            assert_eq!(parse(line).is_ok(), is_path, "--{name}");
        }
    }
    let options = HELP.lines().filter_map(|line| line.strip_prefix("  --"));
    let helped: BTreeSet<&str> = options
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let known = RUN_OPTIONS.into_iter().chain(NULL_OPTIONS);
    assert_eq!(helped, known.collect());
}
