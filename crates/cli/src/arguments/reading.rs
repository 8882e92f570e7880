//! How a file of rows is read: what `privet build`, `privet update` and `privet plan` have in
//! common.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use privet_table::Choice;
use privet_table::import::{Delimiter, Format, OnEmptyKey, Types};

/// The heading of these options.
pub(super) const READING: &str = "How files of rows are read";

#[derive(Args)]
pub(crate) struct ReadingArguments {
    /// Format of the files; default: by their names.
    ///
    /// Input that gzip or zstd has compressed is recognised by its content: big.csv.gz is CSV. So
    /// is UTF-16. What another program unpacks comes through standard input: `xz -dc big.csv.xz |
    /// privet build - --format csv -o big.privet`.
    #[arg(long, value_parser = choice(Format::choices()), help_heading = READING)]
    pub(crate) format: Option<Format>,
    /// What separates the cells of a row in CSV; default: a comma, in TSV a tab.
    ///
    /// A single character, such as `;` or `|` (in quotes, for the shell), or `tab`, or
    /// `whitespace`: any number of spaces and tabs. A first line `sep=;`, as spreadsheets write it,
    /// says it too.
    #[arg(long, value_name = "CHARACTER", help_heading = READING)]
    pub(crate) delimiter: Option<Delimiter>,
    /// Quotation marks in CSV are characters like any other.
    ///
    /// As in most dumps of databases with tabs. Without it, a cell that begins with one ends with
    /// one.
    #[arg(long, help_heading = READING, hide_short_help = true)]
    pub(crate) no_quotes: bool,
    /// The first line of CSV is a row, and not the names of the columns.
    ///
    /// Columns then are called by their numbers, from 1, or as --columns says.
    #[arg(long, help_heading = READING)]
    pub(crate) no_header: bool,
    /// Names of the columns, where there is no header
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', requires = "no_header")]
    #[arg(help_heading = READING, hide_short_help = true)]
    pub(crate) columns: Vec<String>,
    /// A row of CSV with more cells than columns is several rows.
    ///
    /// They differ in their last column, which has one of the further cells in each: a line of a
    /// hosts file is a row for each of its names.
    #[arg(long, help_heading = READING, hide_short_help = true)]
    pub(crate) spread: bool,
    /// Leave out lines that begin with this, such as `#` or `//`.
    ///
    /// With `--delimiter whitespace` also the rest of a line.
    #[arg(long, value_name = "PREFIX", value_parser = parse_comment)]
    #[arg(help_heading = READING, hide_short_help = true)]
    pub(crate) comment: Option<String>,
    /// Skip the first N lines, before the header
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    #[arg(help_heading = READING, hide_short_help = true)]
    pub(crate) skip_lines: u64,
    /// What columns of CSV are in JSON: `auto`, or COLUMN=number|boolean|text,…; default: text.
    ///
    /// A number is kept as it is written, and an empty cell becomes null. With `auto` the inputs
    /// are read twice, and a column is a column of numbers if no program writes or reads any of
    /// them otherwise (so 007, 1.50 and long numbers stay text), or of booleans if it has true and
    /// false alone. Both together: `auto,zip=text`. An update knows the types of the table.
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    #[arg(help_heading = READING)]
    pub(crate) types: Vec<Types>,
    /// What to do with a row that has no key.
    ///
    /// It has none where the cell is empty or null.
    #[arg(long, value_parser = choice(OnEmptyKey::CHOICES), default_value = "error")]
    #[arg(value_name = "WHAT")]
    #[arg(help_heading = READING, hide_short_help = true)]
    pub(crate) on_empty_key: OnEmptyKey,
}

/// Takes the names of choices.
pub(super) fn choice<T: Copy + Send + Sync + 'static>(
    choices: impl IntoIterator<Item = Choice<T>>,
) -> impl TypedValueParser<Value = T> {
    let choices: Vec<_> = choices.into_iter().collect();
    let named = choices.iter().map(|one| {
        PossibleValue::new(one.name).help(one.words).aliases(one.other_names.iter().copied())
    });
    PossibleValuesParser::new(named.collect::<Vec<_>>())
        .try_map(move |typed| Choice::named(choices.iter().copied(), &typed))
}

fn parse_comment(typed: &str) -> Result<String, String> {
    match typed.trim() {
        "" => Err("write what comments begin with, such as `#`".to_owned()),
        _ => Ok(typed.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::AsTyped;
    use super::*;

    #[derive(clap::Parser)]
    struct Typed {
        #[command(flatten)]
        reading: AsTyped<ReadingArguments>,
        #[command(flatten)]
        making: AsTyped<super::super::Making>,
    }

    #[test]
    fn what_is_printed_says_what_was_typed() {
        let words = |typed: &[&str]| {
            let program = ["privet"].into_iter().chain(typed.iter().copied());
            let typed = <Typed as clap::Parser>::try_parse_from(program).unwrap();
            [typed.reading.words(), typed.making.words()].concat()
        };
        for nothing in
            [&[][..], &["--skip-lines=0", "--on-empty-key=error", "--on-duplicate=error"]]
        {
            assert!(words(nothing).is_empty(), "{nothing:?}");
        }
        for typed in [
            &["--format=jsonl", "--key=-a b", "--normalize=trim,nfc", "--multi", "--parts=3"][..],
            &["--delimiter=tab", "--no-quotes", "--no-header", "--columns=a,b", "--range-from=a"],
            &["--delimiter=whitespace", "--spread", "--comment=#", "--skip-lines=4", "--key=1"],
            &["--delimiter=;", "--types=auto,a=b=text", "--on-empty-key=skip", "--key=k"],
            &["--key=k", "--key-format=hex", "--on-duplicate=last", "--value=a,b", "--max-value=9"],
            &["--range-from=a", "--range-to=b", "--nested", "--raw-value=v"],
            &["--key=k", "--key-map=cuckoo", "--room=7", "--authenticate"],
        ] {
            let as_two = |word: &str| match word.split_once('=') {
                Some((option, value)) if !value.starts_with('-') => format!("{option} {value}"),
                _ => word.to_owned(),
            };
            let typed_as_two: Vec<_> = typed.iter().map(|word| as_two(word)).collect();
            assert_eq!(words(typed).join(" "), typed_as_two.join(" "));
        }
    }
}
