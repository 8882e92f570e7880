//! The options of single schemes, as the schemes declare them. They are typed like all others, and
//! are too many for `--help`; with `--scheme NAME` it explains those of one.

use super::{parse_bytes, parse_number, schemes};
use crate::advice;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use privet_schemes::SchemeId;
use privet_schemes::registry::{OptionKind, SchemeOption};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// The heading of what belongs to one scheme.
const HEADING: &str = "Scheme options";

/// What was typed of the options that schemes have; with `POINTS`, of schemes that make points.
#[derive(Default)]
pub(crate) struct SchemeOptions<const POINTS: bool = false>(
    pub(crate) Vec<(&'static SchemeOption, Typed)>,
);

/// What was typed of an option.
#[derive(Clone)]
pub(crate) enum Typed {
    /// That it was.
    Given,
    /// A number.
    Number(u64),
    /// The name of a file.
    File(PathBuf),
}

impl<const POINTS: bool> SchemeOptions<POINTS> {
    /// Whether `option` was typed.
    pub(crate) fn has(&self, option: &SchemeOption) -> bool {
        self.0.iter().any(|(typed, _)| typed.name == option.name)
    }
}

impl<const POINTS: bool> Args for SchemeOptions<POINTS> {
    fn augment_args(command: Command) -> Command {
        let argument = |option: &'static SchemeOption| match POINTS {
            true => explain(argument(option), help_for_some(option)),
            false => argument(option).hide(true),
        };
        command.args(options(POINTS).into_iter().map(argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const POINTS: bool> FromArgMatches for SchemeOptions<POINTS> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let typed = |option: &'static SchemeOption| {
            let typed = match option.kind {
                OptionKind::Amount { .. } => {
                    matches.get_one(option.name).copied().map(Typed::Number)
                }
                OptionKind::Count { .. } => {
                    let number = matches.get_one(option.name).copied();
                    number.map(|number: u32| Typed::Number(number.into()))
                }
                OptionKind::File { .. } => matches.get_one(option.name).cloned().map(Typed::File),
                _ => matches.get_flag(option.name).then_some(Typed::Given),
            };
            typed.map(|typed| (option, typed))
        };
        Ok(Self(options(POINTS).into_iter().filter_map(typed).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The names of all options that schemes have.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    options(false).into_iter().map(|option| option.name)
}

/// The definition in which `--help` explains the options of the scheme that is named beside it.
pub(super) fn explained(command: Command, typed: &[OsString]) -> Command {
    let Some(scheme) = named(typed) else { return command };
    let explain = |command: Command| {
        let own = scheme.about().options.iter();
        own.fold(command, |command, option| {
            command
                .mut_arg(option.name, |argument| self::explain(argument.hide(false), help(option)))
        })
        .before_help(format!("With {scheme}: {}.", scheme.about().summary))
    };
    command.mut_subcommand("serve", explain).mut_subcommand("bench", explain)
}

/// The argument with its help, of which `-h` shows the first sentence.
fn explain(argument: Arg, help: String) -> Arg {
    let argument = argument.help_heading(HEADING);
    let first = [". ", "; "].iter().filter_map(|end| help.find(end)).min();
    match first {
        Some(end) => argument.help(help[..end].to_owned()).long_help(help),
        None => argument.help(help),
    }
}

/// The scheme that is named somewhere in a command line.
fn named(typed: &[OsString]) -> Option<SchemeId> {
    let mut values = typed.iter().map(OsString::as_os_str).zip(typed.iter().skip(1));
    let apart = values.find(|(name, _)| *name == OsStr::new("--scheme")).map(|(_, value)| value);
    let joined = || typed.iter().find_map(|typed| typed.to_str()?.strip_prefix("--scheme="));
    apart.and_then(|value| value.to_str()).or_else(joined)?.parse().ok()
}

/// The options of all schemes, or of those that make points, each once.
fn options(points: bool) -> Vec<&'static SchemeOption> {
    let mut options: Vec<&SchemeOption> = Vec::new();
    for scheme in offered(points) {
        for option in scheme.about().options {
            if !options.iter().any(|known| known.name == option.name) {
                options.push(option);
            }
        }
    }
    options
}

fn offered(points: bool) -> impl Iterator<Item = SchemeId> {
    schemes().filter(move |scheme| !points || crate::laboratory::points::are_made_for(*scheme))
}

/// The help of an option beside those of other schemes that make points.
fn help_for_some(option: &SchemeOption) -> String {
    if offered(true).all(|scheme| scheme.about().has(option.name)) {
        return help(option);
    }
    let schemes: Vec<&str> = option.schemes().map(SchemeId::name).collect();
    format!("For {}. {}", schemes.join(" and "), help(option))
}

/// The help of an option, and how the file that it takes is made.
fn help(option: &SchemeOption) -> String {
    let OptionKind::File { needed, .. } = option.kind else { return option.help.to_owned() };
    let made = advice::way_out(needed, &Command::new("privet"));
    format!("{}{}", option.help, made.map(|made| format!("; {made}")).unwrap_or_default())
}

fn argument(option: &'static SchemeOption) -> Arg {
    let argument = Arg::new(option.name).long(option.name).help(option.help);
    let argument = argument.conflicts_with_all(option.conflicts_with);
    let argument = match option.requires {
        Some(required) => argument.requires(required),
        None => argument,
    };
    match option.kind {
        OptionKind::Amount { value_name: value_name @ "BYTES" } => {
            argument.value_name(value_name).value_parser(parse_bytes)
        }
        OptionKind::Amount { value_name } => {
            argument.value_name(value_name).value_parser(parse_number)
        }
        OptionKind::Count { value_name, least, most } => {
            let range = clap::value_parser!(u32).range(i64::from(least)..=i64::from(most));
            argument.value_name(value_name).value_parser(range)
        }
        OptionKind::File { .. } => {
            argument.value_name("FILE").value_parser(clap::value_parser!(PathBuf))
        }
        _ => argument.action(ArgAction::SetTrue),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn the_scheme_of_a_command_line_is_found_wherever_it_stands() {
        let lines = [
            ("privet serve --help --scheme dpf", Some(SchemeId::Dpf)),
            ("privet bench --scheme=tapir-mt -h", Some(SchemeId::TapirMerkle)),
            ("privet serve --help", None),
            ("privet serve --scheme auto --help", None),
            ("privet serve --help --scheme", None),
        ];
        for (line, scheme) in lines {
            assert_eq!(named(&typed(line)), scheme, "{line}");
        }
    }

    #[test]
    fn an_option_of_one_name_means_one_thing() {
        for scheme in privet_laboratory::all() {
            for option in scheme.about().options {
                let known = options(false).into_iter().find(|known| known.name == option.name);
                assert!(std::ptr::eq(known.unwrap(), *option), "{scheme}, --{}", option.name);
            }
        }
    }
}
