use crate::memory::{HugeBuffer, MemoryError, Pod};

#[test]
fn buffers_are_zeroed_aligned_and_writable() {
    fn check<T: Pod + PartialEq + From<u8>>(len: usize) {
        let mut buffer = HugeBuffer::<T>::new_zeroed(len).expect("little memory");
        assert_eq!(buffer.len(), len);
        assert!(buffer.iter().all(|&element| element == T::from(0)));
        let bytes = len * size_of::<T>();
        let alignment = match bytes {
            0 => align_of::<T>(),
            _ if cfg!(all(target_os = "linux", not(miri))) && bytes >= 2 << 20 => 2 << 20,
            _ => 64,
        };
        assert!(buffer.as_ptr().addr().is_multiple_of(alignment));
        buffer.fill(T::from(7));
        assert!(buffer.iter().all(|&element| element == T::from(7)));
    }
    for len in [0, 1, 63, 64, 4096, (2 << 20) - 1, 2 << 20, (2 << 20) + 1, 5_000_001] {
        check::<u8>(len);
        check::<u16>(len / 2);
        check::<u32>(len / 4);
        check::<u64>(len / 8);
    }
}

#[test]
fn impossible_sizes_are_errors() {
    for len in [usize::MAX, usize::MAX / 2, isize::MAX as usize, isize::MAX as usize - 4096] {
        let refused = HugeBuffer::<u8>::new_zeroed(len);
        assert!(matches!(refused, Err(MemoryError::TooLarge { .. })));
    }
    assert!(matches!(
        HugeBuffer::<u64>::new_zeroed(usize::MAX / 4),
        Err(MemoryError::TooLarge { element_bytes: 8, .. })
    ));
    // Addressable in principle, but more than any machine has.
    #[cfg(all(target_pointer_width = "64", not(miri)))]
    assert!(matches!(
        HugeBuffer::<u8>::new_zeroed(1 << 61),
        Err(MemoryError::Refused { bytes }) if bytes == 1 << 61
    ));
}

#[test]
fn small_buffers_do_not_claim_huge_pages() {
    let buffer = HugeBuffer::<u8>::new_zeroed(4096).expect("little memory");
    assert_eq!(buffer.huge_page_bytes(), None);
}

#[cfg(all(target_os = "linux", not(miri)))]
#[test]
fn granted_huge_pages_are_counted_for_this_buffer_alone() {
    use crate::memory::{ThpMode, transparent_huge_pages};

    let size = 8 << 20;
    let mut neighbours: Vec<_> =
        (0..3).map(|_| HugeBuffer::<u8>::new_zeroed(size).expect("little memory")).collect();
    for buffer in &neighbours {
        assert_eq!(buffer.huge_page_bytes(), Some(0), "nothing is written yet");
    }
    neighbours[1].fill(1);
    // The number of huge pages depends on the machine, but is never more than the buffer has.
    let granted = neighbours[1].huge_page_bytes().expect("/proc is there");
    assert!(granted <= size && granted.is_multiple_of(2 << 20));
    if transparent_huge_pages() == ThpMode::Never {
        assert_eq!(granted, 0);
    }
    assert_eq!(neighbours[0].huge_page_bytes(), Some(0));
    assert_eq!(neighbours[2].huge_page_bytes(), Some(0));
}

#[test]
fn smaps_are_read_by_address() {
    use crate::memory::huge_bytes_between;

    let smaps = "\
        1000-3000 rw-p 00000000 00:00 0 \n\
        Size:                  8 kB\n\
        AnonHugePages:      2048 kB\n\
        VmFlags: rd wr mr mw me ac\n\
        3000-5000 rw-p 00000000 00:00 0 [heap]\n\
        AnonHugePages:      4096 kB\n";
    let mega = 1 << 20;
    assert_eq!(huge_bytes_between(smaps, 0x5000, 0x5000 + 8 * mega), None);
    assert_eq!(huge_bytes_between(smaps, 0x4000, 0x4000 + 8 * mega), Some(4 * mega));
    assert_eq!(huge_bytes_between(smaps, 0x2000, 0x2000 + 8 * mega), Some(6 * mega));
    assert_eq!(huge_bytes_between(smaps, 0x1000, 0x3000), Some(0x2000), "cut to the range");
    assert_eq!(huge_bytes_between("", 0, 10), None);
    assert_eq!(huge_bytes_between("0-99 x\nAnonHugePages: many kB", 0, 10), None);
}

#[test]
fn modes_of_huge_pages_are_parsed() {
    use crate::memory::{ThpMode, parse_mode};

    assert_eq!(parse_mode("always [madvise] never\n"), ThpMode::Madvise);
    assert_eq!(parse_mode("[always] madvise never\n"), ThpMode::Always);
    assert_eq!(parse_mode("always madvise [never]\n"), ThpMode::Never);
    assert_eq!(parse_mode("always madvise never"), ThpMode::Unknown);
    assert_eq!(parse_mode(""), ThpMode::Unknown);
}

#[cfg(not(any(target_family = "wasm", miri)))]
mod mappings {
    use std::io::Write;

    use crate::memory::FileMapping;

