//! Command line → what to do. Never exits, prints or reads a file.
//!
//! Options are matched as by `commons-cli`'s `DefaultParser` (`ServerUtil#parseCmdLine`), which the original's scripts and
//! manifests rely on: `-cFILE`, `-configFile FILE` and unique beginnings such as `--config FILE` all work, and of several
//! values the first counts.

use std::{error::Error, ffi::OsString, fmt};

use lexopt::{Arg, Parser};

/// What the process was asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invocation {
    /// Start the server.
    Serve(Options),
    /// Print every effective setting, then exit with 0.
    PrintConfig(Options),
    /// Print [`usage`], then exit with 0.
    Help,
}

/// The options that go with a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// `-c`: the file of settings.
    pub config_file: Option<String>,
    /// `-n`: accepted since all commands of the original share it; a name server needs no other.
    pub namesrv_addr: Option<String>,
    /// Arguments that are no options. The original ignores them without a word.
    pub ignored: Vec<String>,
}

/// A command line that cannot be followed: the process prints this and [`usage`], then exits with 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UsageError {
    /// No option has that name.
    UnknownOption(String),
    /// The beginning of a name fits several options.
    AmbiguousOption(String),
    /// The option, named without dashes, needs a value.
    MissingValue(&'static str),
    /// The option, as it was written, takes no value.
    UnexpectedValue(String),
    /// The option's value is not Unicode.
    NotUnicode(&'static str),
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownOption(option) => write!(f, "Unrecognized option: {option}"),
            Self::AmbiguousOption(option) => write!(f, "Ambiguous option: {option}"),
            Self::MissingValue(option) => write!(f, "Missing argument for option: {option}"),
            Self::UnexpectedValue(option) => write!(f, "Option takes no argument: {option}"),
            Self::NotUnicode(option) => {
                write!(f, "Argument is not valid Unicode, option: {option}")
            }
        }
    }
}

impl Error for UsageError {}

/// The text of `-h`, as `commons-cli` prints it, ending in a line break.
#[must_use]
pub fn usage() -> &'static str {
    "\
usage: mqnamesrv [-c <arg>] [-h] [-n <arg>] [-p]
 -c,--configFile <arg>    Name server config properties file
 -h,--help                Print help
 -n,--namesrvAddr <arg>   Name server address list, eg: '192.168.0.1:9876;192.168.0.2:9876'
 -p,--printConfigItem     Print all config items
"
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Flag {
    ConfigFile,
    Help,
    NamesrvAddr,
    PrintConfigItem,
}

struct FlagName {
    flag: Flag,
    short: &'static str,
    long: &'static str,
}

const FLAGS: [FlagName; 4] = [
    FlagName {
        flag: Flag::ConfigFile,
        short: "c",
        long: "configFile",
    },
    FlagName {
        flag: Flag::Help,
        short: "h",
        long: "help",
    },
    FlagName {
        flag: Flag::NamesrvAddr,
        short: "n",
        long: "namesrvAddr",
    },
    FlagName {
        flag: Flag::PrintConfigItem,
        short: "p",
        long: "printConfigItem",
    },
];

/// Reads the arguments, without the program's name.
///
/// # Errors
///
/// An unknown option, or one whose value is missing or too many.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Invocation, UsageError> {
    let mut parser = Parser::from_args(arguments.into_iter().map(with_two_dashes));
    let mut options = Options::default();
    let (mut help, mut print) = (false, false);
    while let Some(argument) = parser.next().map_err(unexpected_value)? {
        let name = match argument {
            Arg::Short(short) => by_short(short)?,
            Arg::Long(long) => by_long(long)?,
            Arg::Value(value) => {
                options.ignored.push(value.to_string_lossy().into_owned());
                continue;
            }
        };
        match name.flag {
            Flag::ConfigFile => keep_first(&mut options.config_file, value(&mut parser, name)?),
            Flag::NamesrvAddr => keep_first(&mut options.namesrv_addr, value(&mut parser, name)?),
            Flag::Help => help = true,
            Flag::PrintConfigItem => print = true,
        }
    }
    Ok(match (help, print) {
        (true, _) => Invocation::Help,
        (false, true) => Invocation::PrintConfig(options),
        (false, false) => Invocation::Serve(options),
    })
}

/// Gives a long name behind a single dash its second one, which `lexopt` needs.
fn with_two_dashes(argument: OsString) -> OsString {
    let Some(rest) = argument.to_str().and_then(|text| text.strip_prefix('-')) else {
        return argument;
    };
    let name = rest.split('=').next().unwrap_or(rest);
    if name.len() > 1 && FLAGS.iter().any(|flag| flag.long == name) {
        format!("--{rest}").into()
    } else {
        argument
    }
}

fn by_short(short: char) -> Result<&'static FlagName, UsageError> {
    let found = FLAGS.iter().find(|name| name.short.starts_with(short));
    found.ok_or_else(|| UsageError::UnknownOption(format!("-{short}")))
}

