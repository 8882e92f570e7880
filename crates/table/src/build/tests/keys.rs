//! Ranges of keys, and keys that are normalised.

use super::*;

/// Looks a key up as a client does, which applies the table's key form to it.
fn found(place: &Place, key: &str) -> Option<String> {
    look_up(&place.open(), key)
}

fn ranges(from: &str, to: Option<&str>) -> BuildOptions {
    let ranges = RangeColumns { from: from.to_owned(), to: to.map(str::to_owned), nested: false };
    BuildOptions { ranges: Some(ranges), ..BuildOptions::default() }
}

#[test]
fn rows_answer_for_ranges_in_every_format_and_way_to_write_them() {
    let place = Place::new();
    let csv = "first,last,c\n1.0.0.0,1.0.0.255,A\n9.0.0.0,9.255.255.255,C\n1.0.1.0,1.0.3.255,B\n";
    let networks = "net,c\n1.0.0.0/24,A\n1.0.1.0-1.0.3.255,B\n9.0.0.0/8,C\n";
    let json = concat!(
        r#"{"first":16777216,"last":16777471,"c":"A"}"#,
        "\n",
        r#"{"first":16777472,"last":16778239,"c":"B"}"#,
        "\n",
        r#"{"first":150994944,"last":167772159,"c":"C"}"#,
    );
    let parquet = file_of_texts(&[
        ("first", vec!["1.0.0.0", "1.0.1.0", "9.0.0.0"]),
        ("last", vec!["1.0.0.255", "1.0.3.255", "9.255.255.255"]),
        ("c", vec!["A", "B", "C"]),
    ]);
    for (name, contents, options) in [
        ("in.csv", csv.as_bytes().to_vec(), ranges("first", Some("last"))),
        ("nets.csv", networks.as_bytes().to_vec(), ranges("net", None)),
        ("in.jsonl", json.as_bytes().to_vec(), ranges("first", Some("last"))),
        ("in.parquet", parquet, ranges("first", Some("last"))),
    ] {
        let report = place.build(&options, place.input(name, contents)).expect(name);
        assert_eq!(report.keys, Some(3));
        for (key, value) in [
            ("1.0.0.0", Some("A")),
            ("1.0.0.255", Some("A")),
            ("1.0.1.0", Some("B")),
            ("1.0.2.77", Some("B")),
            ("1.0.4.0", None),
            ("0.255.255.255", None),
            ("9.8.7.6", Some("C")),
            ("10.0.0.0", None),
            ("somewhere", None),
        ] {
            let value = value.map(|value| format!(r#"{{"c":"{value}"}}"#));
            assert_eq!(found(&place, key), value, "{name} {key}");
        }
    }
    // Without last points, ranges end where the next begins.
    let brackets = "from,rate\n0,10\n10000,20\n-50,0\n";
    place.build(&ranges("from", None), place.input("in.csv", brackets)).expect("valid");
    for (key, rate) in [("-51", None), ("-1", Some(0)), ("9999", Some(10)), ("10000000", Some(20))]
    {
        assert_eq!(found(&place, key), rate.map(|rate| format!(r#"{{"rate":"{rate}"}}"#)), "{key}");
    }
    // Values may repeat the bounds, and a range may have several rows.
    let options = BuildOptions {
        value_columns: vec!["to".into()],
        on_duplicate: OnDuplicate::All,
        ..ranges("from", Some("to"))
    };
    place.build(&options, place.input("in.csv", "from,to\n1,5\n1,5\n7,7\n")).expect("valid");
    let list = place.open();
    let map = list.key_map().expect("by key");
    assert!(map.has_lists());
}

#[test]
fn ranges_that_cannot_be_are_refused_with_their_rows() {
    let place = Place::new();
    for (contents, message) in [
        (
            "a,b\n1,5\n7,9\n4,6\n",
            r#"in.csv: line 2 ("1 to 5") and line 4 ("4 to 6"): the ranges overlap; a key lies in one range at most"#,
        ),
        ("a,b\n1,5\n9,7\n", r#"in.csv: line 3 ("9 to 7"): the range ends before it begins"#),
        (
            "a,b\n1,5\n1.0.0.0,1.0.0.9\n",
            r#"in.csv: line 3: the bounds "1.0.0.0 to 1.0.0.9" are not numbers"#,
        ),
        (
            "a,b\n1.5,2\n",
            r#"in.csv: line 2: the bounds "1.5 to 2" are not whole numbers, or addresses"#,
        ),
    ] {
        let error = place.build(&ranges("a", Some("b")), place.input("in.csv", contents));
        let error = error.expect_err(message).to_string();
        assert!(error.ends_with(message), "{error}");
    }
    let error = place.build(&ranges("a", None), place.input("in.csv", "a\n5\n5\n"));
    assert!(error.expect_err("twice").to_string().contains("occurs twice"), "the same key");
    let both = BuildOptions { key: Some("a".into()), ..ranges("a", None) };
    let error = place.build(&both, place.input("in.csv", "a\n5\n")).expect_err("both");
    assert_eq!(error.blame(), Blame::ApiMisuse);
}

fn nested(from: &str, to: Option<&str>) -> BuildOptions {
    let ranges = RangeColumns { from: from.to_owned(), to: to.map(str::to_owned), nested: true };
    BuildOptions { ranges: Some(ranges), ..BuildOptions::default() }
}

#[test]
fn of_nested_ranges_the_narrowest_answers() {
    let place = Place::new();
    let input = "net,who\n10.0.0.0/8,carrier\n10.1.0.0/16,customer\n10.1.2.0/24,office\n\
                 9.0.0.0/8,whole\n9.0.0.0/9,half\n9.128.0.0/9,half too\n::/0,rest\n";
    let report = place.build(&nested("net", None), place.input("in.csv", input)).expect("nested");
    assert_eq!((report.rows, report.rows_hidden), (6, 1), "the two halves hide the whole");
    for (key, who) in [
        ("10.0.0.0", "carrier"),
        ("10.0.255.255", "carrier"),
        ("10.1.0.0", "customer"),
        ("10.1.1.255", "customer"),
        ("10.1.2.0", "office"),
        ("10.1.2.255", "office"),
        ("10.1.3.0", "customer"),
        ("10.2.0.0", "carrier"),
        ("10.255.255.255", "carrier"),
        ("11.0.0.0", "rest"),
        ("9.1.2.3", "half"),
        ("9.200.2.3", "half too"),
        ("ffff::", "rest"),
    ] {
        assert_eq!(found(&place, key), Some(format!(r#"{{"who":"{who}"}}"#)), "{key}");
    }
    for (contents, message) in [
        (
            "a,b\n1,5\n7,9\n4,6\n",
            r#"line 2 ("1 to 5") and line 4 ("4 to 6"): the ranges overlap, and neither lies in the other"#,
        ),
        (
            "a,b\n1,5\n2,3\n01,5\n",
            r#"line 2 ("1 to 5") and line 4 ("01 to 5"): the ranges are the same; leave one of them out"#,
        ),
    ] {
        let error = place.build(&nested("a", Some("b")), place.input("in.csv", contents));
        let error = error.expect_err(message).to_string();
        assert!(error.ends_with(message), "{error}");
    }
    let error = place.build(&nested("a", None), place.input("in.csv", "a\n1\n"));
    assert!(error.expect_err("open").to_string().contains("does not say where its range ends"));
}

/// Networks within networks, looked up at every border and compared with what trying all gives.
#[test]
fn nested_networks_of_any_kind_answer_as_trying_them_does() {
    type Kind = (&'static str, fn(u128) -> String, u32);
    let kinds: [Kind; 3] = [
        ("IPv4", |at| std::net::Ipv4Addr::from_bits(at as u32).to_string(), 32),
        ("IPv6", |at| std::net::Ipv6Addr::from_bits(at).to_string(), 128),
        ("numbers", |at| at.to_string(), 127),
    ];
    let mut state = 7u64;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % below
    };
    for (name, text, bits) in kinds {
        let (place, last) = (Place::new(), u128::MAX >> (128 - bits));
        // Few bits of each are free, so that many lie in others.
        let mut networks: Vec<(u128, u128)> = Vec::new();
        for _ in 0..60 {
            let free = draw(7) as u32;
            let from = u128::from(draw(128) >> free << free) << (bits - 7);
            let to = from + ((1u128 << free << (bits - 7)) - 1);
            if !networks.contains(&(from, to)) {
                networks.push((from, to));
            }
        }
        let rows = networks.iter().enumerate();
        let rows = rows.map(|(row, (from, to))| format!("{},{},{row}\n", text(*from), text(*to)));
        let input = format!("a,b,row\n{}", rows.collect::<String>());
        place.build(&nested("a", Some("b")), place.input("in.csv", input)).expect(name);
        let table = place.open();
        for (from, to) in &networks {
            for at in [*from, *to, from.saturating_sub(1), to.saturating_add(1).min(last)] {
                let holds = networks.iter().enumerate().filter(|(_, (a, b))| *a <= at && at <= *b);
                let row = holds.min_by_key(|(_, (from, to))| to - from).map(|(row, _)| row);
                let expected = row.map(|row| format!(r#"{{"row":"{row}"}}"#));
                assert_eq!(look_up(&table, &text(at)), expected, "{name} {}", text(at));
            }
        }
    }
}

#[test]
fn keys_are_normalised_for_the_table_and_for_those_who_look_them_up() {
    let place = Place::new();
    let normalization = Normalization::from_names(&["alphanumeric", "upper"]).expect("known");
    let options = BuildOptions { normalization, ..keyed("mac") };
    let input = "mac,v\n08-00-30,a\n0a:1b:2c,b\n";
    place.build(&options, place.input("in.csv", input)).expect("valid");
    for (key, value) in
        [("080030", Some("a")), ("0A1B2C", Some("b")), ("0a-1b-2c", Some("b")), ("0a1b2d", None)]
    {
        assert_eq!(found(&place, key), value.map(|v| format!(r#"{{"v":"{v}"}}"#)), "{key}");
    }
    let error = place.build(&options, place.input("in.csv", "mac,v\n0a-1b,a\n0A1B,b\n"));
    let error = error.expect_err("the same key").to_string();
    assert!(error.contains(r#"line 3: the key "0A1B" occurs twice"#), "{error}");
    let error = place.build(&options, place.input("in.csv", "mac,v\n--,a\n"));
    let error = error.expect_err("nothing is left").to_string();
    assert!(error.contains(r#"line 2: the key "--" is empty"#), "{error}");
}
