//! The options of a scheme that a user chooses: from what was typed to what the registry takes.

use crate::arguments::{SchemeOptions, Typed};
use crate::display;
use privet_core::{Error, Result};
use privet_schemes::SchemeId;
use privet_schemes::registry::{OptionKind, SchemeOption, Tuning, Value, check_options};
use std::fs::File;
use std::path::Path;

impl<const POINTS: bool> SchemeOptions<POINTS> {
    /// Reads the files that are named. `scheme` is the scheme that the options are for, or `None`
    /// if it is not known or there is none.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if an option was typed that the scheme
    /// does not have, or a file cannot be read;
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it does not hold what it should.
    pub(crate) fn read(&self, scheme: Option<SchemeId>) -> Result<Tuning> {
        // An option with an error text of its own is checked by the plan, whose error names the
        // table.
        let typed = self.0.iter().map(|(option, _)| *option);
        check_options(scheme, typed.filter(|option| option.elsewhere.is_none()))?;
        self.0.iter().try_fold(Tuning::default(), |tuning, (option, typed)| {
            let value = match typed {
                Typed::Given => Value::Given,
                Typed::Number(number) => (*number).into(),
                Typed::File(path) => read(option, path)?,
            };
            Ok(tuning.with(option, value))
        })
    }

    /// The same for a server, which needs every mandatory option of its scheme.
    ///
    /// # Errors
    /// As [`read`](Self::read), and if such an option is missing.
    pub(crate) fn read_all(&self, scheme: Option<SchemeId>) -> Result<Tuning> {
        let options = scheme.map_or(&[][..], |scheme| scheme.about().options);
        let mut missing = options.iter().filter(|option| !self.has(option));
        match missing.find_map(|option| lacking(option)) {
            Some(error) => Err(error),
            None => self.read(scheme),
        }
    }
}

/// The error for a missing `option`, if a server cannot do without it.
fn lacking(option: &SchemeOption) -> Option<Error> {
    let error = Error::api_misuse(option.missing?);
    Some(match option.kind {
        OptionKind::File { needed, .. } => error.because(needed),
        _ => error,
    })
}

/// Reads and checks the file that an option names, which may take a while.
fn read(option: &SchemeOption, path: &Path) -> Result<Value> {
    let _checking = match option.kind {
        OptionKind::File { what, .. } => Some(display::working(&format!("checking {what}"))),
        _ => None,
    };
    option.read(path, File::open(path))
}