/// Finds a long name, the short one behind two dashes, or the only long name that begins like that.
fn by_long(long: &str) -> Result<&'static FlagName, UsageError> {
    if let Some(name) = FLAGS
        .iter()
        .find(|name| name.long == long || name.short == long)
    {
        return Ok(name);
    }
    let mut fitting = FLAGS
        .iter()
        .filter(|name| !long.is_empty() && name.long.starts_with(long));
    match (fitting.next(), fitting.next()) {
        (Some(name), None) => Ok(name),
        (Some(_), Some(_)) => Err(UsageError::AmbiguousOption(format!("--{long}"))),
        (None, _) => Err(UsageError::UnknownOption(format!("--{long}"))),
    }
}

/// Takes the value of an option. What looks like another option is none.
fn value(parser: &mut Parser, name: &'static FlagName) -> Result<String, UsageError> {
    let missing = || UsageError::MissingValue(name.short);
    let value = match parser.optional_value() {
        Some(value) => value,
        None => {
            let mut rest = parser.raw_args().map_err(|_| missing())?;
            rest.next_if(|next| !next.to_str().is_some_and(is_option))
                .ok_or_else(missing)?
        }
    };
    value
        .into_string()
        .map_err(|_| UsageError::NotUnicode(name.short))
}

fn is_option(argument: &str) -> bool {
    if argument == "--" {
        return true;
    }
    match (argument.strip_prefix("--"), argument.strip_prefix('-')) {
        (Some(long), _) => by_long(long.split('=').next().unwrap_or(long)).is_ok(),
        (None, Some(bundle)) => bundle
            .chars()
            .next()
            .is_some_and(|short| by_short(short).is_ok()),
        (None, None) => false,
    }
}

fn keep_first(place: &mut Option<String>, value: String) {
    place.get_or_insert(value);
}

/// The only error of `Parser::next`: an option that takes no value was given one by `=`.
fn unexpected_value(error: lexopt::Error) -> UsageError {
    if let lexopt::Error::UnexpectedValue { option, .. } = error {
        return UsageError::UnexpectedValue(option);
    }
    UsageError::UnknownOption(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str) -> Result<Invocation, UsageError> {
        parse(line.split_whitespace().map(OsString::from))
    }

    fn serve(file: &str) -> Result<Invocation, UsageError> {
        Ok(Invocation::Serve(Options {
            config_file: Some(file.to_owned()),
            ..Options::default()
        }))
    }

    #[test]
    fn no_argument_serves() {
        assert_eq!(run(""), Ok(Invocation::Serve(Options::default())));
    }

    #[test]
    fn every_spelling_of_commons_cli_is_understood() {
        for line in [
            "-c f",
            "-cf",
            "-c=f",
            "--configFile f",
            "--configFile=f",
            "-configFile f",
            "-configFile=f",
            "--config f",
            "--c f",
        ] {
            assert_eq!(run(line), serve("f"), "{line}");
        }
    }

    #[test]
    fn of_several_files_the_first_counts() {
        assert_eq!(run("-c a -c b"), serve("a"));
    }

    #[test]
    fn the_address_list_is_accepted_and_kept() {
        let options = Options {
            namesrv_addr: Some("127.0.0.1:9876".to_owned()),
            ..Options::default()
        };
        assert_eq!(
            run("-n 127.0.0.1:9876"),
            Ok(Invocation::Serve(options.clone()))
        );
        assert_eq!(
            run("--namesrvAddr 127.0.0.1:9876 -p"),
            Ok(Invocation::PrintConfig(options))
        );
    }

    #[test]
    fn help_goes_before_printing_and_printing_before_serving() {
        assert_eq!(run("-p"), Ok(Invocation::PrintConfig(Options::default())));
        assert_eq!(run("-ph"), Ok(Invocation::Help));
        assert_eq!(run("--help -c f"), Ok(Invocation::Help));
    }

    #[test]
    fn mistakes_are_named_as_the_original_names_them() {
        let message = |line| run(line).expect_err(line).to_string();
        assert_eq!(message("-x"), "Unrecognized option: -x");
        assert_eq!(message("--port 1"), "Unrecognized option: --port");
        assert_eq!(message("-h --nope"), "Unrecognized option: --nope");
        assert_eq!(message("-c"), "Missing argument for option: c");
        assert_eq!(message("-c -p"), "Missing argument for option: c");
        assert_eq!(message("-n --help"), "Missing argument for option: n");
        assert_eq!(message("--help=yes"), "Option takes no argument: --help");
        assert_eq!(message("-p=yes"), "Option takes no argument: -p");
    }

    #[test]
    fn a_value_may_look_like_an_unknown_option() {
        assert_eq!(run("-c -x.properties"), serve("-x.properties"));
        assert_eq!(run("-c -"), serve("-"));
    }

    #[test]
    fn other_arguments_are_kept_so_that_they_can_be_reported() {
        let options = Options {
            ignored: vec!["f".to_owned(), "-c".to_owned()],
            ..Options::default()
        };
        assert_eq!(run("f -- -c"), Ok(Invocation::Serve(options)));
    }

    #[cfg(unix)]
    #[test]
    fn a_file_name_that_is_not_unicode_is_refused() {
        use std::os::unix::ffi::OsStringExt as _;
        let arguments = ["-c".into(), OsString::from_vec(vec![b'a', 0xFF])];
        assert_eq!(parse(arguments), Err(UsageError::NotUnicode("c")));
    }

    #[test]
    fn the_usage_names_every_option() {
        for FlagName { short, long, .. } in FLAGS {
            assert!(usage().contains(&format!(" -{short},--{long} ")), "{long}");
        }
    }
}
