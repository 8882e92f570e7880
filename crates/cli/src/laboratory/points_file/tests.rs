use super::header::{MAX_PARAMETERS_LEN, MAX_SCHEME_LEN};
use super::*;
use privet_core::{Blame, Epoch, Reason, TableDigest, TableId, TableShape};
use privet_table::new_file::Existing;
use privet_table::positioned::write_all_at;
use std::fs;
use std::thread;
use tempfile::TempDir;

const TWO: NonZero<usize> = NonZero::new(2).expect("2 is not 0");

fn identity() -> TableIdentity {
    TableIdentity {
        id: TableId([7; 16]),
        epoch: Epoch(3),
        digest: TableDigest([9; 32]),
        shape: TableShape::new(10, 4).expect("a valid shape"),
    }
}

fn plan(points_len: u64) -> PointsPlan {
    PointsPlan {
        identity: identity(),
        scheme: "finite-differences".into(),
        parameters: vec![1, 2, 3],
        points_len,
        table_file: env!("CARGO_MANIFEST_PATH").into(),
    }
}

fn points(len: usize) -> Vec<u8> {
    (0..len).map(|number| (number * 31 + number / 251) as u8).collect()
}

/// Writes `points` in order and returns the file's bytes.
fn written(path: &Path, points: &[u8]) -> Vec<u8> {
    let writer = PointsWriter::create(path, Existing::Keep, plan(points.len() as u64))
        .expect("there is room");
    writer.write_at(0, points).expect("writable");
    writer.finish(TWO, |_, _| {}).expect("complete");
    fs::read(path).expect("readable")
}

/// All of the file's points, in memory.
fn read(path: &Path) -> Result<Vec<u8>> {
    let file = PointsFile::open(path)?;
    let mut points = vec![0; file.header().points_len as usize];
    file.read(&mut points, TWO, |_, _| {})?;
    // Both other ways of checking must accept the same files.
    file.verify(TWO, |_, _| {})?;
    let (mapping, start) = file.map()?;
    assert_eq!(mapping[start..], points);
    Ok(points)
}

/// The names of a directory's files.
fn files(directory: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(directory.path()).expect("readable");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("readable").file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort();
    names
}

#[test]
fn what_is_written_is_read_again() {
    let directory = TempDir::new().expect("a directory");
    // A byte; around the edges of the steps of a pass and of the parts of its threads; several
    // steps.
    let lens = [1, (1 << 20) - 1, (2 << 20) + 1, STEP - 1, STEP, STEP + 1, 2 * STEP + 12345];
    let all = points(2 * STEP + 12345);
    for len in lens {
        let path = directory.path().join(len.to_string());
        let points = &all[..len];
        let file = written(&path, points);
        assert_eq!(file.len(), 4096 + len);
        assert_eq!(file[4096..], *points);
        assert_eq!(read(&path).expect("whole"), points, "{len}");
        let file = PointsFile::open(&path).expect("whole");
        assert_eq!(file.file_bytes(), 4096 + len as u64);
        let header = file.header();
        assert_eq!((header.identity, &header.scheme[..]), (identity(), "finite-differences"));
        assert_eq!((&header.parameters[..], header.points_len), (&[1, 2, 3][..], len as u64));
        assert!(header.created_by.starts_with("privet "));
        assert!(PointsFile::is_one(&path));
    }
}

#[test]
fn progress_rises_from_step_to_step_up_to_the_whole() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("points");
    let (step, total) = (STEP as u64, 2 * STEP as u64 + 7);
    let expected = [(step, total), (2 * step, total), (total, total)];
    let writer = PointsWriter::create(&path, Existing::Keep, plan(total)).expect("there is room");
    let mut heard = Vec::new();
    writer.finish(TWO, |done, total| heard.push((done, total))).expect("complete");
    assert_eq!(heard, expected);
    let mut heard = Vec::new();
    let file = PointsFile::open(&path).expect("whole");
    file.verify(TWO, |done, total| heard.push((done, total))).expect("whole");
    assert_eq!(heard, expected);
}

#[test]
fn points_are_written_in_any_order_by_several_threads_and_read_back_meanwhile() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("points");
    let points = points(1 << 20);
    let writer = PointsWriter::create(&path, Existing::Keep, plan(1 << 20)).expect("there is room");
    let mut parts: Vec<(u64, &[u8])> = (0..).step_by(1 << 17).zip(points.chunks(1 << 17)).collect();
    parts.reverse();
    thread::scope(|scope| {
        for (offset, part) in &parts {
            scope.spawn(|| {
                // Writes other bytes first, as when partial results are refined in place.
                writer.write_at(*offset, &vec![0xaa; part.len()]).expect("writable");
                let mut back = vec![0; part.len()];
                writer.read_at(*offset, &mut back).expect("readable");
                assert!(back.iter().all(|byte| *byte == 0xaa));
                writer.write_at(*offset, part).expect("writable");
            });
        }
    });
    writer.finish(TWO, |_, _| {}).expect("complete");
    assert_eq!(read(&path).expect("whole"), points);
}

