use super::*;

fn normalized(names: &[&str], key: &str) -> String {
    let normalization = Normalization::from_names(names).expect("known");
    String::from_utf8(normalization.apply(key.as_bytes()).into_owned()).expect("text")
}

#[test]
fn each_step_takes_its_difference_away() {
    for (names, key, expected) in [
        (&["trim"][..], " a b\t\n", "a b"),
        (&["alphanumeric"], "08-00:30 é", "080030é"),
        (&["lower"], "A0É", "a0é"),
        (&["upper"], "a0éß", "A0ÉSS"),
        (&["lower", "trim", "alphanumeric"], " 08-00-aB ", "0800ab"),
        (&["number", "trim"], " 1.50 ", "1.5"),
    ] {
        assert_eq!(normalized(names, key), expected, "{names:?} {key:?}");
    }
    for (key, expected) in [
        ("1.50", "1.5"),
        ("+01.5", "1.5"),
        ("15e-1", "1.5"),
        ("1500E-3", "1.5"),
        ("007", "7"),
        ("-0.0", "0"),
        ("-.5", "-0.5"),
        ("5.", "5"),
        ("1e3", "1000"),
        ("1.2345e2", "123.45"),
        ("0.00120", "0.0012"),
        ("123456789012345678901234567890.10", "123456789012345678901234567890.1"),
        // No numbers.
        ("", ""),
        (".", "."),
        ("1,5", "1,5"),
        ("1e", "1e"),
        ("1e999999999", "1e999999999"),
        ("1e99999999999", "1e99999999999"),
        ("1e-999999999", "1e-999999999"),
        ("٣", "٣"),
        ("--1", "--1"),
    ] {
        assert_eq!(normalized(&["number"], key), expected, "{key:?}");
    }
    let normalization = Normalization::from_names(&["lower", "trim"]).expect("known");
    assert_eq!(normalization.apply(b"\xff A ").as_ref(), b"\xff A ");
    assert_eq!(normalization.names(), ["trim", "lower"]);
    let error = Normalization::from_names(&["lower", "upper"]).expect_err("both");
    assert_eq!(error.message(), "keys are in lower case or in upper case, not both");
    let error = Normalization::from_names(&["Trim"]).expect_err("unknown");
    assert!(error.message().starts_with(r#"keys cannot be normalised by "Trim"; there are trim,"#));
}

/// The number step keeps a number's value, and gives all spellings of a number the same form.
#[test]
fn numbers_keep_their_value() {
    proptest!(|(digits in "[0-9]{1,8}(\\.[0-9]{0,8})?", zeros in 0usize..4, exponent in -4i32..5)| {
        let plain = normalized(&["number"], &digits);
        prop_assert_eq!(plain.parse::<f64>().expect("a number"), digits.parse::<f64>().expect("a number"));
        let padded = format!("+{}{digits}{}", "0".repeat(zeros), if digits.contains('.') { "000" } else { "" });
        prop_assert_eq!(normalized(&["number"], &padded), plain.clone());
        prop_assert_eq!(normalized(&["number"], &plain), plain.clone());
        let moved = normalized(&["number"], &format!("{digits}e{exponent}"));
        prop_assert_eq!(normalized(&["number"], &format!("{moved}e{}", -exponent)), plain);
    });
}

proptest! {
    /// Normalising a second time changes nothing, so an owner's edit and a client's lookup agree.
    #[test]
    fn what_is_normalized_stays_as_it_is(key in "\\PC{0,8}|[ŉİßǰΐﬁⅧ1.e-]{0,6}", bits in 0u8..32) {
        let names: Vec<&str> = (0..5).filter(|step| bits >> step & 1 == 1).map(|step| Normalization::NAMES[step]).collect();
        let Ok(normalization) = Normalization::from_names(&names) else { return Ok(()) };
        let once = normalization.apply(key.as_bytes()).into_owned();
        let twice = normalization.apply(&once).into_owned();
        prop_assert_eq!(twice, once);
    }
}

#[test]
fn keys_that_differ_in_what_does_not_count_are_one_key() {
    let form = KeyForm {
        normalization: Normalization::from_names(&["alphanumeric", "upper"]).expect("known"),
        ranges: None,
    };
    for kind in KeyMapKind::ALL {
        let pairs: Vec<Pair> =
            (0..40).map(|n| (format!("KEY{n}").into_bytes(), vec![n as u8; n])).collect();
        let packed = pack_as(kind, &pairs[..], fixed_seed()).expect("packs");
        let packed = packed.with_key_form(form.clone());
        let key_map = KeyMap::decode(&packed.key_map().encode()).expect("just encoded");
        assert_eq!(&key_map, packed.key_map());
        let records: Vec<Vec<u8>> = (0..key_map.buckets())
            .map(|bucket| {
                let mut record = Vec::new();
                packed.write_record(&pairs[..], bucket, &mut record);
                record
            })
            .collect();
        assert_eq!(look_up(&key_map, &records, b" k-e-y 7."), Some(vec![7; 7]));
        assert_eq!(look_up(&key_map, &records, b"key40"), None);

        // An editor knows them as one key as well.
        let mut editor = Editor::new(&key_map, |number| Ok(records[number as usize].clone()));
        assert_eq!(editor.set(b"key-7", b"another").expect("fits"), Effect::Replaced);
        let edits = editor.finish().expect("readable");
        let mut records = records.clone();
        for (number, record) in edits.records {
            records[number as usize] = record;
        }
        let key_map = edits.key_map.unwrap_or(key_map);
        assert_eq!(key_map.key_form(), &form);
        assert_eq!(look_up(&key_map, &records, b"KEY7"), Some(b"another".to_vec()));
    }
}

#[test]
fn only_known_forms_are_accepted() {
    let pairs: Vec<Pair> = vec![(b"a".to_vec(), b"b".to_vec())];
    let packed = pack_as(KeyMapKind::Buckets, &pairs[..], fixed_seed()).expect("packs");
    let trimmed = Normalization { trim: true, ..Normalization::default() };
    let packed = packed.with_key_form(KeyForm { normalization: trimmed, ..KeyForm::default() });
    let bytes = packed.key_map().encode();
    assert_eq!(&bytes[..2], [4, 0]);
    assert!(bytes.ends_with(&[0, 1]));
    for end in [[0, 0], [0, 6], [0, 32], [2, 0]] {
        let bytes = [&bytes[..bytes.len() - 2], &end].concat();
        let error = KeyMap::decode(&bytes).expect_err("invalid");
        assert_eq!(error.blame(), Blame::InvalidMessage, "{end:?}");
    }
    for len in 0..bytes.len() {
        KeyMap::decode(&bytes[..len]).expect_err("cut off");
    }
}
