use super::*;
use privet_core::codec::Reader;

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
        (&["nfc"], "Cafe\u{301}", "Café"),
        (&["nfc"], "\u{1112}\u{1161}\u{11ab}", "한"),
        (&["fold"], "ΣΑΣ Straße ﬁ", "σασ strasse fi"),
        (&["fold"], "σας", "σασ"),
        // By themselves, each of these steps leaves the other's difference.
        (&["fold"], "CAFE\u{301}", "cafe\u{301}"),
        (&["nfc", "fold"], "CAFE\u{301}", "café"),
        // Put in order, the iota below the letter follows the accent, and folds last.
        (&["nfc", "fold"], "\u{3b1}\u{345}\u{301}", "\u{3ac}\u{3b9}"),
        (&["trim"], "\u{200b}b \u{feff}", "\u{200b}b \u{feff}"),
        (&["trim-invisible"], " \u{200b}a\u{200b}b \u{feff}\u{ad}", "a\u{200b}b"),
        // What changes the look of an emoji stays.
        (&["trim-invisible"], "❤\u{fe0f}", "❤\u{fe0f}"),
        // Letters are composed before their marks could be taken for signs, and after signs are
        // gone. Some letters have no composed form.
        (&["alphanumeric", "nfc"], "a-\u{301}", "a"),
        (&["alphanumeric", "nfc"], "a\u{301}-", "\u{e1}"),
        (&["alphanumeric", "nfc", "lower"], "A\u{301}", "\u{e1}"),
        (&["alphanumeric", "nfc"], "\u{1100}-\u{1161}", "가"),
        (&["alphanumeric", "nfc"], "\u{9dc}", "\u{9a1}"),
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
    assert_eq!(
        error.message(),
        "keys have one case: name one of lower, upper and fold, not several"
    );
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
    fn what_is_normalized_stays_as_it_is(
        key in "\\PC{0,8}|[ŉİßǰΐﬁⅧ1.e-]{0,6}|[aα\u{300}\u{301}\u{316}\u{345}\u{390}ᾳﷺÅ가\u{1100}\u{1161}\u{200b}ς ]{0,8}",
        bits: u8,
    ) {
        let names: Vec<&str> = (0..8).filter(|step| bits >> step & 1 == 1).map(|step| Normalization::NAMES[step]).collect();
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
        ..KeyForm::default()
    };
    for kind in KeyMapKind::ALL {
        let pairs: Vec<Pair> =
            (0..40).map(|n| (format!("KEY{n}").into_bytes(), vec![n as u8; n])).collect();
        let packed = pack_as(kind, &pairs[..], fixed_seed()).expect("packs");
        let packed = packed.with_key_form(form.clone());
        let key_map = KeyMap::decode(&packed.key_map().encode()).expect("just encoded");
        assert_eq!(&key_map, packed.key_map());
        let records = packed.records(&pairs[..]);
        assert_eq!(look_up(&key_map, &records, b" k-e-y 7."), Some(vec![7; 7]));
        assert_eq!(look_up(&key_map, &records, b"key40"), None);

        // An editor knows them as one key as well.
        let mut editor = Editor::new(&key_map, |number| Ok(records[number as usize].clone()));
        assert_eq!(editor.set(b"key-7", b"another").expect("fits"), Effect::Replaced);
        let (changed, new_map) = editor.finish().expect("readable");
        let mut records = records.clone();
        for (number, record) in changed {
            records[number as usize] = record;
        }
        let key_map = new_map.unwrap_or(key_map);
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
    for end in [[0, 0], [0, 6], [0, 66], [0, 68], [2, 0], [2, 3], [3, 0]] {
        let bytes = [&bytes[..bytes.len() - 2], &end].concat();
        let error = KeyMap::decode(&bytes).expect_err("invalid");
        assert_eq!(error.blame(), Blame::InvalidMessage, "{end:?}");
    }
    for len in 0..bytes.len() {
        KeyMap::decode(&bytes[..len]).expect_err("cut off");
    }
}

/// Every character on its own, in every case.
#[test]
fn what_is_normalized_stays_as_it_is_for_each_character() {
    let cases = [&["nfc"][..], &["fold"], &["nfc", "fold"], &["nfc", "lower"], &["nfc", "upper"]];
    let letters = ["alphanumeric"];
    for names in cases.into_iter().flat_map(|case| [case.to_vec(), [case, &letters].concat()]) {
        let normalization = Normalization::from_names(&names).expect("known");
        for char in '\0'..=char::MAX {
            let key = char.to_string();
            let once = normalization.apply(key.as_bytes());
            assert_eq!(normalization.apply(&once), once, "{names:?} {char:?}");
        }
    }
}

