//! A lookup as one JSON object on one line.

use super::output::FoundValues;
use super::wanted::Wanted;
use crate::printable::{compact_json, printable_json};
use privet_core::{Error, Result};
use privet_table::values::{ValueType, Values};
use serde::Serialize;
use serde_json::value::RawValue;

/// One lookup as a JSON line. A value that is JSON itself stands under `value`, other text under
/// `text`, and other bytes under `hex`. A key that was typed and is no text stands under `key_hex`.
/// If the table can have no such key, `error` says why. Where keys have several values, they stand
/// in a list under `values` if all are JSON, under `texts` if all are text, else under `hexes`.
/// Text of a column of text is never taken for JSON: see [`ReadAs`].
#[derive(Serialize)]
struct LookupLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_hex: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<u64>,
    found: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(flatten)]
    value: Option<ShownValue<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ShownValue<'a> {
    Value(Box<RawValue>),
    Text(&'a str),
    Hex(String),
    Values(Vec<Box<RawValue>>),
    Texts(Vec<&'a str>),
    Hexes(Vec<String>),
}

impl<'a> ShownValue<'a> {
    pub(super) fn of(found: &FoundValues<'a>, reading: ReadAs) -> Self {
        match found.values[..] {
            [value] if !found.is_list => Self::single(value, reading),
            _ => Self::list(found.values.clone(), reading),
        }
    }

    fn single(value: &'a [u8], reading: ReadAs) -> Self {
        match (reading.json_of(value), reading.text_of(value)) {
            (Some(json), _) => Self::Value(json),
            (None, Some(text)) => Self::Text(text),
            (None, None) => Self::Hex(hex_of(value)),
        }
    }

    pub(crate) fn list(values: Vec<&'a [u8]>, reading: ReadAs) -> Self {
        if let Some(values) = values.iter().map(|value| reading.json_of(value)).collect() {
            return Self::Values(values);
        }
        match values.iter().map(|value| reading.text_of(value)).collect() {
            Some(texts) => Self::Texts(texts),
            None => Self::Hexes(values.into_iter().map(hex_of).collect()),
        }
    }
}

/// What a value may be read as. Column types decide, if the table has them, so that a telephone
/// number in a column of text stays text. Otherwise each value shows what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadAs {
    /// JSON, or else text, or else bytes.
    Any,
    /// Text, or else bytes.
    Text,
    Bytes,
}

impl ReadAs {
    /// How to read values, by the table's column types.
    pub(crate) fn of(values: Option<&Values>) -> Self {
        match values.filter(|values| values.is_raw).and_then(|values| values.columns.first()) {
            Some(column) if column.of == ValueType::Text => Self::Text,
            Some(column) if column.of == ValueType::Bytes => Self::Bytes,
            _ => Self::Any,
        }
    }

    /// A value that is JSON, without space between its tokens. So it has no line break.
    pub(super) fn json_of(self, value: &[u8]) -> Option<Box<RawValue>> {
        if self != Self::Any {
            return None;
        }
        let json: &RawValue = serde_json::from_str(self.text_of(value)?).ok()?;
        RawValue::from_string(compact_json(json.get())?).ok()
    }

    fn text_of(self, value: &[u8]) -> Option<&str> {
        std::str::from_utf8(value).ok().filter(|_| self != Self::Bytes)
    }
}

