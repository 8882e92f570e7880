//! Bytes on their way to text: compression, encodings.

use super::compression::COMPRESSIONS;
use super::*;

#[test]
fn padded_and_several_members_of_gzip_are_read_to_their_end() {
    let gzip = |text: &str| COMPRESSIONS[0].1(text.as_bytes());
    let key = || selection(Some("k"), ValueForm::JsonRest);
    let expected = Ok(plain(&[(2, "a", "{}"), (3, "b", "{}")]));
    let padding = vec![0; 100_000];
    let whole =
        [&gzip("k\n")[..], &padding, &gzip("a\nb"), &gzip(""), &gzip("\n"), &padding].concat();
    assert_eq!(read(Format::Csv, &whole, key()), expected);
    let followed = [&whole[..], b"x"].concat();
    assert!(read(Format::Csv, &followed, key()).expect_err("more").contains("gzip"));
}

#[test]
fn any_text_is_opened_alike() {
    let wide: Vec<u8> = "\u{feff}a\nb\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for bytes in [&b"a\nb\n"[..], b"\xef\xbb\xbfa\nb\n", &wide, &COMPRESSIONS[1].1(&wide)] {
        let text = io::read_to_string(text_of(bytes).expect("opened"));
        assert_eq!(text.expect("read"), "a\nb\n");
    }
    let error = text_of(&b"\xfd7zXZ\0\0\x04"[..]).map(drop).expect_err("xz");
    assert!(error.message().contains("compressed with xz"), "{error}");
    let cut = &COMPRESSIONS[0].1(b"a\nb\n")[..15];
    let read = io::read_to_string(text_of(cut).expect("opened"));
    let error = cannot_read(read.expect_err("cut off"));
    assert_eq!(error.blame(), Blame::ApiMisuse);
    assert!(error.message().contains("ends too early"), "{error}");
}