    #[test]
    fn files_are_mapped_and_pages_come_back() {
        let bytes: Vec<u8> = (0..300_001u32).map(|i| (i % 251) as u8).collect();
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(&bytes).expect("room for it");
        let mapping = FileMapping::open(file.path()).expect("it exists");
        assert_eq!((mapping.len(), mapping.is_empty()), (bytes.len(), false));
        mapping.advise_sequential();
        mapping.advise_random();
        assert!(mapping.as_slice() == bytes);
        // Bytes that were just read are in memory. The system is not asked about bytes beyond the
        // file.
        assert!(
            [0, 4095, 4096, 300_000, 300_001, usize::MAX].iter().all(|at| mapping.is_resident(*at))
        );
        let named =
            FileMapping::of(file.as_file(), "whatever it is called".as_ref()).expect("open");
        assert!(named.as_slice() == bytes);
        for (start, end) in [(0, 0), (1, 70_000), (5, 200_000), (0, usize::MAX), (usize::MAX, 3)] {
            mapping.release_pages(start..end);
            mapping.advise_needed([start..end, 299_999..300_001, 5..5, 4096..usize::MAX]);
            assert!(*mapping == bytes);
        }
    }

    #[test]
    fn an_empty_file_is_an_empty_slice() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        let mapping = FileMapping::open(file.path()).expect("it exists");
        assert!(mapping.is_empty() && mapping.as_slice().is_empty());
        mapping.advise_sequential();
        mapping.advise_random();
        mapping.advise_needed([0..0, 0..100]);
        mapping.release_pages(0..100);
    }

    #[test]
    fn what_cannot_be_mapped_is_named() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let missing = folder.path().join("no-such-table");
        let error = FileMapping::open(&missing).expect_err("it is missing");
        assert!(error.is_not_found() && error.path() == missing);
        assert!(error.to_string().contains("no-such-table"));
        let error = FileMapping::open(folder.path()).expect_err("a folder is not a file");
        assert!(!error.is_not_found());
    }

    /// Writes enough bytes to fill several pages of any size in use.
    fn file_of(byte: u8) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(&vec![byte; 1 << 18]).expect("room for it");
        file
    }

    #[test]
    fn a_write_is_noticed_and_a_new_name_is_not() {
        let file = file_of(7);
        let mapping = FileMapping::open(file.path()).expect("it exists");
        mapping.check_unchanged().expect("nothing has happened");
        let elsewhere = file.path().with_extension("elsewhere");
        std::fs::rename(file.path(), &elsewhere).expect("a rename");
        mapping.check_unchanged().expect("it has another name and the same bytes");
        std::fs::remove_file(&elsewhere).expect("a removal");
        mapping.check_unchanged().expect("it is still open");
        // File times have a resolution of some milliseconds.
        std::thread::sleep(std::time::Duration::from_millis(20));
        file.as_file().write_all(b"more").expect("room for it");
        let error = mapping.check_unchanged().expect_err("it is longer").to_string();
        assert!(error.contains("written to"), "{error}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_guarded_mapping_survives_that_its_file_is_cut_short() {
        let (file, other) = (file_of(7), file_of(9));
        let mapping = FileMapping::open(file.path()).expect("it exists").guarded();
        let untouched = FileMapping::open(other.path()).expect("it exists").guarded();
        let end = mapping.len() - 1;
        assert_eq!((mapping[0], mapping[end]), (7, 7));
        file.as_file().set_len(100).expect("a truncation");
        // Several threads at once, from the end on, so that the replaced range grows.
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let missing = (1 << 16..=end).rev().step_by(4096);
                    missing.for_each(|place| assert_eq!(mapping[place], 0));
                });
            }
        });
        assert_eq!(mapping[0], 7, "what is still there is read as it is");
        let error = mapping.check_unchanged().expect_err("it is shorter").to_string();
        assert!(error.contains("truncated"), "{error}");
        // A page that was missing when it was read counts as missing, whatever happens to the file
        // afterwards.
        let modified = file.as_file().metadata().and_then(|found| found.modified());
        file.as_file().set_len(1 << 18).expect("its length");
        assert!(mapping.check_unchanged().is_err());
        assert!(modified.is_ok());
        assert!(untouched.iter().all(|&byte| byte == 9));
        untouched.check_unchanged().expect("nothing has happened to this one");
        // The place of a dropped range is used for the next one, without traces of the earlier hit.
        drop(mapping);
        let next = FileMapping::open(other.path()).expect("it exists").guarded();
        assert_eq!(next[end], 9);
        next.check_unchanged().expect("nothing has happened to this one");
    }

    /// Without the guard, the signal ends the process. So the test above can fail.
    #[cfg(target_os = "linux")]
    #[test]
    fn without_a_guard_the_signal_ends_the_process() {
        use std::os::unix::process::ExitStatusExt;
        const NAME: &str = "PRIVET_TEST_TOUCH_BEYOND_THE_END";
        if std::env::var_os(NAME).is_some() {
            let file = file_of(7);
            // Another range is guarded, with the handler installed. It must not swallow the signal
            // of this one.
            let guarded = FileMapping::open(file.path()).expect("it exists").guarded();
            let mapping = FileMapping::open(file.path()).expect("it exists");
            file.as_file().set_len(0).expect("a truncation");
            std::hint::black_box((mapping[1 << 17], guarded.len()));
            return;
        }
        let this = std::env::current_exe().expect("this test");
        let test = "tests::memory::mappings::without_a_guard_the_signal_ends_the_process";
        let mut child = std::process::Command::new(this);
        let status = child
            .args([test, "--exact", "--nocapture"])
            .env(NAME, "1")
            .stdout(std::process::Stdio::null())
            .status()
            .expect("a child");
        assert_eq!(status.signal(), Some(7), "{status:?}");
    }
}