fn hex_of(value: &[u8]) -> String {
    value.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// # Errors
/// [`Blame::Internal`](privet_core::Blame::Internal) if serialisation fails, which nothing that is
/// found makes it do.
pub(super) fn json_line(
    wanted: &Wanted,
    value: Option<ShownValue<'_>>,
    error: Option<&str>,
) -> Result<String> {
    let (key, key_hex, index) = match wanted {
        Wanted::Key(key) => match std::str::from_utf8(key) {
            Ok(text) => (Some(text), None, None),
            Err(_) => (None, Some(hex_of(key)), None),
        },
        Wanted::Index(index) => (None, None, Some(*index)),
    };
    let line = LookupLine { key, key_hex, index, found: value.is_some(), error, value };
    let line = serde_json::to_string(&line)
        .map_err(|error| Error::internal("a value cannot be printed as JSON").caused_by(error))?;
    Ok(printable_json(&line) + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_table::values::ValueColumn;
    use proptest::prelude::*;
    use proptest::test_runner::TestCaseError;

    #[test]
    fn values_are_printed_as_what_they_are() {
        let key = Wanted::Key(b"k".to_vec());
        let line = |value: Option<&'static [u8]>| {
            json_line(&key, value.map(|value| ShownValue::single(value, ReadAs::Any)), None)
                .unwrap()
        };
        assert_eq!(
            line(Some(br#"{"price":1.10}"#)),
            "{\"key\":\"k\",\"found\":true,\"value\":{\"price\":1.10}}\n"
        );
        assert_eq!(
            line(Some(b"plain words")),
            "{\"key\":\"k\",\"found\":true,\"text\":\"plain words\"}\n"
        );
        assert_eq!(line(Some(&[0xff, 0x00])), "{\"key\":\"k\",\"found\":true,\"hex\":\"ff00\"}\n");
        assert_eq!(line(None), "{\"key\":\"k\",\"found\":false}\n");
        assert_eq!(
            json_line(&Wanted::Index(7), Some(ShownValue::single(b"", ReadAs::Any)), None).unwrap(),
            "{\"index\":7,\"found\":true,\"text\":\"\"}\n"
        );
    }

    #[test]
    fn what_a_column_holds_is_told_and_not_guessed() {
        let column = |of| ValueColumn { name: "phone".to_owned(), of };
        let table = |is_raw, of| Values { is_raw, columns: vec![column(of)] };
        let line = |values: Option<&Values>, value: &'static [u8]| {
            let shown = ShownValue::single(value, ReadAs::of(values));
            json_line(&Wanted::Index(7), Some(shown), None).unwrap()
        };
        let (text, bytes) = (table(true, ValueType::Text), table(true, ValueType::Bytes));
        let json = table(false, ValueType::Text);
        for (values, shown) in [
            (None, r#""value":555"#),
            (Some(&text), r#""text":"555""#),
            (Some(&bytes), r#""hex":"353535""#),
            (Some(&json), r#""value":555"#),
        ] {
            let expected = format!("{{\"index\":7,\"found\":true,{shown}}}\n");
            assert_eq!(line(values, b"555"), expected);
        }
        let list = ShownValue::list(vec![b"1", b"[]"], ReadAs::of(Some(&text)));
        let listed = json_line(&Wanted::Index(7), Some(list), None).unwrap();
        assert_eq!(listed, "{\"index\":7,\"found\":true,\"texts\":[\"1\",\"[]\"]}\n");
    }

    #[test]
    fn lists_are_printed_as_what_all_of_their_values_are() {
        let key = Wanted::Key(b"k".to_vec());
        let line = |values: &[&[u8]]| {
            json_line(&key, Some(ShownValue::list(values.to_vec(), ReadAs::Any)), None).unwrap()
        };
        assert_eq!(
            line(&[br#"{"price":1.10}"#, b"2"]),
            "{\"key\":\"k\",\"found\":true,\"values\":[{\"price\":1.10},2]}\n"
        );
        assert_eq!(
            line(&[b"2", b"plain words"]),
            "{\"key\":\"k\",\"found\":true,\"texts\":[\"2\",\"plain words\"]}\n"
        );
        assert_eq!(
            line(&[b"2", &[0xff, 0x00]]),
            "{\"key\":\"k\",\"found\":true,\"hexes\":[\"32\",\"ff00\"]}\n"
        );
        assert_eq!(line(&[b"2"]), "{\"key\":\"k\",\"found\":true,\"values\":[2]}\n");
    }

    /// The key and the values of a line, in whatever form it has them.
    fn read(line: &str) -> (Vec<u8>, Vec<Vec<u8>>) {
        /// A value that is `null` is a value; serde alone would read it as `None`.
        fn present<'de, D: serde::Deserializer<'de>>(
            json: D,
        ) -> std::result::Result<Option<&'de RawValue>, D::Error> {
            serde::Deserialize::deserialize(json).map(Some)
        }
        #[derive(serde::Deserialize)]
        struct Read<'a> {
            key: Option<String>,
            key_hex: Option<String>,
            found: bool,
            #[serde(borrow, default, deserialize_with = "present")]
            value: Option<&'a RawValue>,
            text: Option<String>,
            hex: Option<String>,
            #[serde(borrow)]
            values: Option<Vec<&'a RawValue>>,
            texts: Option<Vec<String>>,
            hexes: Option<Vec<String>>,
        }
        let read: Read<'_> = serde_json::from_str(line).unwrap();
        assert!(read.found);
        let raw = |json: &RawValue| json.get().as_bytes().to_vec();
        let hex = |digits: &String| {
            let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
            (0..digits.len()).step_by(2).map(byte).collect::<Vec<u8>>()
        };
        let mut forms = Vec::new();
        forms.extend(read.value.map(|value| vec![raw(value)]));
        forms.extend(read.text.map(|text| vec![text.into_bytes()]));
        forms.extend(read.hex.map(|digits| vec![hex(&digits)]));
        forms.extend(read.values.map(|values| values.into_iter().map(raw).collect()));
        forms.extend(read.texts.map(|texts| texts.into_iter().map(String::into_bytes).collect()));
        forms.extend(read.hexes.map(|digits| digits.iter().map(hex).collect()));
        assert_eq!(forms.len(), 1, "a line has its values once: {line}");
        let key = read.key.map(String::into_bytes);
        assert!(key.is_none() || read.key_hex.is_none(), "a line has its key once: {line}");
        (key.unwrap_or_else(|| hex(&read.key_hex.unwrap())), forms.remove(0))
    }

    /// JSON in a form to compare: its tokens, with strings decoded.
    fn tokens(json: &str) -> Vec<String> {
        let (mut tokens, mut rest) = (Vec::new(), json);
        while let Some(first) = rest.chars().next() {
            let len = match first {
                ' ' | '\t' | '\n' | '\r' => {
                    rest = &rest[1..];
                    continue;
                }
                '"' => {
                    let mut strings = serde_json::Deserializer::from_str(rest).into_iter();
                    let text: String = strings.next().unwrap().unwrap();
                    let len = strings.byte_offset();
                    tokens.push(format!("text {text}"));
                    rest = &rest[len..];
                    continue;
                }
                '[' | ']' | '{' | '}' | ':' | ',' => 1,
                _ => rest
                    .find(|next: char| !(next.is_ascii_alphanumeric() || "+-.".contains(next)))
                    .unwrap_or(rest.len()),
            };
            tokens.push(rest[..len].to_owned());
            rest = &rest[len..];
        }
        tokens
    }

    /// Checks that the lookup is one line of printable characters, and one object with the key and
    /// these values, whatever they may be read as.
    fn check(key: &[u8], values: &[Vec<u8>]) -> std::result::Result<(), TestCaseError> {
        for reading in [ReadAs::Any, ReadAs::Text, ReadAs::Bytes] {
            check_read(key, values, reading)?;
        }
        Ok(())
    }

    fn check_read(
        key: &[u8],
        values: &[Vec<u8>],
        reading: ReadAs,
    ) -> std::result::Result<(), TestCaseError> {
        let slices: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
        let shown = match slices[..] {
            [single] => ShownValue::single(single, reading),
            _ => ShownValue::list(slices, reading),
        };
        let line = json_line(&Wanted::Key(key.to_vec()), Some(shown), None).unwrap();
        let object = line.strip_suffix('\n').unwrap();
        prop_assert_eq!(&*crate::printable::printable(object), object);
        let (told, read) = read(object);
        prop_assert_eq!(told, key);
        prop_assert_eq!(read.len(), values.len());
        for (read, value) in read.iter().zip(values) {
            let (said, meant) = (String::from_utf8_lossy(read), String::from_utf8_lossy(value));
            prop_assert!(
                read == value || tokens(&said) == tokens(&meant),
                "{} is not {}",
                said,
                meant
            );
        }
        // Other programs must read it too, unless a number is beyond their range.
        if !object.contains(['e', 'E']) {
            prop_assert!(serde_json::from_str::<serde_json::Value>(object).is_ok());
        }
        Ok(())
    }

    /// Pieces from which JSON, near misses and forgeries are made.
    fn pieces() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            proptest::sample::select(vec![
                "{",
                "}",
                "[",
                "]",
                ",",
                ":",
                " ",
                "\n",
                "\r\n",
                "\t",
                "\"",
                "\\",
                "\\u",
                "d83d",
                "\\ude00",
                "\\ud83d",
                "\"a\"",
                "\"a\":",
                "1",
                "-0.10",
                "1e400",
                "null",
                "true",
                "{\"key\":\"victim\",\"found\":true}",
                "\u{2028}",
                "\u{202e}",
                "\u{85}",
                "\x7f",
                "\x1b[2J",
                "\u{feff}",
                "é",
                "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
            ])
            .prop_map(|piece| piece.as_bytes().to_vec()),
            proptest::collection::vec(any::<u8>(), 0..4),
        ];
        proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    /// JSON with white space wherever it may stand.
    fn json() -> impl Strategy<Value = Vec<u8>> {
        let space = || proptest::sample::select(vec!["", " ", "\n", "\r\n\t "]);
        let leaf = prop_oneof![
            proptest::sample::select(vec!["1.10", "-0e+00", "12345678901234567890123", "null"])
                .prop_map(str::to_owned),
            any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
        ];
        let value = leaf.prop_recursive(4, 32, 4, move |inner| {
            let inner = (space(), inner, space());
            let inner = inner.prop_map(|(before, value, after)| format!("{before}{value}{after}"));
            let list = proptest::collection::vec(inner.clone(), 0..4);
            let pairs = proptest::collection::vec(inner, 0..4);
            prop_oneof![
                list.prop_map(|values| format!("[{}]", values.join(","))),
                pairs.prop_map(|values| {
                    // One key, repeated.
                    let pairs: Vec<_> =
                        values.into_iter().map(|value| format!("\n\"k\" :{value}")).collect();
                    format!("{{{}}}", pairs.join(","))
                }),
            ]
        });
        (space(), value, space())
            .prop_map(|(before, value, after)| format!("{before}{value}{after}").into_bytes())
    }

    proptest! {
        #[test]
        fn a_line_is_one_object_that_says_the_value_whatever_it_holds(
            key in proptest::collection::vec(any::<u8>(), 0..8),
            values in proptest::collection::vec(prop_oneof![pieces(), json()], 1..4),
        ) {
            check(&key, &values)?;
        }
    }

    #[test]
    fn null_is_a_value() {
        check(b"k", &[b"null".to_vec()]).unwrap();
        check(b"k", &[b"null".to_vec(), b"null".to_vec()]).unwrap();
    }

    #[test]
    fn a_value_cannot_make_a_line_of_its_own() {
        let key = Wanted::Key(b"k".to_vec());
        let forgery = b"{\"a\":\n{}}".to_vec();
        let line = json_line(&key, Some(ShownValue::single(&forgery, ReadAs::Any)), None).unwrap();
        assert_eq!(line, "{\"key\":\"k\",\"found\":true,\"value\":{\"a\":{}}}\n");
        let forgery = b"[1,\n{\"key\":\"victim\",\"found\":true}\n]".to_vec();
        let line = json_line(&key, Some(ShownValue::single(&forgery, ReadAs::Any)), None).unwrap();
        assert_eq!(line.lines().count(), 1);
        check(b"k", &[forgery]).unwrap();
    }
}