#[test]
fn nothing_is_read_or_written_beyond_the_points() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("points");
    let writer = PointsWriter::create(&path, Existing::Keep, plan(100)).expect("there is room");
    let offsets = [(0, 101), (1, 100), (100, 1), (101, 0), (u64::MAX, 1), (u64::MAX, 0)];
    for (offset, len) in offsets {
        let refused = writer.write_at(offset, &vec![1; len]).expect_err("beyond the end");
        assert_eq!(refused.blame(), Blame::ApiMisuse);
        let refused = writer.read_at(offset, &mut vec![1; len]).expect_err("beyond the end");
        assert_eq!(refused.blame(), Blame::ApiMisuse);
    }
    writer.write_at(100, &[]).expect("nothing is within everything");
    writer.finish(TWO, |_, _| {}).expect("complete");
    let file = PointsFile::open(&path).expect("whole");
    for len in [99, 101] {
        let refused = file.read(&mut vec![0; len], TWO, |_, _| {}).expect_err("another length");
        assert_eq!(refused.blame(), Blame::ApiMisuse);
    }
}

#[test]
fn a_writer_that_ends_early_leaves_nothing() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("points");
    let writer = PointsWriter::create(&path, Existing::Keep, plan(100)).expect("there is room");
    writer.write_at(0, &[1; 50]).expect("writable");
    // A crash of the machine would leave this: not under that name, and not a file of points.
    let [temporary] = &files(&directory)[..] else { panic!("one file is being written") };
    assert_ne!(temporary, "points");
    let refused = PointsFile::open(&directory.path().join(temporary)).err().expect("no header yet");
    assert_eq!(refused.blame(), Blame::ApiMisuse, "{refused}");
    drop(writer);
    assert_eq!(files(&directory), [""; 0]);
}

#[test]
fn a_file_that_is_there_stays_unless_it_may_be_replaced() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("points");
    let first = written(&path, &points(100));
    let refused = PointsWriter::create(&path, Existing::Keep, plan(100)).err().expect("kept");
    assert_eq!(refused.blame(), Blame::ApiMisuse);
    assert!(refused.message().contains("is there already"), "{refused}");

    let writer = PointsWriter::create(&path, Existing::Replace, plan(50)).expect("replaced");
    assert_eq!(fs::read(&path).expect("readable"), first, "until the new one is complete");
    writer.finish(TWO, |_, _| {}).expect("complete");
    assert_eq!(read(&path).expect("whole"), [0; 50]);

    // A file that another process creates meanwhile.
    let late = directory.path().join("late");
    let writer = PointsWriter::create(&late, Existing::Keep, plan(50)).expect("there is room");
    fs::write(&late, "first").expect("writable");
    let refused = writer.finish(TWO, |_, _| {}).expect_err("kept");
    assert_eq!(refused.blame(), Blame::ApiMisuse);
    assert_eq!(fs::read(&late).expect("readable"), b"first");
    assert_eq!(files(&directory), ["late", "points"]);
}

#[test]
#[cfg(target_os = "linux")]
fn a_disk_without_room_is_found_at_the_beginning() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("points");
    // More than any disk has.
    let refused =
        PointsWriter::create(&path, Existing::Keep, plan(1 << 60)).err().expect("no room");
    assert_eq!(refused.blame(), Blame::Unavailable);
    assert!(refused.message().contains("cannot reserve 1152921504606851072 bytes"), "{refused}");
    assert_eq!(files(&directory), [""; 0]);
}

