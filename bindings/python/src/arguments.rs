//! Keyword arguments, named and written as those of the command: text, numbers or lists.

use crate::publish::Input;
use privet_core::quantities::{parse_bytes, parse_number};
use privet_core::{Error, Result};
use privet_table::Choice;
use privet_table::build::{BuildOptions, OnDuplicate, RangeColumns};
use privet_table::import::{Dialect, Format, OnEmptyKey, Source, Types};
use privet_table::key_map::{KeyFormat, KeyMapKind, Normalization};
use privet_table::similar::meant;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Keyword arguments. Each is taken once, and one that is left has no meaning.
pub(crate) struct Arguments {
    given: BTreeMap<String, Said>,
    /// The names that have been asked for.
    known: Vec<String>,
    /// What has been taken, in the command's words; `None` for what the command cannot say.
    words: Vec<Option<String>>,
}

/// What an argument says, if it is neither `None` nor `False`.
enum Said {
    True,
    Text(OsString),
    List(Vec<String>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Arguments {
    type Error = PyErr;

    fn extract(arguments: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let mut given = BTreeMap::new();
        for (name, value) in arguments.extract::<BTreeMap<String, Bound<'py, PyAny>>>()? {
            let said = if let Ok(flag) = value.extract::<Option<bool>>() {
                if flag != Some(true) {
                    continue;
                }
                Said::True
            } else if let Ok(path) = value.extract::<PathBuf>() {
                Said::Text(path.into())
            } else if let Ok(list) = value.extract() {
                Said::List(list)
            } else {
                Said::Text(value.str()?.to_string().into())
            };
            given.insert(name, said);
        }
        Ok(Self { given, known: Vec::new(), words: Vec::new() })
    }
}

/// How an input becomes rows.
pub(crate) struct Reading {
    /// Of files.
    dialect: Dialect,
    /// Of files; default: by their names.
    format: Option<Format>,
    on_empty_key: OnEmptyKey,
    types: Vec<Types>,
}

impl Reading {
    /// The rows of `input`, until `stopped` is true.
    pub(crate) fn source(&self, input: Input, stopped: &Arc<AtomicBool>) -> Source {
        let is_file = matches!(input, Input::File(_));
        let source = input.source(stopped).on_empty_key(self.on_empty_key);
        if !is_file {
            return source;
        }
        let source = source.dialect(self.dialect.clone());
        self.format.into_iter().fold(source, Source::format)
    }
}

impl Arguments {
    /// How files of rows are read.
    pub(crate) fn reading(&mut self) -> Result<Reading> {
        let columns = self.list("columns")?;
        let mut dialect = Dialect {
            delimiter: self.value("delimiter", str::parse)?,
            no_quotes: self.flag("no_quotes")?,
            no_header: self.flag("no_header")?.then_some(columns),
            comment: self.value("comment", |prefix| match prefix.trim() {
                "" => Err("write what comments begin with, such as `#`"),
                _ => Ok(prefix.to_owned()),
            })?,
            spread: self.flag("spread")?,
            ..Dialect::default()
        };
        self.set(&mut dialect.skip_lines, "skip_lines", str::parse)?;
        let mut on_empty_key = OnEmptyKey::Error;
        self.set(&mut on_empty_key, "on_empty_key", one_of(OnEmptyKey::CHOICES))?;
        let types = |types: &str| types.split(',').map(str::parse).collect::<Result<_>>();
        Ok(Reading {
            dialect,
            format: self.value("format", one_of(Format::choices()))?,
            on_empty_key,
            types: self.value("types", types)?.unwrap_or_default(),
        })
    }

    /// What is made of the rows that are read so.
    pub(crate) fn making(&mut self, reading: &Reading) -> Result<BuildOptions> {
        let range_from = self.value("range_from", String::from_str)?;
        let (range_to, nested) = (self.value("range_to", String::from_str)?, self.flag("nested")?);
        if range_from.is_none() && (range_to.is_some() || nested) {
            let name = if nested { "nested" } else { "range_to" };
            return Err(lacking(name, &["range_from"]));
        }
        let mut making = BuildOptions {
            key: self.value("key", String::from_str)?,
            ranges: range_from.map(|from| RangeColumns { from, to: range_to, nested }),
            key_format: self.value("key_format", one_of(KeyFormat::CHOICES))?,
            normalization: Normalization::from_names(&self.list("normalize")?)?,
            value_columns: self.list("value")?,
            raw_value: self.value("raw_value", String::from_str)?,
            max_value: self.value("max_value", parse_bytes)?,
            parts: self.value("parts", within(1..=16))?,
            guess_types: reading.types.contains(&Types::Auto),
            types: Types::named(&reading.types),
            authenticate: self.flag("authenticate")?,
            ..BuildOptions::default()
        };
        self.set(&mut making.key_map, "key_map", one_of(KeyMapKind::CHOICES))?;
        self.set(&mut making.room, "room", parse_number)?;
        let all = Choice { value: OnDuplicate::All, name: "all", ..OnDuplicate::CHOICES[0] };
        let duplicates = OnDuplicate::CHOICES.into_iter().chain([all]);
        self.set(&mut making.on_duplicate, "on_duplicate", one_of(duplicates))?;
        if making.on_duplicate == OnDuplicate::All {
            // The command has another word for it.
            self.words.pop();
            self.words.push(Some("--multi".to_owned()));
        }
        if self.flag("multi")? {
            making.on_duplicate = OnDuplicate::All;
        }
        Ok(making)
    }

