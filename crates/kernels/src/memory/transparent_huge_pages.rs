//! The system's mode of huge pages.

use std::fmt;

/// The system-wide mode of transparent huge pages (Linux).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThpMode {
    /// All large anonymous memory gets huge pages.
    Always,
    /// Memory gets huge pages if its owner asks; [`HugeBuffer`](super::HugeBuffer) asks.
    Madvise,
    /// No memory gets huge pages: random reads from large tables will be several times slower.
    Never,
    /// The mode could not be read: another operating system, or a restricted `/sys`.
    Unknown,
}

impl fmt::Display for ThpMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ThpMode::Always => "always",
            ThpMode::Madvise => "madvise",
            ThpMode::Never => "never",
            ThpMode::Unknown => "unknown",
        })
    }
}

/// Reads the system's mode of transparent huge pages from
/// `/sys/kernel/mm/transparent_hugepage/enabled`.
pub fn transparent_huge_pages() -> ThpMode {
    if cfg!(target_os = "linux") {
        std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled")
            .map_or(ThpMode::Unknown, |text| parse_mode(&text))
    } else {
        ThpMode::Unknown
    }
}

/// The kernel lists all modes and brackets the one in force: `always [madvise] never`.
pub(crate) fn parse_mode(text: &str) -> ThpMode {
    let chosen = text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    match chosen {
        Some("always") => ThpMode::Always,
        Some("madvise") => ThpMode::Madvise,
        Some("never") => ThpMode::Never,
        _ => ThpMode::Unknown,
    }
}
