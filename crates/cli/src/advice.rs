//! The flag or command of this program that solves an error.
//!
//! The libraries say what happened and what to do, in words for all their users. This module knows
//! which flag of the command does that, and appends it to their message: `choose one by name
//! (--table)`.

use crate::laboratory;
use crate::printable::printable;
use privet_core::{Error, Reason};
use std::error::Error as StdError;

/// The ways out of an error. The first one counts whose flags the running command has. Text between
/// backquotes is a command of its own and is not checked against the running one. Text that begins
/// with a space or a colon goes on with the message.
fn ways_out(reason: Reason) -> &'static [&'static str] {
    match reason {
        Reason::TableNotChosen | Reason::TableRenamed => &["--table"],
        Reason::TableReplaced | Reason::HintsOfAnotherVersion => &["--accept-new-table"],
        Reason::SchemeReplaced => &["--accept-new-table, or --state"],
        Reason::ContradictedElsewhere => {
            &["--accept-new-table, and `privet state reset --server URL`"]
        }
        Reason::SchemeNotOffered | Reason::OptionOfAnotherScheme => &["--scheme"],
        Reason::NoSchemeVerifies => &["leave out --verified"],
        Reason::PublisherUnknown => &["--accept-new-table, or --publisher"],
        Reason::PublisherDiffers => &["--accept-new-table", "--publisher"],
        Reason::NotPublished => &["--publisher"],
        Reason::NotAuthenticated | Reason::RootDiffers => &["--root"],
        Reason::DigestDiffers => &["--digest"],
        Reason::VersionTooEarly => &["--at-least-epoch"],
        Reason::NotADigest => &["`privet build` and `privet inspect` print it"],
        Reason::TooMuchToDownload => &["--max-download"],
        Reason::TooManyUpdates => &["--max-download, or --accept-new-table"],
        Reason::NothingToCompare => &["leave out --compare-streams"],
        Reason::WrongHalf => &["--compare-streams"],
        Reason::NoKeys => &["--index"],
        Reason::LookedUpByKey => &["--key"],
        Reason::NoAnswerInTime => &["--timeout"],
        Reason::TooSlow => &["--min-rate"],
        Reason::TimeIsUp => &["--max-time"],
        Reason::TooManyTablesRemembered => &["`privet state reset --server URL`, or --state"],
        Reason::UsedByAnotherProcess => &["--state"],
        Reason::HintsUnusable | Reason::HintsEnded | Reason::HintsOfOtherServers => {
            &["`privet state reset`"]
        }
        Reason::NotEncrypted => {
            &["--tls-cert and --tls-key, --listen, or --insecure", "--insecure"]
        }
        Reason::CertificateNotTrusted => &["--ca-file"],
        Reason::ProxyUnusable => &["--proxy"],
        Reason::ReferenceStringNeeded => laboratory::reference_string::WAYS_TO_ONE,
        Reason::PointsNeeded => &["`privet setup points`"],
        Reason::PointsExceedMemory => &["`privet setup points`, or --storage-limit"],
        Reason::PointsFileExceedsMemory => &["--mapped"],
        Reason::NoTableFile => &["`privet build`"],
        Reason::HistoryNotBegun => &["--begin-history"],
        Reason::NothingToChange => {
            &[": --set, --delete, --from, --delete-from or --replace-with; or --compact or \
             --hand-over-to"]
        }
        Reason::EpochInDoubt => &["`privet inspect`"],
        Reason::NotCompacted => &["`privet update --compact`"],
        Reason::OutputExists => &[" with --force"],
        Reason::OutputKept => &["--force does not replace it"],
        Reason::NoKeyColumn => &["--key"],
        Reason::NextKeyNeeded => &["--hand-over-to"],
        Reason::LogLost => &[
            "--begin-history, if no copy is left",
            "`privet update --begin-history`, if no copy is left",
        ],
        Reason::NoPublisherKey => &["`privet keygen`"],
        Reason::NotAPublisher => &["`privet keygen` prints them"],
        Reason::NotARoot => &["`privet build --authenticate` and `privet inspect` print it"],
        Reason::KeyTwice => &["--on-duplicate, or --multi", "--on-duplicate"],
        Reason::EmptyKey => &["--on-empty-key skip"],
        Reason::FormatUnknown => &["--format"],
        Reason::DelimiterUnclear => &["--delimiter"],
        Reason::QuotesUnclear => &["--no-quotes"],
        Reason::HeaderUnclear => &["--no-header"],
        Reason::CommentUnclear => &["--comment"],
        Reason::DoesNotFit => &["`privet build --succeeds`"],
        Reason::ColumnsDiffer => &["--replace"],
        Reason::RangesOverlap => &["--nested"],
        Reason::RangesNested => &["--replace-with"],
        Reason::HintsServeFewer => &["--queries"],
        Reason::OneQueryAtATime => &["leave out --batch"],
        Reason::NoMachine => &["`privet plan --save-machine` writes them"],
        Reason::OneValueForEachKey => &["`privet build --multi --succeeds`"],
        _ => &[],
    }
}

/// The way out of an error with this reason when `command` runs.
pub(crate) fn way_out(reason: Reason, command: &clap::Command) -> Option<&'static str> {
    let has_its_flags = |words: &&&str| flags_here(words).all(|flag| has(command, flag));
    ways_out(reason).iter().find(has_its_flags).copied()
}

