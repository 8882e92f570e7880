use super::*;
use crate::key_map::ranges::Bounds;

fn directory(points: Points, ranges: &[Range]) -> Directory {
    let directory = Directory::new(points, ranges, false).expect("in order");
    let mut bytes = Vec::new();
    directory.encode(&mut bytes);
    let mut reader = privet_core::codec::Reader::new("a directory", &bytes);
    assert_eq!(Directory::decode(&mut reader, false).expect("just encoded"), directory);
    reader.finish().expect("nothing is left");
    directory
}

/// The range that holds a point, found by trying one after the other.
fn holding(ranges: &[Range], point: u128) -> Option<&Range> {
    ranges.iter().find(|range| range.from <= point && point <= range.to)
}

/// Ranges in ascending order, with or without gaps between them.
fn any_ranges() -> impl Strategy<Value = Vec<Range>> {
    let gap = prop_oneof![2 => Just(0u128), 1 => 1u128..5, 1 => any::<u64>().prop_map(u128::from)];
    let size = prop_oneof![
        2 => (0u32..120).prop_map(|zeros| 1u128 << zeros),
        1 => 1u128..1000,
        1 => any::<u64>().prop_map(|size| u128::from(size) + 1),
    ];
    prop::collection::vec((gap, size), 1..300).prop_map(|parts| {
        let mut after = Some(0u128);
        let mut ranges = Vec::new();
        for (gap, size) in parts {
            let Some(from) = after.and_then(|after| after.checked_add(gap)) else { break };
            let Some(to) = from.checked_add(size - 1) else { break };
            ranges.push(Range { from, to });
            after = to.checked_add(1);
        }
        ranges
    })
}

proptest! {
    #[test]
    fn a_point_has_the_name_of_its_range(ranges in any_ranges(), others in prop::collection::vec(any::<u128>(), 20)) {
        let directory = directory(Points::Numbers, &ranges);
        let around = ranges.iter().flat_map(|range| {
            [range.from.wrapping_sub(1), range.from, range.to, range.to.wrapping_add(1)]
        });
        for point in around.chain(others) {
            let name = directory.name_for(point.to_string().as_bytes());
            match holding(&ranges, point) {
                Some(range) => prop_assert_eq!(name, range.name()),
                None => prop_assert!(ranges.iter().all(|range| range.name() != name)),
            }
        }
    }

    #[test]
    fn no_bytes_panic_and_each_directory_has_one_encoding(bytes in prop::collection::vec(any::<u8>(), 0..80), ranges in 0u32..6) {
        let mut encoded = vec![0];
        encoded.extend_from_slice(&ranges.to_le_bytes());
        encoded.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        encoded.extend_from_slice(&bytes);
        let mut reader = privet_core::codec::Reader::new("a directory", &encoded);
        match Directory::decode(&mut reader, false) {
            Ok(directory) => {
                let mut again = Vec::new();
                directory.encode(&mut again);
                prop_assert_eq!(again, encoded);
            }
            Err(error) => prop_assert_eq!(error.blame(), Blame::InvalidMessage),
        }
    }
}

#[test]
fn ranges_are_written_as_the_module_says() {
    let ranges = [
        Range { from: 0, to: 255 },
        Range { from: 256, to: 256 },
        Range { from: 300, to: 305 },
        Range { from: 306, to: 308 },
        Range { from: 1 << 127, to: u128::MAX },
    ];
    let directory = directory(Points::Numbers, &ranges);
    let gap = (1u128 << 127) - 309;
    let mut expected = vec![8, 0, 128, 43, 1, 1, 129, 0, 1, 128];
    let mut rest = gap;
    while rest >= 128 {
        expected.push(rest as u8 | 128);
        rest >>= 7;
    }
    expected.extend([rest as u8, 127, 0]);
    let mut bytes = Vec::new();
    directory.encode(&mut bytes);
    assert_eq!(&bytes[..13], [&[0, 5, 0, 0, 0, expected.len() as u8][..], &[0; 7]].concat());
    assert_eq!(bytes[13..], expected);
    // One range of all points.
    let all = [Range { from: 0, to: u128::MAX }];
    let mut bytes = Vec::new();
    self::directory(Points::Addresses, &all).encode(&mut bytes);
    assert_eq!(bytes[13..], [129, 128, 0]);
}

