//! The command line: record, check, compare, differences, list.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use parity::java::JavaLauncher;
use parity::script::Section;
use parity::{
    EXPECTED, Error, ProcessLauncher, Report, Result, check, deviations, golden, runner, script,
};

const USAGE: &str = "\
usage: parity record --oracle RELEASE        record a Java release's golden file
       parity check --server PATH            compare ours with the golden file and the deviations
       parity compare --oracle RELEASE --server PATH   compare ours with a running Java server
       parity differences --oracle RELEASE   list the steps a release answers differently from 5.3.3
       parity report --server PATH           print what ours answers, in the golden files' form
       parity list                           list the steps
options: --section NAME  only this section (record then writes nothing, but prints)
         --work FOLDER   where jars and server folders go (default target/parity)";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

struct Options {
    oracle: Option<String>,
    server: Option<PathBuf>,
    section: Option<String>,
    work: PathBuf,
}

fn run(arguments: &[String]) -> Result<ExitCode> {
    let Some((command, rest)) = arguments.split_first() else {
        return Err(Error::new(USAGE.to_owned()));
    };
    let options = parse(rest)?;
    let sections = chosen(options.section.as_deref())?;
    match command.as_str() {
        "record" => record(&options, &sections),
        "check" => check_ours(&options, &sections),
        "report" => report_ours(&options, &sections),
        "compare" => compare(&options, &sections),
        "differences" => {
            let (one, other) = (golden::read(EXPECTED)?, golden::read(oracle(&options)?)?);
            Ok(print_differences(&check::compare(&one, &other)))
        }
        "list" => Ok(list(&sections)),
        _ => Err(Error::new(USAGE.to_owned())),
    }
}

fn parse(arguments: &[String]) -> Result<Options> {
    let mut options = Options {
        oracle: None,
        server: None,
        section: None,
        work: Path::new("target").join("parity"),
    };
    let mut rest = arguments.iter();
    while let Some(name) = rest.next() {
        let value = rest
            .next()
            .ok_or_else(|| Error::new(format!("{name} needs a value\n{USAGE}")))?;
        match name.as_str() {
            "--oracle" => options.oracle = Some(value.clone()),
            "--server" => options.server = Some(PathBuf::from(value)),
            "--section" => options.section = Some(value.clone()),
            "--work" => options.work = PathBuf::from(value),
            _ => return Err(Error::new(format!("unknown option {name}\n{USAGE}"))),
        }
    }
    Ok(options)
}

fn chosen(name: Option<&str>) -> Result<Vec<Section>> {
    let mut sections = script::sections();
    if let Some(name) = name {
        sections.retain(|section| section.name == name);
        if sections.is_empty() {
            return Err(Error::new(format!("there is no section {name}")));
        }
    }
    Ok(sections)
}

fn oracle(options: &Options) -> Result<&str> {
    options
        .oracle
        .as_deref()
        .ok_or_else(|| Error::new(format!("--oracle is missing\n{USAGE}")))
}

fn run_java(options: &Options, sections: &[Section]) -> Result<Report> {
    runner::run(
        sections,
        &mut JavaLauncher::prepare(oracle(options)?, &options.work)?,
    )
}

fn run_ours(options: &Options, sections: &[Section]) -> Result<Report> {
    let server = options
        .server
        .clone()
        .ok_or_else(|| Error::new(format!("--server is missing\n{USAGE}")))?;
    runner::run(sections, &mut ProcessLauncher::new(server))
}

fn record(options: &Options, sections: &[Section]) -> Result<ExitCode> {
    let report = run_java(options, sections)?;
    if options.section.is_some() {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        golden::write(&report)?;
    }
    eprintln!("{} steps recorded", report.records().count());
    Ok(ExitCode::SUCCESS)
}

fn check_ours(options: &Options, sections: &[Section]) -> Result<ExitCode> {
    let report = run_ours(options, sections)?;
    let mut golden = golden::read(EXPECTED)?;
    let mut deviations = deviations::read()?;
    if options.section.is_some() {
        golden
            .sections
            .retain(|section| sections.iter().any(|chosen| chosen.name == section.section));
        for deviation in &mut deviations {
            deviation
                .steps
                .retain(|step, _| golden.record(step).is_some());
        }
        deviations.retain(|deviation| deviation.rule.is_some() || !deviation.steps.is_empty());
    }
    match check::check(sections, &report, &golden, &deviations) {
        Ok(()) => {
            println!("{} steps agree", report.records().count());
            Ok(ExitCode::SUCCESS)
        }
        Err(mismatches) => {
            println!("{mismatches}");
            Ok(ExitCode::FAILURE)
        }
    }
}

fn report_ours(options: &Options, sections: &[Section]) -> Result<ExitCode> {
    println!(
        "{}",
        serde_json::to_string_pretty(&run_ours(options, sections)?)?
    );
    Ok(ExitCode::SUCCESS)
}

fn compare(options: &Options, sections: &[Section]) -> Result<ExitCode> {
    let original = run_java(options, sections)?;
    let ours = run_ours(options, sections)?;
    Ok(print_differences(&check::compare(&original, &ours)))
}

fn print_differences(differences: &[String]) -> ExitCode {
    for difference in differences {
        println!("{difference}\n");
    }
    println!("{} steps differ", differences.len());
    if differences.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn list(sections: &[Section]) -> ExitCode {
    let mut count = 0;
    for section in sections {
        println!("section {} {:?}", section.name, section.settings);
        let steps = section
            .themes
            .iter()
            .flat_map(|theme| &theme.steps)
            .filter(|step| !step.id.is_empty());
        for step in steps {
            println!("  {:<50} {}", step.id, step.action.describe());
            count += 1;
        }
    }
    println!("{count} steps");
    ExitCode::SUCCESS
}