/// An error with its causes and the way out, for a person who has typed `command`.
pub(crate) fn told(error: &Error, command: &clap::Command) -> String {
    let mut text = String::new();
    let mut next: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = next {
        let said = error.to_string();
        let said = printable(&said);
        // Messages written for people often quote their cause already.
        if !text.contains(&*said) {
            let before = if text.is_empty() { "" } else { "\n  because: " };
            text.push_str(&format!("{before}{said}"));
        }
        let reason = error.downcast_ref().and_then(Error::reason);
        let words = reason.and_then(|reason| way_out(reason, command));
        let words = words.map(|words| match words.starts_with([' ', ':']) {
            true => words.to_owned(),
            false => format!(" ({words})"),
        });
        text.push_str(&words.filter(|words| !text.contains(words)).unwrap_or_default());
        next = error.source();
    }
    text
}

/// The same without advice on flags, for places where no flag helps, such as the value of a flag.
pub(crate) fn told_anywhere(error: &Error) -> String {
    told(error, &clap::Command::new("privet"))
}

/// The flags in `words` that the running command must have: those outside backquotes.
fn flags_here(words: &str) -> impl Iterator<Item = &str> {
    words.split('`').step_by(2).flat_map(flags)
}

/// The flags in `words`, without their dashes.
fn flags(words: &str) -> impl Iterator<Item = &str> {
    let named = words.split([' ', ',', ';']);
    named.filter_map(|word| word.strip_prefix("--"))
}

fn has(command: &clap::Command, flag: &str) -> bool {
    command.get_arguments().any(|argument| argument.get_long() == Some(flag))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Arguments;
    use clap::CommandFactory as _;

    /// Reasons that no flag and no command of this program can resolve.
    const NO_WAY_OUT: &[Reason] = &[
        // The operators of the servers have to make them agree.
        Reason::ServersDisagree,
        // Trying again helps once the servers have the same version.
        Reason::VersionsDiffer,
        // The message says how many addresses to type.
        Reason::NumberOfServers,
        // Whoever runs the server has to admit the client.
        Reason::NotAdmitted,
        // The message says what is wrong with the key.
        Reason::MalformedKey,
    ];

    /// `command` and all below it.
    fn all(command: &clap::Command) -> Vec<&clap::Command> {
        let below = command.get_subcommands().flat_map(all);
        std::iter::once(command).chain(below).collect()
    }

    /// The command that `line` begins with, and the flags behind it.
    fn typed<'c>(root: &'c clap::Command, line: &str) -> (&'c clap::Command, Vec<String>) {
        let mut words = line.split(' ');
        assert_eq!(words.next(), Some("privet"), "{line}");
        let names = words.take_while(|word| !word.starts_with("--"));
        let command = names.fold(root, |command, name| {
            command.find_subcommand(name).unwrap_or_else(|| panic!("{line}: there is no {name}"))
        });
        (command, flags(line).map(str::to_owned).collect())
    }

    #[test]
    fn every_reason_has_a_way_out_or_is_known_to_have_none() {
        for reason in Reason::ALL {
            let known = NO_WAY_OUT.contains(reason);
            assert_eq!(ways_out(*reason).is_empty(), known, "{reason}");
        }
    }

    #[test]
    fn every_flag_and_command_of_the_advice_is_there() {
        let root = Arguments::command();
        let commands = all(&root);
        for reason in Reason::ALL {
            for words in ways_out(*reason) {
                let taken = |command: &&&clap::Command| way_out(*reason, command) == Some(*words);
                assert!(commands.iter().any(|command| taken(&command)), "{reason}: {words}");
                for line in words.split('`').skip(1).step_by(2) {
                    let (command, flags) = typed(&root, line);
                    for flag in flags {
                        assert!(has(command, &flag), "{reason}: {line} has no --{flag}");
                    }
                }
            }
        }
    }

    #[test]
    fn advice_is_of_the_command_that_runs() {
        let root = Arguments::command();
        let at = |name: &str, reason| way_out(reason, root.find_subcommand(name).unwrap());
        assert_eq!(at("get", Reason::NotEncrypted), Some("--insecure"));
        let at_the_server = Some("--tls-cert and --tls-key, --listen, or --insecure");
        assert_eq!(at("serve", Reason::NotEncrypted), at_the_server);
        assert_eq!(at("get", Reason::PublisherDiffers), Some("--accept-new-table"));
        assert_eq!(at("serve", Reason::PublisherDiffers), Some("--publisher"));
        assert_eq!(at("update", Reason::KeyTwice), Some("--on-duplicate"));
        assert_eq!(at("demo", Reason::NoAnswerInTime), None);
        assert_eq!(at("doctor", Reason::HintsUnusable), Some("`privet state reset`"));
    }

    #[test]
    fn advice_follows_the_message_or_the_cause_that_it_is_for() {
        let root = Arguments::command();
        let get = root.find_subcommand("get").unwrap();
        let chosen = || Error::api_misuse("several; choose").because(Reason::TableNotChosen);
        assert_eq!(told(&chosen(), get), "several; choose (--table)");
        assert_eq!(told(&chosen().within("twice"), get), "twice: several; choose (--table)");
        let failed = |words: &str| Error::unavailable(words).caused_by(chosen());
        assert_eq!(told(&failed("no"), get), "no\n  because: several; choose (--table)");
        let quoted = failed("no: several; choose");
        assert_eq!(told(&quoted, get), "no: several; choose (--table)");
        let both = chosen().caused_by(chosen());
        assert_eq!(told(&both, get), "several; choose (--table)");
        assert_eq!(told_anywhere(&chosen()), "several; choose");
    }
}