#[test]
fn keys_of_bytes_are_read_as_they_are_written() {
    let key = [0, 10, 0xab, 0xff, 0xfb];
    for (format, written, others, malformed) in [
        (
            KeyFormat::Hex,
            "0x000aabfffb",
            &["000AABFFFB", "0X000aabFFfb", " 0x000aabfffb\t"][..],
            ["0xabc", "0xgg", "0x0x00", "häh", "00 0a"],
        ),
        (
            KeyFormat::Base64,
            "AAqr//s=",
            &["AAqr__s", "AAqr//s", "AAqr__s="],
            ["AAqr//s==", "A", "AAqr//t=", "häh", "AA qr"],
        ),
    ] {
        let form = KeyForm { format, ..KeyForm::default() };
        assert_eq!(&*format.write(&key), written.as_bytes());
        for written in [&[written][..], others].concat() {
            assert_eq!(&*form.read(written.as_bytes()).expect(written), key, "{written}");
        }
        for malformed in malformed {
            let error = form.read(malformed.as_bytes()).expect_err(malformed);
            assert_eq!(error.reason(), Some(Reason::MalformedKey), "{format:?} {malformed}");
        }
        let pairs: Vec<Pair> = vec![(key.to_vec(), b"b".to_vec())];
        let packed = pack_as(KeyMapKind::Cuckoo, &pairs[..], fixed_seed()).expect("packs");
        let packed = packed.with_key_form(form.clone());
        let bytes = packed.key_map().encode();
        assert_eq!(&bytes[..2], [4, 0]);
        assert_eq!(bytes[bytes.len() - 2..], [2, format.code()]);
        assert_eq!(KeyMap::decode(&bytes).expect("just encoded").key_form(), &form);
    }
    // No two keys look the same, also if the bytes of one are the text of the other.
    let shown = |format: KeyFormat, key: &[u8]| format.shown(key);
    assert_eq!(shown(KeyFormat::Text, b"0xff"), "\"0xff\"");
    assert_eq!(shown(KeyFormat::Text, b"\xff"), "0xff");
    assert_eq!(shown(KeyFormat::Hex, b"0123456789abcdef"), "0x30313233343536373839616263646566");
    assert_eq!(shown(KeyFormat::Base64, b"text"), "dGV4dA==");
}

#[test]
fn what_is_no_point_is_told_apart_from_what_no_range_holds() {
    let form = |points| {
        let directory =
            Directory::new(points, &[Range { from: 5, to: 9 }], false).expect("a range");
        KeyForm { ranges: Some(directory), ..KeyForm::default() }
    };
    for (points, key, words) in [
        (Points::Addresses, "abc", "this is no address"),
        (Points::Addresses, "", "this is no address"),
        (Points::Addresses, "256.0.0.1", "this is no address"),
        (Points::Addresses, "1.0.0.0/24", "network"),
        (Points::Addresses, "[2001:200::1]", "brackets"),
        (Points::Addresses, "fe80::1%eth0", "zone"),
        (Points::Addresses, "001.000.000.007", "zeros"),
        (Points::Numbers, "-1", "no number"),
        (Points::Numbers, "1.5", "no number"),
        (Points::SignedNumbers, "1.0.0.1", "no whole number"),
    ] {
        let error = form(points).read(key.as_bytes()).expect_err("malformed");
        assert_eq!(error.reason(), Some(Reason::MalformedKey));
        assert!(error.message().contains(words), "{key}: {error}");
    }
    for (points, key) in [
        (Points::Addresses, " 1.0.0.7 "),
        (Points::Addresses, "::7"),
        (Points::Numbers, "7"),
        (Points::Numbers, "1.0.0.7"),
        (Points::SignedNumbers, "-7"),
    ] {
        assert_eq!(&*form(points).read(key.as_bytes()).expect("a point"), key.as_bytes());
    }
}

/// Another program, which has Unicode from elsewhere, makes the same of keys.
#[test]
fn known_answers_for_forms_of_keys() {
    for case in vectors("key_form.json").as_array().expect("a list") {
        let form = bytes(&case["form"]);
        let form = KeyForm::decode(&mut Reader::new("a form", &form)).expect("a form");
        let steps = case["steps"].as_array().expect("a list");
        assert_eq!(form.normalization.names().len(), steps.len(), "{case}");
        let written = case["written"].as_str().expect("text");
        let hashed = form.read(written.as_bytes()).ok().map(|key| form.apply(&key).into_owned());
        let expected = Some(&case["hashed"]).filter(|hashed| !hashed.is_null()).map(bytes);
        assert_eq!(hashed, expected, "{case}");
    }
}