#[test]
fn the_layout_is_the_documented_one() {
    let directory = TempDir::new().expect("a directory");
    let points = points(70);
    let file = written(&directory.path().join("points"), &points);
    let text = |text: &str| [&(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat();
    let created_by = text(concat!("privet ", env!("CARGO_PKG_VERSION")));
    let strings = [text("finite-differences"), vec![3, 0, 1, 2, 3], created_by].concat();
    let mut header = b"\x89PRVP\r\n\x1a".to_vec();
    header.extend(1u32.to_le_bytes());
    header.extend((136 + strings.len() as u32 + 32).to_le_bytes());
    header.extend([7; 16]);
    for number in [3u64, 10, 4] {
        header.extend(number.to_le_bytes());
    }
    header.extend([9; 32]);
    for number in [4096u64, 70] {
        header.extend(number.to_le_bytes());
    }
    header.extend(blake3::hash(&points).as_bytes());
    header.extend(strings);
    header.extend(blake3::hash(&header).as_bytes());
    header.resize(4096, 0);
    assert_eq!(file, [header, points].concat());
}

#[test]
fn what_the_header_cannot_hold_is_refused_before_anything_is_written() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("points");
    let most = PointsPlan {
        scheme: "s".repeat(MAX_SCHEME_LEN),
        parameters: vec![5; MAX_PARAMETERS_LEN],
        ..plan(70)
    };
    let refused = [
        PointsPlan { scheme: "s".repeat(MAX_SCHEME_LEN + 1), ..plan(70) },
        PointsPlan { scheme: String::new(), ..plan(70) },
        PointsPlan { parameters: vec![5; MAX_PARAMETERS_LEN + 1], ..plan(70) },
        plan(0),
        plan(u64::MAX),
        plan(u64::MAX - 4096),
    ];
    for plan in refused {
        let error = PointsWriter::create(&path, Existing::Keep, plan).err().expect("refused");
        assert_eq!(error.blame(), Blame::ApiMisuse, "{error}");
    }
    assert_eq!(files(&directory), [""; 0]);

    // The longest header takes two pages, and is read.
    let writer = PointsWriter::create(&path, Existing::Keep, most.clone()).expect("there is room");
    let (header, file_len) = writer.finish(TWO, |_, _| {}).expect("complete");
    assert_eq!(file_len, 8192 + 70);
    assert_eq!((&header.scheme, &header.parameters), (&most.scheme, &most.parameters));
    assert_eq!(*PointsFile::open(&path).expect("whole").header(), header);
    assert_eq!(read(&path).expect("whole"), [0; 70]);
}

#[test]
fn every_altered_byte_is_found() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("points");
    let good = written(&path, &points(300));
    let file = fs::OpenOptions::new().write(true).open(&path).expect("writable");
    for (position, byte) in good.iter().enumerate() {
        for flip in [1, 0x80] {
            write_all_at(&file, position as u64, &[byte ^ flip]).expect("writable");
            let opened = PointsFile::open(&path);
            // Damage before the points is found at once.
            assert_eq!(opened.is_err(), position < 4096, "byte {position}");
            let error = opened.and_then(|_| read(&path)).expect_err("it was altered");
            let expected = match position {
                // Neither is a damaged file of this version.
                0..12 => Blame::ApiMisuse,
                _ => Blame::Corrupted,
            };
            assert_eq!(error.blame(), expected, "byte {position}: {error}");
            assert!(error.message().starts_with(&path.display().to_string()), "{error}");
        }
        write_all_at(&file, position as u64, &[*byte]).expect("writable");
    }
    assert_eq!(read(&path).expect("as it was"), points(300));
}

#[test]
fn a_file_of_another_length_is_refused_at_once() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("points");
    let good = written(&path, &points(300));
    let file = fs::OpenOptions::new().write(true).open(&path).expect("writable");
    for longer in [1, 4096] {
        file.set_len(good.len() as u64 + longer).expect("writable");
        let error = PointsFile::open(&path).err().expect("it is too long");
        assert_eq!(error.blame(), Blame::Corrupted);
        assert!(error.message().contains("it should have 4396 bytes"), "{error}");
    }
    for len in (0..good.len()).rev() {
        file.set_len(len as u64).expect("writable");
        let error = PointsFile::open(&path).err().expect("it is cut short");
        assert_eq!(error.blame(), Blame::Corrupted, "{len} bytes: {error}");
        assert_eq!(PointsFile::is_one(&path), len >= 8);
    }
}

/// A header with changed contents and a valid checksum.
fn forged(good: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let header_len = u32::from_le_bytes(good[12..16].try_into().expect("4 bytes")) as usize;
    let mut fields = good[..header_len - 32].to_vec();
    change(&mut fields);
    let checksum = blake3::hash(&fields);
    let mut file = [&fields[..], checksum.as_bytes()].concat();
    file.extend_from_slice(&good[file.len().min(good.len())..]);
    file
}

