//! What a user may choose about a scheme beyond its name. Each scheme declares its own options, in
//! its folder. Code that reads a command line or a file takes the list from there.
//!
//! A [`Tuning`] holds the choices by name. [`check_options`] is the one place that refuses options
//! that do not fit the scheme.

use crate::SchemeId;
use privet_core::{Error, Reason, Result};
use std::any::Any;
use std::fmt;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

/// An option of one scheme, or of several that give it the same meaning.
#[derive(Debug)]
pub struct SchemeOption {
    /// Its name, in lower case: `partition-records`. One name is one option.
    pub name: &'static str,
    /// The kind of value that it takes.
    pub kind: OptionKind,
    /// Its help text, in a sentence.
    pub help: &'static str,
    /// Another option that it needs.
    pub requires: Option<&'static str>,
    /// Options that choose the same thing in another way.
    pub conflicts_with: &'static [&'static str],
    /// The error text for a scheme without this option, after the scheme's name. `None`: the error
    /// says which schemes have it.
    pub elsewhere: Option<&'static str>,
    /// For an option that servers need: what to do if it is not given.
    pub missing: Option<&'static str>,
}

impl SchemeOption {
    /// An option that does not depend on others.
    pub const fn new(name: &'static str, kind: OptionKind, help: &'static str) -> Self {
        Self {
            name,
            kind,
            help,
            requires: None,
            conflicts_with: &[],
            elsewhere: None,
            missing: None,
        }
    }

    /// What the file at `path` holds, once it is `opened`, for [`OptionKind::File`]. It is checked,
    /// which may take a while.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if it cannot be read;
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it does not hold what it should.
    pub fn read(&self, path: &Path, opened: io::Result<impl io::Read>) -> Result<Value> {
        let OptionKind::File { what, needed, most_bytes, decode } = self.kind else {
            return Err(Error::api_misuse(format!("the option {} names no file", self.name)));
        };
        let mut bytes = Vec::new();
        // One byte more than the maximum is enough to detect a file that is too long.
        let read = opened.and_then(|file| file.take(most_bytes + 1).read_to_end(&mut bytes));
        read.map_err(|error| {
            let path = path.display();
            Error::api_misuse(format!("cannot read {what} {path}: {error}; have one made"))
                .because(needed)
        })?;
        decode(&bytes).map_err(|error| error.within(path.display()))
    }

    /// The schemes that have it.
    pub fn schemes(&self) -> impl Iterator<Item = SchemeId> {
        SchemeId::all().filter(|scheme| scheme.about().has(self.name))
    }
}

/// The kind of value that an option takes.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum OptionKind {
    /// Nothing.
    Flag,
    /// A positive number of bytes or records, which may be large.
    Amount {
        /// The name of the value in help texts.
        value_name: &'static str,
    },
    /// A number of few digits.
    Count {
        /// The name of the value in help texts.
        value_name: &'static str,
        /// The least.
        least: u32,
        /// The most.
        most: u32,
    },
    /// The contents of a file.
    File {
        /// What the file contains, in words: `a reference string`.
        what: &'static str,
        /// The reason of the error if there is no such file.
        needed: Reason,
        /// The most bytes of such a file.
        most_bytes: u64,
        /// Reads and checks its bytes.
        decode: fn(&[u8]) -> Result<Value>,
    },
}

/// Records in a partition, for schemes that cut the table into partitions.
pub static PARTITION_RECORDS: SchemeOption = SchemeOption {
    elsewhere: Some("does not cut the table into partitions, so their size cannot be chosen"),
    ..SchemeOption::new(
        "partition-records",
        OptionKind::Amount { value_name: "S" },
        "Records in each partition (or chunk) of the table; default: by the table's shape. Two \
         servers of one scheme must use the same number",
    )
};

/// The value that was chosen for an option.
#[derive(Clone)]
pub enum Value {
    /// The option was given; it has no value.
    Given,
    /// A number.
    Number(u64),
    /// The contents of a file, as the scheme's own type.
    Object(Arc<dyn Any + Send + Sync>),
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl<T: Any + Send + Sync> From<Arc<T>> for Value {
    fn from(object: Arc<T>) -> Self {
        Self::Object(object)
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given => formatter.write_str("given"),
            Self::Number(number) => write!(formatter, "{number}"),
            Self::Object(_) => formatter.write_str("the contents of a file"),
        }
    }
}

/// The user's choices about a scheme beyond its name. Everything else follows from the table's
/// shape.
#[derive(Clone, Debug, Default)]
pub struct Tuning(Vec<(&'static SchemeOption, Value)>);

impl Tuning {
    /// The same with one more choice. If an option is chosen twice, the last choice counts.
    pub fn with(mut self, option: &'static SchemeOption, value: impl Into<Value>) -> Self {
        self.0.retain(|(chosen, _)| chosen.name != option.name);
        self.0.push((option, value.into()));
        self
    }

    /// The same with one more choice, if there is a value.
    pub fn with_some(self, option: &'static SchemeOption, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(option, value),
            None => self,
        }
    }

    /// The same with one more option that takes no value, if it was given.
    pub fn with_flag(self, option: &'static SchemeOption, given: bool) -> Self {
        self.with_some(option, given.then_some(Value::Given))
    }

    /// Whether `option` was chosen.
    pub fn has(&self, option: &SchemeOption) -> bool {
        self.value(option).is_some()
    }

    /// The number chosen.
    pub fn number(&self, option: &SchemeOption) -> Option<u64> {
        match self.value(option)? {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The number chosen for an [`OptionKind::Count`]. A number beyond 32 bits becomes the largest,
    /// which every bound refuses.
    pub fn count(&self, option: &SchemeOption) -> Option<u32> {
        self.number(option).map(|number| u32::try_from(number).unwrap_or(u32::MAX))
    }

    /// The contents of the chosen file.
    pub fn object<T: Any + Send + Sync>(&self, option: &SchemeOption) -> Option<Arc<T>> {
        match self.value(option)? {
            Value::Object(object) => Arc::clone(object).downcast().ok(),
            _ => None,
        }
    }

    fn value(&self, option: &SchemeOption) -> Option<&Value> {
        self.0.iter().find(|(chosen, _)| chosen.name == option.name).map(|(_, value)| value)
    }

    /// The options that were chosen.
    #[cfg(feature = "servers")]
    pub(super) fn chosen(&self) -> impl Iterator<Item = &'static SchemeOption> {
        self.0.iter().map(|(option, _)| *option)
    }
}

/// Refuses options that a scheme does not have. `None`: there is no scheme, or the table will
/// decide it and it is not known yet.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse), which says whose option it is.
pub fn check_options(
    scheme: Option<SchemeId>,
    chosen: impl IntoIterator<Item = &'static SchemeOption>,
) -> Result<()> {
    for option in chosen {
        if scheme.is_some_and(|scheme| scheme.about().has(option.name)) {
            continue;
        }
        let refusal = match (option.elsewhere, scheme) {
            (Some(words), Some(scheme)) => Error::api_misuse(format!("{scheme} {words}")),
            _ => {
                let names: Vec<&str> = option.schemes().map(SchemeId::name).collect();
                Error::api_misuse(format!(
                    "the option {} is for {} alone: leave it out, or choose {}",
                    option.name,
                    names.join(" and "),
                    names.join(" or ")
                ))
                .because(Reason::OptionOfAnotherScheme)
            }
        };
        return Err(refusal);
    }
    Ok(())
}