    /// Whether an argument is given that has not been taken.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.given.contains_key(name)
    }

    /// That nobody takes an argument which there is.
    pub(crate) fn leave(&mut self, name: String) {
        self.known.push(name);
    }

    /// How many words have been taken.
    pub(crate) fn taken(&self) -> usize {
        self.words.len()
    }

    /// The words of the command that say what has been taken since so many were, if it can say
    /// that.
    pub(crate) fn words_since(&mut self, taken: usize) -> Option<Vec<String>> {
        self.words.split_off(taken).into_iter().collect()
    }

    /// Refuses arguments that nobody asked for.
    pub(crate) fn end(self) -> Result<()> {
        let Some(name) = self.given.keys().next() else { return Ok(()) };
        let meant = did_you_mean(name, self.known.iter().map(String::as_str));
        Err(Error::api_misuse(format!("unexpected argument `{name}` found{meant}")))
    }

    fn take(&mut self, name: &str) -> Option<Said> {
        self.known.push(name.to_owned());
        let said = self.given.remove(name)?;
        let flag = format!("--{}", name.replace('_', "-"));
        self.words.push(match &said {
            Said::True => Some(flag),
            Said::Text(text) => Some(format!("{flag}={}", text.to_string_lossy())),
            // The command takes a name with a comma for two.
            Said::List(list) if list.iter().any(|name| name.contains(',')) => None,
            Said::List(list) => Some(format!("{flag}={}", list.join(","))),
        });
        Some(said)
    }

    pub(crate) fn flag(&mut self, name: &str) -> Result<bool> {
        match self.take(name) {
            None => Ok(false),
            Some(Said::True) => Ok(true),
            Some(_) => {
                Err(Error::api_misuse(format!("`{name}` is True or False, and takes no value")))
            }
        }
    }

    pub(crate) fn path(&mut self, name: &str) -> Result<Option<PathBuf>> {
        match self.take(name) {
            None => Ok(None),
            Some(Said::Text(text)) => Ok(Some(text.into())),
            Some(_) => Err(Error::api_misuse(format!("`{name}` needs a value"))),
        }
    }

    pub(crate) fn list(&mut self, name: &str) -> Result<Vec<String>> {
        match self.take(name) {
            None => Ok(Vec::new()),
            Some(Said::List(list)) => Ok(list),
            Some(Said::Text(text)) => {
                Ok(text.to_string_lossy().split(',').map(str::to_owned).collect())
            }
            Some(Said::True) => Err(Error::api_misuse(format!("`{name}` needs a value"))),
        }
    }

    /// What `read` makes of an argument.
    pub(crate) fn value<T, E: Display>(
        &mut self,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>> {
        let read = |text: PathBuf| {
            let text = text.to_string_lossy();
            read(&text).map_err(|why| {
                Error::api_misuse(format!("invalid value '{text}' for `{name}`: {why}"))
            })
        };
        self.path(name)?.map(read).transpose()
    }

    /// The same in place of a default.
    pub(crate) fn set<T, E: Display>(
        &mut self,
        field: &mut T,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<()> {
        self.value(name, read)?.into_iter().for_each(|value| *field = value);
        Ok(())
    }
}

/// The error if `name` says nothing without one of these, and none is given.
pub(crate) fn lacking(name: &str, needed: &[&str]) -> Error {
    let needed: Vec<String> = needed.iter().map(|name| format!("`{name}`")).collect();
    let needed = needed.join(" or ");
    Error::api_misuse(format!("`{name}` needs an argument that is not provided: {needed}"))
}

/// The error if both are given.
pub(crate) fn apart(one: &str, other: &str) -> Error {
    Error::api_misuse(format!("the argument `{one}` cannot be used with `{other}`"))
}

/// The end of an error about a mistyped name: the `known` one that may have been meant.
pub(crate) fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    meant(name, known).map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default()
}

/// Reads the name of a choice.
pub(crate) fn one_of<T: Copy>(
    choices: impl IntoIterator<Item = Choice<T>>,
) -> impl FnOnce(&str) -> Result<T> {
    move |name| Choice::named(choices, name)
}

/// Reads a number between two bounds.
pub(crate) fn within<T: FromStr + PartialOrd + Display>(
    bounds: RangeInclusive<T>,
) -> impl FnOnce(&str) -> Result<T, String> {
    move |text| {
        let number = text.parse().ok().filter(|number| bounds.contains(number));
        let (least, most) = (bounds.start(), bounds.end());
        number.ok_or_else(|| format!("a number from {least} to {most} is expected"))
    }
}
