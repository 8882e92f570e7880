//! Input that is compressed.

use super::*;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, bytes).expect("in memory");
    encoder.finish().expect("in memory")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).expect("in memory")
}

pub(super) type Compress = fn(&[u8]) -> Vec<u8>;
pub(super) const COMPRESSIONS: [(&str, Compress); 2] = [("gzip", gzip), ("zstd", zstd)];

#[test]
fn compressed_input_is_recognised_by_its_content() {
    let csv: String = (0..20_000).map(|number| format!("{number},{}\n", number * 7)).collect();
    let json: String = (0..3).map(|number| format!("{{\"a\":{number},\"b\":1}}\n")).collect();
    let strings = || vec!["x", "y"];
    let parquet = file_of_texts(&[("a", strings()), ("b", strings())]);
    let columns = || selection(Some("a"), ValueForm::JsonRest);
    for (format, bytes) in [
        (Format::Csv, format!("a,b\n{csv}").into_bytes()),
        (Format::Tsv, format!("a\tb\n{}", csv.replace(',', "\t")).into_bytes()),
        (Format::JsonLines, json.into_bytes()),
        (Format::Parquet, parquet),
    ] {
        let expected = read(format, &bytes, columns()).expect("valid");
        for (name, compress) in COMPRESSIONS {
            let whole = read(format, &compress(&bytes), columns());
            assert_eq!(whole.as_ref(), Ok(&expected), "{format:?} in {name}");
            // Several members or frames, with a boundary within a row.
            let (first, second) = bytes.split_at(bytes.len() / 2);
            let parts = [compress(first), compress(second)].concat();
            assert_eq!(read(format, &parts, columns()).as_ref(), Ok(&expected), "{name}");
            // From a file, by any name.
            let directory = tempfile::tempdir().expect("a directory");
            let path = directory.path().join("rows");
            std::fs::write(&path, compress(&bytes)).expect("written");
            let rows = rows_of(Source::path(path).format(format), columns());
            assert_eq!(rows.as_ref(), Ok(&expected), "{format:?} in {name}");
        }
    }
    let skippable = [&b"\x50\x2a\x4d\x18\x02\0\0\0xx"[..], &zstd(b"a\nx\n")].concat();
    let rows = read(Format::Csv, &skippable, selection(Some("a"), ValueForm::JsonRest));
    assert_eq!(rows, Ok(plain(&[(2, "x", "{}")])));
}

#[test]
fn bytes_are_counted_as_the_file_has_them() {
    let csv: String = (0..100_000).map(|number| format!("{number},same\n")).collect();
    for (name, compress) in COMPRESSIONS {
        let bytes = compress(format!("a,b\n{csv}").as_bytes());
        let source = in_memory(bytes.clone()).format(Format::Csv);
        let mut rows = Rows::open(source, selection(None, raw("b"))).expect("valid");
        while rows.next_row().expect("valid").is_some() {
            assert!(rows.bytes_read() <= bytes.len() as u64);
        }
        assert_eq!(rows.bytes_read(), bytes.len() as u64, "{name}");
    }
}

#[test]
fn compressed_input_that_is_cut_off_or_damaged_is_an_error() {
    let rows: String = (0..5000).map(|number| format!("{number},{}\n", number * 7919)).collect();
    let csv = format!("a,b\n{rows}");
    for (name, compress) in COMPRESSIONS {
        let whole = compress(csv.as_bytes());
        for len in [5, 20, whole.len() / 2, whole.len() - 1] {
            let error = read(Format::Csv, &whole[..len], selection(None, raw("b")));
            let error = error.expect_err("cut off");
            assert!(error.starts_with("input: "), "{error}");
            assert!(error.contains(&format!("{name}, and ends too early")), "{len}: {error}");
        }
        let mut damaged = whole.clone();
        damaged[whole.len() / 2] ^= 0x10;
        damaged[whole.len() / 2 + 1] ^= 0x55;
        let error = read(Format::Csv, &damaged, selection(None, raw("b"))).expect_err("damaged");
        // What was decompressed before the damage was found may be invalid CSV.
        assert!(error.contains(name) || error.contains("line "), "{error}");
        let followed = [&whole[..], b"something else"].concat();
        let error = read(Format::Csv, &followed, selection(None, raw("b"))).expect_err("more");
        assert!(error.contains(&format!("{name}, and ")), "{error}");
        let parquet = read(Format::Parquet, &whole[..50], selection(None, raw("b")));
        assert!(parquet.expect_err("cut off").contains("ends too early"));
    }
}

#[test]
fn a_failure_to_read_is_no_damage() {
    struct Fails(Cursor<Vec<u8>>);
    impl Read for Fails {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.read(buffer)? {
                0 => Err(io::Error::other("the cable is out")),
                count => Ok(count),
            }
        }
    }
    let rows: String = (0..5000).map(|number| format!("{number}\n")).collect();
    for (name, compress) in COMPRESSIONS {
        let mut bytes = compress(format!("a\n{rows}").as_bytes());
        bytes.truncate(bytes.len() / 2);
        let source = Source::reader("input", Fails(Cursor::new(bytes))).format(Format::Csv);
        let opened = Rows::open(source, selection(None, raw("a")));
        let error = opened.and_then(|mut rows| {
            loop {
                if rows.next_row()?.is_none() {
                    return Ok(());
                }
            }
        });
        let error = error.expect_err("it fails");
        assert_eq!(error.blame(), Blame::Unavailable, "{name}");
        assert!(error.message().contains("the cable is out"), "{error}");
    }
}

#[test]
fn what_others_have_compressed_is_named() {
    for (bytes, what) in [
        (&b"PK\x03\x04\x14\0\0\0\x08\0"[..], "a ZIP archive"),
        (b"PK\x03\x04\x14\0\0\0\x08\0    [Content_Types].xml", "a spreadsheet's workbook"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0", "an old spreadsheet's workbook"),
        (b"\xfd7zXZ\0\0\x04\xe6\xd6", "compressed with xz"),
        (b"BZh91AY&SY\x50", "compressed with bzip2"),
        (b"SQLite format 3\0", "a SQLite database"),
    ] {
        for format in [Format::Csv, Format::JsonLines, Format::Parquet] {
            let error = read(format, bytes, selection(None, raw("a"))).expect_err("no rows");
            assert!(
                error.starts_with(&format!("input: this is {what}, which is not read; ")),
                "{error}"
            );
        }
        // So it is if its name says nothing, or something else.
        let directory = tempfile::tempdir().expect("a folder");
        for name in ["rows", "rows.csv.xz", "rows.xlsx", "rows.csv"] {
            let path = directory.path().join(name);
            std::fs::write(&path, bytes).expect("written");
            let error =
                rows_of(Source::path(path), selection(None, raw("a"))).expect_err("no rows");
            assert!(error.contains(&format!("this is {what}, which is not read; ")), "{error}");
        }
    }
    let rows = read(Format::Csv, b"BZh9\nx\n", selection(None, raw("BZh9"))).expect("CSV");
    assert_eq!(rows, plain(&[(2, "", "x")]));
}
