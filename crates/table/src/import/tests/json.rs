//! JSON, by lines and as one array.

use super::*;

#[test]
fn json_values_keep_their_meaning_to_the_last_digit() {
    let text = concat!(
        "\u{feff}{ \"k\" : \"a\" , \"n\" : [ 1.10 , 1e400, -0, 123456789012345678901234567890 ] , \"o\" : { \"x\" : null } }\r\n",
        "\n",
        "{\"k\":17,\"s\":\"\\u00e9\\n \\/ \\ud83d\\ude00 \\\" : , }\",\"t\":true}\n",
        "{\"k\":1.0,\"\\u0061b\":\" spaces  stay \"}\n",
        "{\"k\":false}",
    );
    let rows = json_rows(text, selection(Some("k"), ValueForm::JsonRest)).expect("valid");
    let expected = [
        (1, "a", r#"{"n":[1.10,1e400,-0,123456789012345678901234567890],"o":{"x":null}}"#),
        (3, "17", "{\"s\":\"é\\n / 😀 \\\" : , }\",\"t\":true}"),
        (4, "1.0", r#"{"ab":" spaces  stay "}"#),
        (5, "false", "{}"),
    ];
    assert_eq!(rows, plain(&expected));
}

#[test]
fn a_json_row_may_lack_a_column_but_not_every_row() {
    let text = "{\"k\":1,\"a\":2}\n{\"k\":2,\"b\":3}\n";
    let rows = json_rows(text, selection(Some("k"), columns(&["b", "a"]))).expect("valid");
    assert_eq!(rows, plain(&[(1, "1", r#"{"a":2}"#), (2, "2", r#"{"b":3}"#)]));
    let error = json_rows(text, selection(Some("k"), columns(&["a", "c"]))).expect_err("no c");
    assert_eq!(error, r#"input: there is no column "c"; the columns are "a", "b", "k""#);
}

/// An array of objects is lines of them, however it is written.
#[test]
fn the_elements_of_a_json_array_are_rows() {
    let key = || selection(Some("k"), ValueForm::JsonRest);
    let expected = plain(&[
        (1, "a,]", r#"{"v":[1,{"w":"]"}]}"#),
        (2, "b\"[", r#"{"v":null}"#),
        (3, "c", "{}"),
    ]);
    for text in [
        r#"[{"k":"a,]","v":[1,{"w":"]"}]},{"k":"b\"[","v":null},{"k":"c"}]"#,
        "\u{feff}\n [\n{\"k\": \"a,]\",\r\n \"v\": [1,\n {\"w\": \"]\"}]} ,\n\n \
         {\"k\": \"b\\\"[\", \"v\": null}\n, {\"k\":\"c\"}\n]\n\n",
    ] {
        assert_eq!(json_rows(text, key()).expect("valid"), expected, "{text}");
        let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(read(Format::JsonLines, &wide, key()).expect("valid"), expected);
    }
    assert_eq!(json_rows(" [ ] ", key()).expect("no rows"), []);
    for (text, message) in [
        ("[{\"k\":1},]", "after element 1 of the JSON array: an element is missing beside a comma"),
        ("[,{\"k\":1}]", "after element 0 of the JSON array: an element is missing beside a comma"),
        (
            "[{\"k\":1},{\"k",
            "after element 1 of the JSON array: the array has no end; is the file cut off?",
        ),
        (
            "[{\"k\":1}]\n[{",
            "after element 1 of the JSON array: something stands behind the end of the array",
        ),
        ("[{\"k\":1}\n{\"k\":2}]", "row 1: column 9: not valid JSON: trailing characters"),
        (
            "[{\"k\":1},\n7]",
            "row 2: this is not a JSON object; every row must be one, like {\"name\":\"…\"}",
        ),
        ("[{\"k\":1},{\"k\":2}}]", "row 2: column 8: not valid JSON: trailing characters"),
        (
            "[{\"k\":\"\n\"}]",
            "after element 0 of the JSON array: a string has a line break, which JSON writes as \\n",
        ),
        (
            "[[{\"k\":1}]]",
            "row 1: this is a JSON array; write each of its objects on a line of its own (jq -c '.[][]')",
        ),
    ] {
        assert_eq!(json_rows(text, key()).expect_err(text), format!("input: {message}"));
    }
    // A file may be one line, longer than any row may be.
    let element = format!("{{\"k\":1}}{:1100}", "");
    let text = format!("[{}]", vec![element; 1 << 16].join(","));
    assert!(text.len() > MAX_ROW_BYTES);
    assert_eq!(json_rows(&text, key()).expect("an array").len(), 1 << 16);
}

#[test]
fn json_errors_name_the_line() {
    let key = || selection(Some("k"), ValueForm::JsonRest);
    let not_an_object =
        "input: line 2: this is not a JSON object; every line must be one, like {\"name\":\"…\"}";
    let bad_key = |why: &str| {
        format!(
            "input: line 2: the key (column \"k\") {why}; every row needs a text or a number there"
        )
    };
    for (line, message) in [
        (
            "[1]",
            "input: line 2: this is a JSON array; write each of its objects on a line of its own (jq -c '.[]')"
                .to_owned(),
        ),
        ("17", not_an_object.to_owned()),
        (
            "{\"k\":1",
            "input: line 2: column 6: not valid JSON: EOF while parsing an object; an object stands on one line, whole (jq -c . writes it so)".to_owned(),
        ),
        ("{\"k\":1}}", "input: line 2: column 8: not valid JSON: trailing characters".to_owned()),
        ("{\"k\":01}", "input: line 2: column 7: not valid JSON: invalid number".to_owned()),
        ("{\"k\":2,\"a\":1,\"a\":2}", "input: line 2: the field \"a\" occurs twice".to_owned()),
        (
            "{\"k\":2,\"a\":\"\\ud800\"}",
            "input: line 2: a string is not valid: unexpected end of hex escape".to_owned(),
        ),
        (
            "{\"K\":2}",
            "input: line 2: there is no column \"k\"; the columns are \"K\"; did you mean \"K\"?"
                .to_owned(),
        ),
        ("{\"k\":null}", bad_key("is null")),
        ("{\"k\":[1]}", bad_key("is an array")),
        ("{\"k\":{}}", bad_key("is an object")),
        ("{\"k\":\"\"}", bad_key("is empty")),
    ] {
        let text = format!("{{\"k\":1}}\n{line}\n");
        assert_eq!(json_rows(&text, key()).expect_err(&message), message);
    }
    let error =
        json_rows("{\"k\":1,\"v\":2}\n", selection(Some("k"), raw("v"))).expect_err("a number");
    let message = "input: line 1: the column \"v\" is a number; a raw value must be text or bytes (as JSON, any value will do)";
    assert_eq!(error, message);
    let error = json_rows("{\"k\":1}\n", selection(Some("k"), raw("v"))).expect_err("missing");
    assert_eq!(error, "input: line 1: there is no column \"v\"; the columns are \"k\"");
}
