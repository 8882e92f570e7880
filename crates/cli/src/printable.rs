//! Makes text from others harmless for a terminal or for JSON.
//!
//! Some characters make a terminal act: it moves the cursor, erases what was printed, or changes
//! the order of what follows. Neither a server nor the author of a table may send such commands, or
//! end the line that their text is in. (If a line is longer than the screen is wide, nobody can
//! tell where the screen begins the next.) So everything that the command prints for people passes
//! through here. Only values that are piped to another program, or asked for with `--raw`, are
//! written as they are.

use std::borrow::Cow;
use std::fmt::Write as _;

/// A value with brackets nested deeper than this counts as text and not as JSON, since many
/// programs refuse more than 128.
const MAX_DEPTH: usize = 100;

/// One line of text in which everything that a terminal acts on is escaped, such as `\n` or
/// `\u{202e}`.
pub fn printable(text: &str) -> Cow<'_, str> {
    match text.chars().any(is_active) {
        false => Cow::Borrowed(text),
        true => Cow::Owned(text.chars().fold(String::new(), |mut out, character| {
            push(&mut out, character);
            out
        })),
    }
}

/// The same for several lines. The line breaks stay.
pub fn printable_lines(text: &str) -> String {
    text.split('\n').map(printable).collect::<Vec<_>>().join("\n")
}

/// The same for bytes. Those that are not text are escaped too, such as `\xff`. With `lines`, tabs
/// and line breaks stay, and each further line is indented, so that it cannot look like a line of
/// the command's own.
pub(crate) fn printable_bytes(bytes: &[u8], lines: bool) -> String {
    let mut out = String::new();
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\t' if lines => out.push(character),
                '\n' if lines => out.push_str("\n  "),
                _ => push(&mut out, character),
            }
        }
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

/// The same JSON with only printable characters. The others can only be in strings, and are escaped
/// there.
pub(crate) fn printable_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        match is_active(character) {
            false => out.push(character),
            true => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out
}

/// Valid JSON without the space between its tokens. Tokens keep their exact form: the digits of
/// numbers, the order of keys, and repeated keys. `None` if other programs might refuse it, because
/// brackets are nested too deep or a string has half of a surrogate pair.
pub(crate) fn compact_json(json: &str) -> Option<String> {
    let mut out = String::with_capacity(json.len());
    let mut depth = 0usize;
    let mut rest = json.chars();
    while let Some(character) = rest.next() {
        match character {
            ' ' | '\t' | '\n' | '\r' => continue,
            '"' => {
                let text = rest.as_str();
                let len = string_len(text)?;
                out.push('"');
                out.push_str(&text[..len]);
                rest = text[len..].chars();
                continue;
            }
            '[' | '{' => depth += 1,
            ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return None;
        }
        out.push(character);
    }
    Some(out)
}

/// The length of the rest of a string, including its closing quotation mark. `None` if it has half
/// of a surrogate pair, or no end.
fn string_len(text: &str) -> Option<usize> {
    let mut escaped = false;
    let end = text.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })?;
    let token = || format!("\"{}", &text[..=end]);
    let is_whole = !text[..end].contains("\\u") || serde_json::from_str::<String>(&token()).is_ok();
    is_whole.then_some(end + 1)
}

fn push(out: &mut String, character: char) {
    match is_active(character) {
        true => out.extend(character.escape_default()),
        false => out.push(character),
    }
}

/// Whether a terminal acts on a character or does not show it: control characters, line breaks,
/// characters that change the direction of writing, and invisible ones. (Joiners of scripts and
/// emoji, and the variation selectors U+FE00 to U+FE0F, are not among them.)
fn is_active(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180e}'
            | '\u{200b}'
            | '\u{200e}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_a_terminal_is_escaped_and_the_rest_is_not() {
        let harmless = "ada ß 語 👩\u{200d}👩 \\ \"quoted\"";
        assert!(matches!(printable(harmless), Cow::Borrowed(_)));
        assert_eq!(printable("a\x1b[2Jb\rc\nd\te"), "a\\u{1b}[2Jb\\rc\\nd\\te");
        for active in "\0\u{7f}\u{80}\u{85}\u{9b}\u{61c}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\
            \u{202e}\u{2066}\u{2069}\u{feff}\u{ad}\u{3164}\u{e0100}"
            .chars()
        {
            assert!(printable(&format!("a{active}b")).starts_with("a\\"), "{active:?}");
            let json = printable_json(&format!("\"{active}\""));
            assert!(json.is_ascii(), "{json}");
        }
        assert_eq!(printable_json("\"\u{e0041}\""), "\"\\udb40\\udc41\"");
        assert_eq!(printable_bytes(b"a\xff\x9b\nb\t\x1b", false), "a\\xff\\x9b\\nb\\t\\u{1b}");
        assert_eq!(printable_bytes(b"a\nb\t\x1b", true), "a\n  b\t\\u{1b}");
        assert_eq!(printable_lines("a\x07\nb"), "a\\u{7}\nb");
    }

    #[test]
    fn compact_json_keeps_every_token() {
        let json = "{ \"a\" : [ 1.10 , -0e+00, 123456789012345678901234567890 ],\n\t\"a\": \" \\n \\\" \\u00e9\" , \"\" : { } }";
        let compact =
            r#"{"a":[1.10,-0e+00,123456789012345678901234567890],"a":" \n \" \u00e9","":{}}"#;
        assert_eq!(compact_json(json).as_deref(), Some(compact));
        assert_eq!(compact_json(r#""\ud83d\ude00""#).as_deref(), Some(r#""\ud83d\ude00""#));
        for half in [r#""\ud83d""#, r#""\ude00""#, r#""\ud83d\ud83d""#, r#""\ud83dx\ude00""#] {
            assert_eq!(compact_json(half), None, "{half}");
        }
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert_eq!(compact_json(&nested(100)), Some(nested(100)));
        assert_eq!(compact_json(&nested(101)), None);
    }
}