/// A program that does not know that ranges may be nested refuses the form of keys by its number.
#[test]
fn nested_ranges_are_a_form_of_their_own() {
    let ranges = [Range { from: 5, to: 9 }];
    for (is_nested, first) in [(false, 1), (true, 3)] {
        let ranges = Some(Directory::new(Points::Numbers, &ranges, is_nested).expect("in order"));
        let form = KeyForm { ranges, ..KeyForm::default() };
        let mut bytes = Vec::new();
        form.encode(&mut bytes);
        assert_eq!(bytes[0], first);
        let mut reader = privet_core::codec::Reader::new("a form", &bytes);
        assert_eq!(KeyForm::decode(&mut reader).expect("just encoded"), form);
        assert_eq!(form.check_edited_alone().is_err(), is_nested);
    }
}

#[test]
fn ranges_that_overlap_or_end_before_they_begin_are_refused() {
    for ranges in [
        &[][..],
        &[Range { from: 2, to: 1 }],
        &[Range { from: 0, to: 5 }, Range { from: 5, to: 6 }],
        &[Range { from: 8, to: 9 }, Range { from: 1, to: 2 }],
        &[Range { from: 0, to: u128::MAX }, Range { from: 0, to: 0 }],
    ] {
        let error = Directory::new(Points::Numbers, ranges, false).expect_err("not ascending");
        assert_eq!(error.blame(), Blame::ApiMisuse, "{ranges:?}");
    }
}

#[test]
fn points_are_read_as_people_write_them() {
    let parse = |points: Points, text: &str| points.parse(text.as_bytes());
    for (text, number) in [("16777216", 1 << 24), (" 7 ", 7), ("1.0.0.0", 1 << 24), ("::7", 7)] {
        assert_eq!(parse(Points::Numbers, text), Some(number), "{text}");
    }
    assert!(parse(Points::SignedNumbers, "-1") < parse(Points::SignedNumbers, "0"));
    assert_eq!(parse(Points::SignedNumbers, &i128::MIN.to_string()), Some(0));
    let mapped = parse(Points::Addresses, "::ffff:1.2.3.4");
    assert_eq!(parse(Points::Addresses, "1.2.3.4"), mapped);
    for text in ["", "-1", "1.5", "1.2.3", "x", "340282366920938463463374607431768211456"] {
        assert_eq!(parse(Points::Numbers, text), None, "{text}");
    }
    assert_eq!(parse(Points::Addresses, "16777216"), None);
    assert_eq!(Points::Addresses.parse(b"\xff"), None);
}

