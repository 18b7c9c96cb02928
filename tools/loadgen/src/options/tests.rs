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
fn help_names_every_option() {
    for name in [
        "target",
        "workload",
        "mode",
        "rate",
        "depth",
        "connections",
        "threads",
        "duration",
        "warm-up",
        "topics",
        "brokers",
        "topics-per-broker",
        "first-number",
        "hot-topics",
        "hot-percent",
        "seed",
        "register-rate",
        "register-kind",
        "register-topics",
        "heartbeat-rate",
        "heartbeat-code",
        "disconnect-brokers",
        "version-json",
        "codec",
        "report",
        "histogram-file",
        "plot",
        "ready-file",
        "server-pid",
        "listen",
        "reply-bytes",
    ] {
        assert!(HELP.contains(&format!("--{name} ")), "--{name}");
    }
}