#[test]
fn headers_that_contradict_the_file_or_themselves_are_refused() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("points");
    let good = written(&path, &points(300));
    assert_eq!(forged(&good, |_| {}), good);
    type Change = fn(&mut Vec<u8>);
    let changes: [(&str, Change); 9] = [
        ("more points than the file has", |fields| fields[96] ^= 1),
        ("points beyond all files", |fields| fields[96..104].fill(0xff)),
        ("no points", |fields| fields[96..104].fill(0)),
        ("points that begin elsewhere", |fields| fields[89] ^= 0x20),
        ("no records", |fields| fields[40..48].fill(0)),
        ("more records than can be counted", |fields| fields[40..56].fill(0xff)),
        ("a scheme that is no text", |fields| fields[138] = 0xff),
        ("a scheme that goes on beyond the header", |fields| fields[136] = 0xff),
        ("something after the last field", |fields| {
            // The program's name, which is the last field, claims to be shorter by a byte.
            let name_len = concat!("privet ", env!("CARGO_PKG_VERSION")).len();
            let place = fields.len() - name_len - 2;
            fields[place] -= 1;
        }),
    ];
    for (what, change) in changes {
        fs::write(&path, forged(&good, change)).expect("writable");
        let error = PointsFile::open(&path).err().unwrap_or_else(|| panic!("accepted: {what}"));
        assert_eq!(error.blame(), Blame::Corrupted, "{what}: {error}");
    }
    for version in [0, 2, u32::MAX] {
        let other = forged(&good, |fields| fields[8..12].copy_from_slice(&version.to_le_bytes()));
        fs::write(&path, other).expect("writable");
        let error = PointsFile::open(&path).err().expect("of another version");
        assert_eq!(error.blame(), Blame::ApiMisuse);
        assert!(error.message().contains(&format!("has version {version}")), "{error}");
        assert_eq!(error.reason(), Some(Reason::PointsNeeded), "{error}");
    }
}

#[test]
fn lengths_in_a_header_cost_no_memory_before_they_are_compared_with_the_file() {
    // A file of one page that claims exbibytes of points, and a header of 4 GiB.
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("points");
    let good = written(&path, &points(300));
    let huge = forged(&good, |fields| fields[96..104].copy_from_slice(&(1u64 << 60).to_le_bytes()));
    fs::write(&path, huge).expect("writable");
    let error = PointsFile::open(&path).err().expect("not so long");
    assert!(error.message().contains("it should have 1152921504606851072 bytes"), "{error}");
    let mut long = good;
    long[12..16].fill(0xff);
    fs::write(&path, long).expect("writable");
    let error = PointsFile::open(&path).err().expect("no such header");
    assert!(error.message().contains("impossible length"), "{error}");
}

#[test]
fn only_the_table_that_the_points_were_computed_from_is_accepted() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("points");
    written(&path, &points(300));
    let file = PointsFile::open(&path).expect("whole");
    file.check_table(&identity()).expect("its own table");
    let shape = |records, record_len| TableShape::new(records, record_len).expect("a valid shape");
    let others = [
        (TableIdentity { id: TableId([8; 16]), ..identity() }, "from another table, with id"),
        (
            TableIdentity { epoch: Epoch(4), ..identity() },
            "from another version of the table, with id",
        ),
        (
            TableIdentity { digest: TableDigest([8; 32]), ..identity() },
            "and other contents, with id",
        ),
        (TableIdentity { shape: shape(11, 4), ..identity() }, "and other contents, with id"),
        (TableIdentity { shape: shape(10, 5), ..identity() }, "and other contents, with id"),
    ];
    for (other, difference) in others {
        let error = file.check_table(&other).expect_err("another table");
        assert_eq!(error.blame(), Blame::ApiMisuse);
        let message = error.message();
        assert!(message.contains(difference), "{message}");
        for digest in [identity().digest, other.digest] {
            assert!(message.contains(&digest.to_string()), "{message}");
        }
        assert!(message.starts_with(&path.display().to_string()), "{message}");
    }
}

#[test]
fn a_file_that_is_replaced_while_it_is_read_is_served_as_it_was() {
    let directory = TempDir::new().expect("a directory");
    let (path, other) = (directory.path().join("points"), directory.path().join("other"));
    let mut damaged = written(&path, &points(300));
    *damaged.last_mut().expect("not empty") ^= 1;
    let file = PointsFile::open(&path).expect("whole");
    file.verify(TWO, |_, _| {}).expect("whole");
    // With the same header, so that only its points differ.
    fs::write(&other, damaged).expect("writable");
    fs::rename(&other, &path).expect("renamed");
    let (mapping, start) = file.map().expect("still there");
    assert_eq!(mapping[start..], points(300));
    file.verify(TWO, |_, _| {}).expect("still whole");
    let now = PointsFile::open(&path).expect("a whole header");
    assert_eq!(now.verify(TWO, |_, _| {}).expect_err("damaged").blame(), Blame::Corrupted);
}

