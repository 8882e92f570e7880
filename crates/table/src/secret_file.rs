//! Files that hold a secret, and who can read them.

use std::fs::File;
use std::io;

/// Whose reading makes a secret known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// Anybody but the file's owner.
    All,
    /// Anybody but the file's owner and group. A service manager that hands a secret to a service
    /// does so by the group, or by an access list, which shows as permissions of the group.
    OutsideGroup,
}

/// Whether `others` have any rights to the file. Always false where the system knows none.
///
/// # Errors
/// If the system does not know.
pub fn is_open_to(file: &File, others: Others) -> io::Result<bool> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let rights = match others {
            Others::All => 0o077,
            Others::OutsideGroup => 0o007,
        };
        Ok(file.metadata()?.permissions().mode() & rights != 0)
    }
    #[cfg(not(unix))]
    {
        let _ = (file, others);
        Ok(false)
    }
}