#[test]
fn bounds_are_read_as_rows_have_them() {
    let bounds = |points: Points, text: &str| {
        let (from, until) = text.split_once(" to ").map_or((text, None), |(a, b)| (a, Some(b)));
        let Bounds { from, to } = points.parse_bounds(from, until)?;
        Some((points.text(from), to.map(|to| points.text(to))))
    };
    let both = |from: &str, to: &str| Some((from.to_owned(), Some(to.to_owned())));
    let addresses = Points::Addresses;
    assert_eq!(bounds(addresses, "1.0.0.0/24"), both("1.0.0.0", "1.0.0.255"));
    assert_eq!(bounds(addresses, "1.2.3.4/32"), both("1.2.3.4", "1.2.3.4"));
    assert_eq!(bounds(addresses, "0.0.0.0/0"), both("0.0.0.0", "255.255.255.255"));
    assert_eq!(bounds(addresses, "2001:db8::/127"), both("2001:db8::", "2001:db8::1"));
    assert_eq!(bounds(addresses, "::/0").expect("all").0, "::");
    assert_eq!(bounds(addresses, "1.0.0.1-1.0.0.9"), both("1.0.0.1", "1.0.0.9"));
    assert_eq!(bounds(addresses, "1.0.0.1  to 1.0.0.9"), both("1.0.0.1", "1.0.0.9"));
    assert_eq!(bounds(addresses, "1.0.0.1"), Some(("1.0.0.1".to_owned(), None)));
    for none in ["1.0.0.1/24", "1.0.0.0/33", "1.0.0.0/", "::/129", "5", "1.0.0.0-", ""] {
        assert_eq!(bounds(addresses, none), None, "{none}");
    }
    assert_eq!(bounds(Points::Numbers, "7 to 9"), both("7", "9"));
    for none in ["1.0.0.0 to 1.0.0.9", "-1 to 9", "", " to ", "1 to ", "1-2", "1\x1f2"] {
        assert_eq!(bounds(Points::Numbers, none), None, "{none}");
    }
    assert_eq!(bounds(Points::SignedNumbers, "-9 to -7"), both("-9", "-7"));
}

#[test]
fn a_row_to_edit_names_a_range_that_is_there() {
    let ranges = [Range { from: 5, to: 9 }, Range { from: 10, to: 10 }];
    let directory = directory(Points::Numbers, &ranges);
    let key = |row: &str| {
        let (key, until) = row.split_once(" to ").map_or((row, None), |(a, b)| (a, Some(b)));
        let row = RowKey { key: key.as_bytes(), until: until.map(str::as_bytes) };
        directory.key_of_row(row).ok().flatten().map(|key| key.into_owned())
    };
    assert_eq!(key("5 to 9"), Some(b"5".to_vec()));
    assert_eq!(key("10 to 10"), Some(b"10".to_vec()));
    assert_eq!(key("7"), Some(b"7".to_vec()));
    for other in
        ["5 to 8", "6 to 9", "5 to 10", "4 to 9", "5 to x", "5 to ", "4", "11", "x", "5\x1f9"]
    {
        assert_eq!(key(other), None, "{other}");
    }
}

#[test]
fn a_table_of_ranges_answers_for_every_point_in_them() {
    let ranges: Vec<Range> =
        (0..200).map(|n| Range { from: 1000 + n * 10, to: 1000 + n * 10 + n % 10 }).collect();
    let form = KeyForm { ranges: Some(directory(Points::Numbers, &ranges)), ..KeyForm::default() };
    for kind in KeyMapKind::ALL {
        let pairs: Vec<Pair> = ranges
            .iter()
            .map(|range| (range.name().to_vec(), range.from.to_string().into_bytes()))
            .collect();
        let packed = pack_as(kind, &pairs[..], fixed_seed()).expect("packs");
        let packed = packed.with_key_form(form.clone());
        let key_map = KeyMap::decode(&packed.key_map().encode()).expect("just encoded");
        let records = packed.records(&pairs[..]);
        for point in 990..3010u128 {
            let expected = holding(&ranges, point).map(|range| range.from.to_string().into_bytes());
            assert_eq!(look_up(&key_map, &records, point.to_string().as_bytes()), expected);
        }
        for nonsense in [&b"somewhere"[..], b"", b"\xff", b"-1"] {
            assert_eq!(look_up(&key_map, &records, nonsense), None);
        }

        // Values change; ranges do not.
        let mut editor = Editor::new(&key_map, |number| Ok(records[number as usize].clone()));
        assert_eq!(editor.set(b"1091", b"new").expect("fits"), Effect::Replaced);
        let error = editor.set(b"5", b"new").expect_err("in no range");
        assert_eq!(error.blame(), Blame::ApiMisuse);
        assert_eq!(editor.delete(b"5").expect("nothing to do"), Effect::Absent);
    }
}
