//! Numbers and sizes as people read and write them.

use std::time::Duration;

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
    format!("{} {}", decimal(size, 2), UNITS[unit])
}

/// `-12.35`: with so many digits behind the point, at least one. Texts of clients in pages have
/// numbers in this form, because what the standard library brings for others is as large as a
/// scheme.
pub fn decimal(number: f64, places: u32) -> String {
    let unit = 10u64.pow(places);
    let parts = (number.abs() * unit as f64).round_ties_even() as u64;
    let sign = if number < 0.0 && parts > 0 { "-" } else { "" };
    format!("{sign}{}.{:0width$}", parts / unit, parts % unit, width = places as usize)
}

/// `30 s`, `0.25 s`
pub fn seconds(time: Duration) -> String {
    let digits = format!("{}.{:06}", time.as_secs(), time.subsec_micros());
    format!("{} s", digits.trim_end_matches('0').trim_end_matches('.'))
}

/// What stands behind a number, in lower case, and how many it stands for.
const SUFFIXES: [(&str, u64); 11] = [
    ("", 1),
    ("k", 1_000),
    ("m", 1_000_000),
    ("g", 1_000_000_000),
    ("t", 1_000_000_000_000),
    ("ki", 1 << 10),
    ("mi", 1 << 20),
    ("gi", 1 << 30),
    ("ti", 1 << 40),
    ("pi", 1 << 50),
    ("ei", 1 << 60),
];

/// The number that somebody typed: `1000000`, `1_000_000`, `2^20`, `5M`, `1.5k`, `64Ki`. `k`, `M`,
/// `G` and `T` are powers of a thousand, `Ki`, `Mi`, `Gi` and so on of 1,024, in letters of either
/// case. `None` if it is no whole number.
pub fn typed_count(text: &str) -> Option<u64> {
    typed(text, false)
}

/// The same for a number of bytes, which may say so: `100 B`, `64k`, `2.38 MiB`. What is written
/// with a fraction is rounded to a byte.
pub fn typed_bytes(text: &str) -> Option<u64> {
    typed(text, true)
}

/// A positive whole number, such as 1000000, 2^20 or 5M.
///
/// # Errors
/// If it is none: what would be one.
pub fn parse_number(text: &str) -> Result<u64, String> {
    parse_number_or_none(text)
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| format!("{text:?} is no positive whole number such as 1000000, 2^20 or 5M"))
}

/// As [`parse_number`], or 0.
///
/// # Errors
/// As there.
pub fn parse_number_or_none(text: &str) -> Result<u64, String> {
    typed_count(text)
        .ok_or_else(|| format!("{text:?} is no whole number such as 0, 1000000, 2^20 or 5M"))
}

/// A number of bytes, such as 100, 2^20, 64k or 1GiB.
///
/// # Errors
/// If it is none: what would be one.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    parse_bytes_or_none(text)
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| format!("{text:?} is no number of bytes such as 100, 2^20, 64k or 1GiB"))
}

/// As [`parse_bytes`], or 0.
///
/// # Errors
/// As there.
pub fn parse_bytes_or_none(text: &str) -> Result<u64, String> {
    typed_bytes(text)
        .ok_or_else(|| format!("{text:?} is no number of bytes such as 0, 100, 64k or 1GiB"))
}

fn typed(text: &str, of_bytes: bool) -> Option<u64> {
    let text = text.trim();
    let ends = |at: char| !(at.is_ascii_digit() || "_.^".contains(at));
    let (number, suffix) = text.split_at(text.find(ends).unwrap_or(text.len()));
    let suffix = suffix.trim_start().to_ascii_lowercase();
    let suffix = match suffix.strip_suffix('b') {
        Some(suffix) if of_bytes => suffix,
        _ => &suffix,
    };
    let (_, times) = SUFFIXES.iter().find(|(known, _)| *known == suffix)?;
    let number = number.replace('_', "");
    if let Some((base, exponent)) = number.split_once('^') {
        let (base, exponent) = (base.parse::<u64>().ok()?, exponent.parse().ok()?);
        return base.checked_pow(exponent)?.checked_mul(*times);
    }
    let Some((whole, fraction)) = number.split_once('.') else {
        return number.parse::<u64>().ok()?.checked_mul(*times);
    };
    // Nine digits are more than anybody types, and exact.
    if fraction.is_empty() || fraction.len() > 9 {
        return None;
    }
    let unit = 10u128.pow(fraction.len() as u32);
    let (whole, fraction) = (whole.parse::<u64>().ok()?, fraction.parse::<u64>().ok()?);
    let parts = (u128::from(whole) * unit + u128::from(fraction)) * u128::from(*times);
    match parts % unit {
        0 => u64::try_from(parts / unit).ok(),
        _ if of_bytes && *times > 1 => u64::try_from((parts + unit / 2) / unit).ok(),
        _ => None,
    }
}

/// `7412c17d…`: the form in which all digests are written.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The 32 bytes that [`hexadecimal`] wrote; `None` if these are not 64 digits.
pub fn from_hexadecimal(text: &str) -> Option<[u8; 32]> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let pairs: &[[u8; 2]; 32] = pairs.try_into().ok()?;
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(pairs) {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_typed_by_people() {
        for (text, number) in [
            ("0", 0),
            ("1_000", 1000),
            ("2^25", 1 << 25),
            ("5M", 5_000_000),
            ("5m", 5_000_000),
            ("1.5k", 1500),
            ("2^10 Ki", 1 << 20),
            ("64 ki", 65_536),
            ("3T", 3_000_000_000_000),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(typed_count(text), Some(number), "{text}");
            assert_eq!(typed_bytes(text), Some(number), "{text}");
        }
        for (text, number) in [
            ("100 B", 100),
            ("100b", 100),
            ("64kB", 64_000),
            ("1GiB", 1 << 30),
            ("2.38 MiB", 2_495_611),
            ("1.5KiB", 1536),
            ("1 EiB", 1 << 60),
        ] {
            assert_eq!(typed_bytes(text), Some(number), "{text}");
            assert_eq!(typed_count(text), None, "{text}");
        }
        for wrong in [
            "",
            "-1",
            "+1",
            "x",
            "k",
            "2^64",
            "2^",
            "^3",
            "1.5",
            "1.",
            ".5",
            "1.5.5",
            "1e6",
            "5 M M",
            "16Ei",
            "99999999999999999999",
            "1,000",
            "5K5",
            "1.0000000001k",
            "5 KBit",
            "1.5 B",
        ] {
            assert_eq!(typed_count(wrong), None, "{wrong}");
            assert_eq!(typed_bytes(wrong), None, "{wrong}");
        }
        // What is printed can be typed.
        for number in [0, 1023, 1024, 565 << 20, 3 << 40] {
            assert_eq!(typed_bytes(&bytes(number)), Some(number));
        }
    }

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
        for (number, written) in [(0.125, "0.12"), (-65.04, "-65.04"), (-0.001, "0.00")] {
            assert_eq!(decimal(number, 2), written);
        }
        for (millis, written) in [(30_000, "30 s"), (100_250, "100.25 s"), (0, "0 s")] {
            assert_eq!(seconds(Duration::from_millis(millis)), written);
        }
        assert_eq!(hexadecimal(&[0x0a, 0xff]), "0aff");
        let digits = hexadecimal(&[0xa5; 32]);
        assert_eq!(from_hexadecimal(&digits), Some([0xa5; 32]));
        for wrong in ["", "a5", &digits[1..], &digits.replace('5', "g"), &format!("{digits}a5")] {
            assert_eq!(from_hexadecimal(wrong), None, "{wrong}");
        }
    }
}