#[test]
fn points_of_many_steps_and_parts_are_read_by_any_number_of_threads() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("points");
    let all = points(2 * STEP + 5);
    written(&path, &all);
    let file = PointsFile::open(&path).expect("whole");
    for threads in [1, 3, 40] {
        let mut read = vec![0; all.len()];
        let threads = NonZero::new(threads).expect("not 0");
        file.read(&mut read, threads, |_, _| {}).expect("whole");
        assert!(read == all);
    }
    let cut = fs::OpenOptions::new().write(true).open(&path).expect("writable");
    cut.set_len(4096 + STEP as u64 + (3 << 20)).expect("cut");
    let error = file.verify(TWO, |_, _| {}).expect_err("it is cut short");
    assert_eq!(error.blame(), Blame::Corrupted);
}

#[test]
fn control_characters_in_names_are_damage() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("points");
    let plan = PointsPlan { scheme: "finite\x1b[2J".into(), ..plan(64) };
    let writer = PointsWriter::create(&path, Existing::Keep, plan).expect("there is room");
    writer.finish(TWO, |_, _| {}).expect("complete");
    assert_eq!(PointsFile::open(&path).err().expect("refused").blame(), Blame::Corrupted);
}

#[cfg(unix)]
#[test]
fn who_may_not_read_the_table_may_not_read_its_points() {
    use std::os::unix::fs::PermissionsExt;
    let directory = TempDir::new().expect("a directory");
    let (path, table) = (directory.path().join("points"), directory.path().join("table"));
    fs::write(&table, "a table").expect("writable");
    for mode in [0o600, 0o640, 0o400] {
        fs::set_permissions(&table, fs::Permissions::from_mode(mode)).expect("ours");
        let plan = PointsPlan { table_file: table.clone(), ..plan(64) };
        let writer = PointsWriter::create(&path, Existing::Replace, plan).expect("there is room");
        writer.finish(TWO, |_, _| {}).expect("complete");
        let granted = fs::metadata(&path).expect("there").permissions().mode() & 0o777;
        // The mask of the user who runs this may remove more permissions.
        assert_eq!(granted & !mode, 0, "{granted:o} for {mode:o}");
    }
}

#[test]
fn what_is_no_regular_file_is_neither_replaced_nor_read() {
    let directory = TempDir::new().expect("a directory");
    let inside = |name: &str| directory.path().join(name);
    for existing in [Existing::Keep, Existing::Replace] {
        for output in ["/dev/null".into(), inside("new/"), inside("."), directory.path().into()] {
            let refused = PointsWriter::create(&output, existing, plan(64)).err();
            assert!(refused.is_some_and(|error| error.blame() == Blame::ApiMisuse), "{output:?}");
        }
    }
    assert_eq!(
        PointsFile::open("/dev/null".as_ref()).err().expect("refused").blame(),
        Blame::ApiMisuse
    );
    assert!(!PointsFile::is_one("/dev/null".as_ref()));
    #[cfg(unix)]
    {
        // A link that leads nowhere counts as an existing file.
        std::os::unix::fs::symlink(inside("nowhere"), inside("link")).expect("a link");
        let refused = PointsWriter::create(&inside("link"), Existing::Keep, plan(64)).err();
        assert_eq!(refused.expect("refused").blame(), Blame::ApiMisuse);
    }
}

#[test]
fn a_file_that_is_cut_short_while_it_is_read_is_an_error() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("points");
    written(&path, &points(300));
    let file = PointsFile::open(&path).expect("whole");
    let cut = fs::OpenOptions::new().write(true).open(&path).expect("writable");
    cut.set_len(4096 + 299).expect("cut");
    let error = file.verify(TWO, |_, _| {}).expect_err("it is cut short");
    assert_eq!(error.blame(), Blame::Corrupted);
    assert!(error.message().contains("it was cut short while it was read"), "{error}");
}

#[test]
fn what_is_no_file_of_points_is_refused() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("points");
    let missing = PointsFile::open(&path).err().expect("not there");
    assert_eq!(missing.blame(), Blame::ApiMisuse);
    assert_eq!(missing.reason(), Some(Reason::PointsNeeded), "{missing}");
    let no_file = PointsFile::open(directory.path()).err().expect("a directory");
    assert_eq!(no_file.blame(), Blame::ApiMisuse);
    fs::write(&path, vec![0; 5000]).expect("writable");
    assert_eq!(PointsFile::open(&path).err().expect("zeros").blame(), Blame::ApiMisuse);
    assert!(!PointsFile::is_one(&path) && !PointsFile::is_one(directory.path()));
}
