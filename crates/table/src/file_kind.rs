//! Recognises the kind of a Privet file by its first bytes, so that no command overwrites a file of
//! one kind with another.

use crate::snapshot;
use crate::update_log;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// The longest of these prefixes. No more is read: in a key file, secret bytes follow.
const LONGEST: usize = update_log::SECRET_KEY_PREFIX.len();

/// The kinds of files that tables and their owners have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A table: [`Snapshot`](crate::snapshot::Snapshot).
    Table,
    /// The updates of a table: [`UpdateLog`](crate::update_log::UpdateLog).
    UpdateLog,
    /// Data that servers of some schemes compute of a table, once for many starts.
    Points,
    /// A publisher's secret key: [`PublisherKey`](crate::update_log::PublisherKey).
    PublisherKey,
    /// Another file of Privet's, such as what a scheme for study needs.
    Other,
}

impl FileKind {
    /// How files of [`Points`](Self::Points) begin.
    pub const POINTS_MAGIC: [u8; 8] = *b"\x89PRVP\r\n\x1a";

    /// The kind of the file at `path`, by its prefix alone. `None` for other files, and for what
    /// cannot be read or is not a regular file.
    pub fn of(path: &Path) -> Option<Self> {
        if !path.is_file() {
            return None;
        }
        let mut beginning = Vec::with_capacity(LONGEST);
        File::open(path).ok()?.take(LONGEST as u64).read_to_end(&mut beginning).ok()?;
        let kinds: [(&[u8], Self); 5] = [
            (&snapshot::MAGIC, Self::Table),
            (&update_log::LOG_MAGIC, Self::UpdateLog),
            (&Self::POINTS_MAGIC, Self::Points),
            (update_log::SECRET_KEY_PREFIX.as_bytes(), Self::PublisherKey),
            (b"PRIVETRS", Self::Other),
        ];
        let found = kinds.into_iter().find(|(magic, _)| beginning.starts_with(magic));
        found.map(|(_, kind)| kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::update_log::PublisherKey;

    #[test]
    fn a_file_is_known_by_its_beginning() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        let key = PublisherKey::generate().expect("randomness");
        key.create_file(&path("key")).expect("writable");
        assert_eq!(FileKind::of(&path("key")), Some(FileKind::PublisherKey));
        for (beginning, kind) in [
            (&snapshot::MAGIC[..], Some(FileKind::Table)),
            (&update_log::LOG_MAGIC, Some(FileKind::UpdateLog)),
            (&FileKind::POINTS_MAGIC, Some(FileKind::Points)),
            (b"PRIVETRS", Some(FileKind::Other)),
            (&snapshot::MAGIC[..7], None),
            (b"name,phone\n", None),
            (b"", None),
        ] {
            std::fs::write(path("file"), beginning).expect("writable");
            assert_eq!(FileKind::of(&path("file")), kind, "{beginning:?}");
        }
        assert_eq!(FileKind::of(directory.path()), None);
        assert_eq!(FileKind::of(&path("missing")), None);
    }
}
