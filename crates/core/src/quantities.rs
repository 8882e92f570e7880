//! Numbers and sizes as people read them.

/// `1,234,567`
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).unwrap_or_default())
        .collect();
    groups.join(",")
}

/// `12 B`, `12.35 MiB`
pub fn bytes(number: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if number < 1024 {
        return format!("{number} B");
    }
    let mut size = number as f64 / 1024.0;
    let mut unit = 0;
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.2} {}", UNITS[unit])
}

/// `7412c17d…`: the form in which all digests are written.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        let counts = [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")];
        for (number, written) in counts {
            assert_eq!(count(number), written);
        }
        let sizes = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (1_500_000, "1.43 MiB"),
            (u64::MAX, "16.00 EiB"),
        ];
        for (size, written) in sizes {
            assert_eq!(bytes(size), written);
        }
        assert_eq!(hexadecimal(&[0x0a, 0xff]), "0aff");
    }
}
