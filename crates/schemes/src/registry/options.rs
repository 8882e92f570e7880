//! What a user may choose about a scheme beyond its name. Each scheme declares its own options, in
//! its room; whoever reads a command line or a file learns from that what there is.
//!
//! A [`Tuning`] holds by name what was chosen, and [`check_options`] is the one place that refuses
//! what does not suit.

use crate::SchemeId;
use privet_core::{Error, Reason, Result};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// An option of one scheme, or of several that mean the same by it.
#[derive(Debug)]
pub struct SchemeOption {
    /// Its name, in lower case: `partition-records`. One name is one option.
    pub name: &'static str,
    /// What it takes.
    pub kind: OptionKind,
    /// What it chooses, in a sentence.
    pub help: &'static str,
    /// The option without which it means nothing.
    pub requires: Option<&'static str>,
    /// Options that choose the same thing otherwise.
    pub conflicts_with: &'static [&'static str],
    /// What a scheme that has no such option is told, after its name. Without it: whose option it
    /// is.
    pub elsewhere: Option<&'static str>,
    /// If servers cannot do without it: what to do when it is not given.
    pub missing: Option<&'static str>,
}

impl SchemeOption {
    /// An option that stands for itself.
    pub(crate) const fn new(name: &'static str, kind: OptionKind, help: &'static str) -> Self {
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

    /// The schemes that have it.
    pub fn schemes(&self) -> impl Iterator<Item = SchemeId> {
        SchemeId::ALL.iter().copied().filter(|scheme| scheme.about().has(self.name))
    }
}

/// What an option takes.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum OptionKind {
    /// Nothing.
    Flag,
    /// A positive number, of bytes or records, that may be large.
    Amount {
        /// What stands for it in help texts.
        value_name: &'static str,
    },
    /// A number of few digits.
    Count {
        /// What stands for it in help texts.
        value_name: &'static str,
        /// The least.
        least: u32,
        /// The most.
        most: u32,
    },
    /// What a file holds.
    File {
        /// What that is: `a reference string`.
        what: &'static str,
        /// The reason of the error where there is no such file.
        needed: Reason,
        /// No such file has more bytes.
        most_bytes: u64,
        /// Reads and checks its bytes.
        decode: fn(&[u8]) -> Result<Value>,
    },
}

/// Records in a partition, of schemes that cut the table into such.
pub static PARTITION_RECORDS: SchemeOption = SchemeOption {
    elsewhere: Some("does not cut the table into partitions, so their size cannot be chosen"),
    ..SchemeOption::new(
        "partition-records",
        OptionKind::Amount { value_name: "S" },
        "Records in each partition (or chunk) of the table; default: by the table's shape. Two \
         servers of one scheme have to agree",
    )
};

/// What was chosen of an option.
#[derive(Clone)]
pub enum Value {
    /// That it was.
    Given,
    /// A number.
    Number(u64),
    /// What a file held, as the scheme's own type.
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
            Self::Object(_) => formatter.write_str("what a file held"),
        }
    }
}

/// What a user chose about a scheme beyond its name. What is not chosen follows from the table's
/// shape.
#[derive(Clone, Debug, Default)]
pub struct Tuning(Vec<(&'static SchemeOption, Value)>);

impl Tuning {
    /// The same with a choice more. A choice made twice is the last one.
    pub fn with(mut self, option: &'static SchemeOption, value: impl Into<Value>) -> Self {
        self.0.retain(|(chosen, _)| chosen.name != option.name);
        self.0.push((option, value.into()));
        self
    }

    /// The same with a choice more, if it was made.
    pub fn with_some(self, option: &'static SchemeOption, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(option, value),
            None => self,
        }
    }

    /// The same with an option given that takes no value, if it is.
    pub fn with_flag(self, option: &'static SchemeOption, given: bool) -> Self {
        self.with_some(option, given.then_some(Value::Given))
    }

    /// Whether something was chosen of `option`.
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

    /// The number chosen, of a [`OptionKind::Count`]. One that is larger than any is refused by
    /// whatever bound there is.
    pub fn count(&self, option: &SchemeOption) -> Option<u32> {
        self.number(option).map(|number| u32::try_from(number).unwrap_or(u32::MAX))
    }

    /// What the file chosen held.
    pub fn object<T: Any + Send + Sync>(&self, option: &SchemeOption) -> Option<Arc<T>> {
        match self.value(option)? {
            Value::Object(object) => Arc::clone(object).downcast().ok(),
            _ => None,
        }
    }

    fn value(&self, option: &SchemeOption) -> Option<&Value> {
        self.0.iter().find(|(chosen, _)| chosen.name == option.name).map(|(_, value)| value)
    }

    /// The options of which something was chosen.
    pub(super) fn chosen(&self) -> impl Iterator<Item = &'static SchemeOption> {
        self.0.iter().map(|(option, _)| *option)
    }
}

/// Refuses options that a scheme does not have. `None`: it is no scheme, or one that follows from
/// the table and is not known yet.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse), saying whose option it is.
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
                    "the option {} is for {} alone: leave it away, or choose {}",
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
