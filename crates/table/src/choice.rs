//! Things that people choose by name: in a library by the value, elsewhere by what they type.

use privet_core::{Error, Result};

/// One of a few things to choose from.
#[derive(Clone, Copy, Debug)]
pub struct Choice<T> {
    /// What is chosen.
    pub value: T,
    /// What it is called.
    pub name: &'static str,
    /// What it is called besides.
    pub other_names: &'static [&'static str],
    /// What it means, in a few words.
    pub words: &'static str,
}

impl<T: Copy> Choice<T> {
    /// What `name` stands for among `choices`.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if it is none of them. The message lists
    /// them.
    pub fn named(choices: impl IntoIterator<Item = Self>, name: &str) -> Result<T> {
        let mut names = Vec::new();
        for choice in choices {
            if choice.name == name || choice.other_names.contains(&name) {
                return Ok(choice.value);
            }
            names.push(choice.name);
        }
        Err(Error::api_misuse(format!("{name:?} is none of {}", names.join(", "))))
    }

    /// A choice of one name.
    pub const fn new(value: T, name: &'static str, words: &'static str) -> Self {
        Self { value, name, other_names: &[], words }
    }

    /// With other names.
    #[cfg(feature = "files")]
    pub(crate) const fn or(self, other_names: &'static [&'static str]) -> Self {
        Self { other_names, ..self }
    }
}

/// The name of `value` among `choices`.
pub(crate) fn name_of<T: PartialEq>(choices: &[Choice<T>], value: &T) -> &'static str {
    choices.iter().find(|choice| choice.value == *value).map_or("", |choice| choice.name)
}
