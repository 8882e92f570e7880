//! The journal's file: cut off at every byte, with every bit flipped, with commits lost and moved,
//! and with anything that a crash may leave of a commit.

use super::super::anchor::Anchor;
use super::super::journal::{BLOCK, Entry, HEAD_LEN, Journal, SEAL_LEN};
use super::super::sealed::{Header, Kind, Label};
use super::super::*;
use super::history::{generation, hints, key, key_at, record, seen, together};
use crate::disk::simulated::{Dice, Disk};
use crate::disk::{Folder, Medium, Times};
use crate::state::HintStore as _;
use std::io;
use std::ops::Range;

const FILE: &str = "journal";
const SECTOR: usize = 512;

/// The header of generation `number`, to which the journal belongs.
pub(super) fn header(number: u64) -> Header {
    let (version, digest) = (Version::of(&key()), [2; 32]);
    let lineage = [1; 16];
    let label = Label { kind: Kind::Generation, lineage, number, order: 0, offset: 0, version };
    Header { label, len: 3, digest }
}

/// `medium`, under the journal's name.
pub(super) fn named(medium: Arc<dyn Medium>) -> StoredFile {
    StoredFile::new(medium, FILE.into())
}

/// The anchor that has counted all of `journal`.
pub(super) fn counting(journal: &Journal) -> Anchor {
    let generation = journal.summary().generation;
    let anchor = Anchor { generation, ..Anchor::new(&key(), [1; 16], [0; 32]) };
    super::super::counting(anchor, journal).unwrap()
}

/// The contents of a journal.
#[derive(Clone, Debug, PartialEq)]
struct Said {
    commits: u64,
    reserved: u64,
    changes: Vec<Vec<u8>>,
    unfinished: Vec<(u64, usize)>,
    epoch: u64,
    ended: Option<String>,
}

fn said(journal: &mut Journal) -> Said {
    let (changes, ids) = journal.load();
    let records = reservation::JournalReader::records(journal).unwrap();
    let summary = journal.summary();
    Said {
        commits: summary.commits,
        reserved: summary.reserved,
        changes: changes.iter().map(|change| change.to_vec()).collect(),
        unfinished: ids.iter().zip(&records).map(|(id, record)| (id.0, record.len())).collect(),
        epoch: summary.version.table.epoch.0,
        ended: summary.ended.clone(),
    }
}

/// A journal with some commits, and everything about it.
struct Written {
    disk: Disk,
    journal: Journal,
    bytes: Vec<u8>,
    /// After the base and after each commit: the contents, and where the next commit goes.
    states: Vec<(Said, usize)>,
    /// An anchor that has counted nothing, as after a kill, and one that has counted everything.
    anchors: [Anchor; 2],
}

impl Written {
    fn new(generation: u64, record_len: usize) -> Self {
        let disk = Disk::default();
        let medium = disk.create(FILE).unwrap();
        let mut journal = Journal::create(named(medium), &header(generation)).unwrap();
        let first = counting(&journal);
        let mut states = vec![(said(&mut journal), journal.tail)];
        let (record, follow) = (vec![5; record_len], Version::of(&key_at(5)));
        let commits = [
            vec![Entry::Change(b"one"), Entry::Unfinished(0, &record)],
            vec![
                Entry::Finished(0),
                Entry::Change(b"first answer"),
                Entry::Change(b"two"),
                Entry::Unfinished(1, &record),
                Entry::Change(b"three"),
                Entry::Unfinished(2, &record),
            ],
            vec![Entry::Finished(2), Entry::Change(b"edits"), Entry::StandsAt(follow)],
            vec![],
            vec![Entry::Change(b"four"), Entry::Unfinished(3, &record)],
        ];
        for commit in commits {
            journal.commit(&commit).unwrap();
            states.push((said(&mut journal), journal.tail));
        }
        let (bytes, anchors) = (disk.read(FILE), [first, counting(&journal)]);
        Self { disk, journal, bytes, states, anchors }
    }

    fn whole(&self) -> &Said {
        &self.states.last().unwrap().0
    }

    /// The ranges of the copies of commit `number`, which counts from 1.
    fn copies(&self, number: usize) -> [Range<usize>; 2] {
        let (start, end) = (self.states[number - 1].1, self.states[number].1);
        let entries = &self.bytes[start + HEAD_LEN - 8..start + HEAD_LEN];
        let entries = u64::from_le_bytes(entries.try_into().unwrap());
        let len = HEAD_LEN + entries as usize + SEAL_LEN;
        [start..start + len, end - len..end]
    }
}

/// The contents of a journal of `bytes`, and whether all of it is as it was written.
fn open(bytes: &[u8], anchor: &Anchor) -> Result<(Said, bool)> {
    let disk = Disk::default();
    let medium = disk.create(FILE).unwrap();
    disk.damage(FILE, bytes.to_vec());
    let mut journal = Journal::open(named(medium), anchor)?;
    Ok((said(&mut journal), journal.sound))
}

fn refused(bytes: &[u8], anchor: &Anchor) -> bool {
    match open(bytes, anchor) {
        Ok(_) => false,
        Err(error) => {
            assert_eq!(error.blame(), Blame::Corrupted, "{error}");
            true
        }
    }
}

#[test]
fn what_was_written_is_read() {
    let written = Written::new(1, 700);
    let whole = written.whole();
    assert_eq!((whole.commits, whole.reserved, whole.changes.len()), (5, 4, 6));
    assert_eq!((whole.epoch, whole.unfinished.len()), (5, 2));
    for anchor in &written.anchors {
        assert_eq!(open(&written.bytes, anchor).unwrap(), (whole.clone(), true));
    }
    for number in 1..written.states.len() {
        let [first, second] = written.copies(number);
        assert_eq!(written.bytes[first.clone()], written.bytes[second.clone()]);
        assert!((first.end - 1) / BLOCK < second.start / BLOCK, "they share no block");
    }
}

#[test]
fn a_journal_that_is_cut_off_anywhere_is_refused_or_whole_once_it_was_counted() {
    let written = Written::new(1, 40);
    let [killed, closed] = &written.anchors;
    let mut healed = 0;
    for len in 0..=written.bytes.len() {
        let cut = &written.bytes[..len];
        // The commits of which a copy is left.
        let there = (1..written.states.len()).take_while(|at| written.copies(*at)[0].end <= len);
        let (state, _) = &written.states[there.count()];
        match open(cut, killed) {
            Ok((said, _)) => assert_eq!(said, *state, "cut to {len}"),
            Err(_) => assert!(len < written.states[0].1, "cut to {len}"),
        }
        match open(cut, closed) {
            Ok((said, sound)) => {
                assert_eq!(said, *written.whole(), "cut to {len}");
                healed += usize::from(!sound);
            }
            Err(error) => assert_eq!(error.blame(), Blame::Corrupted, "cut to {len}"),
        }
    }
    assert!(healed > 50, "{healed}: the first copy of the last commit is enough");
}

#[test]
fn a_flipped_bit_anywhere_is_refused_or_changes_nothing() {
    let written = Written::new(1, 40);
    let base = written.bytes.iter().rposition(|_| true).unwrap().min(BLOCK);
    let base = written.bytes[..base].iter().rposition(|byte| *byte != 0).unwrap() + 1;
    for at in 0..written.bytes.len() {
        let bits = if written.bytes[at] == 0 { 1 } else { 8 };
        for bit in 0..bits {
            let mut damaged = written.bytes.clone();
            damaged[at] ^= 1 << bit;
            match open(&damaged, &written.anchors[0]) {
                Ok((said, _)) => {
                    assert_eq!(said, *written.whole(), "bit {bit} at {at}");
                    assert!(at >= base, "bit {bit} at {at}");
                }
                Err(error) => {
                    assert_eq!(error.blame(), Blame::Corrupted, "bit {bit} at {at}");
                    assert!(at < base, "bit {bit} at {at}: {error}");
                }
            }
        }
    }
}

/// Applies a commit's changes only to the sectors for which `survives` is true.
fn torn(
    before: &[u8],
    after: &[u8],
    unit: usize,
    mut survives: impl FnMut(usize) -> bool,
) -> Vec<u8> {
    let mut bytes = before.to_vec();
    bytes.resize(after.len(), 0);
    for start in (0..after.len()).step_by(unit) {
        let end = (start + unit).min(after.len());
        if bytes[start..end] != after[start..end] && survives(start) {
            bytes[start..end].copy_from_slice(&after[start..end]);
        }
    }
    bytes
}

/// Whatever the disk kept of the last commit: it is there if one of its copies is; otherwise it is
/// as if it had never begun.
#[test]
fn whatever_a_crash_leaves_of_a_commit_it_is_whole_or_was_never_begun() {
    for record_len in [40, 700, 1500] {
        let written = Written::new(1, record_len);
        let [.., (before, _), (after, _)] = &written.states[..] else { unreachable!() };
        let copies = written.copies(written.states.len() - 1);
        let mut bytes_before = written.bytes.clone();
        bytes_before[copies[0].start..].fill(0);
        let check = |bytes: &[u8]| {
            let whole = |copy: &Range<usize>| bytes[copy.clone()] == written.bytes[copy.clone()];
            let is_there = copies.iter().any(whole);
            let (said, sound) = open(bytes, &written.anchors[0]).unwrap();
            assert_eq!(said, if is_there { after.clone() } else { before.clone() });
            let as_written = bytes == written.bytes || bytes == bytes_before;
            assert_eq!(sound, as_written, "what is not as it should be is seen");
            is_there
        };
        let mut sectors = 0;
        torn(&bytes_before, &written.bytes, SECTOR, |_| {
            sectors += 1;
            false
        });
        assert!((2..12).contains(&sectors), "{sectors}");
        let (mut there, mut gone) = (0, 0);
        for kept in 0..1u32 << sectors {
            let mut number = 0;
            let bytes = torn(&bytes_before, &written.bytes, SECTOR, |_| {
                number += 1;
                kept >> (number - 1) & 1 == 1
            });
            match check(&bytes) {
                true => there += 1,
                false => gone += 1,
            }
        }
        assert!(there > 1 && gone > 0, "{there} {gone}");
        let mut dice = Dice::new(record_len as u64);
        for _ in 0..300 {
            let unit = 1 + dice.below(200);
            let often = 2 + dice.below(20);
            check(&torn(&bytes_before, &written.bytes, unit, |_| dice.below(often) > 0));
        }
    }
}

/// Both copies of a commit that is not the last.
#[test]
fn a_commit_that_is_lost_in_the_middle_is_missed_though_nothing_counted_it() {
    let written = Written::new(1, 40);
    let last = written.states.len() - 1;
    for number in 1..=last {
        let mut damaged = written.bytes.clone();
        for copy in written.copies(number) {
            damaged[copy.start + 20] ^= 1;
        }
        let [killed, closed] = &written.anchors;
        assert_eq!(refused(&damaged, killed), number < last, "{number}");
        assert!(refused(&damaged, closed), "{number}");
        // Losing one copy loses nothing.
        damaged[written.copies(number)[1].start + 20] ^= 1;
        assert_eq!(open(&damaged, closed).unwrap(), (written.whole().clone(), false), "{number}");
    }
}

#[test]
fn commits_that_are_left_out_repeated_or_moved_are_refused_though_nothing_counted_them() {
    let written = Written::new(1, 40);
    let span = |number: usize| written.states[number - 1].1..written.states[number].1;
    let last = written.states.len() - 1;
    let with = |spans: &[usize]| {
        let mut bytes = written.bytes[..written.states[0].1].to_vec();
        spans.iter().for_each(|number| bytes.extend(&written.bytes[span(*number)]));
        // The position of a commit in its block must not matter here.
        bytes.resize(bytes.len() + 3 * BLOCK, 0);
        bytes
    };
    let [killed, _] = &written.anchors;
    let in_order: Vec<usize> = (1..=last).collect();
    assert_eq!(open(&with(&in_order), killed).unwrap().0, *written.whole());
    for number in 1..last {
        let mut moved = in_order.clone();
        moved.swap(number - 1, number);
        assert!(refused(&with(&moved), killed), "{number} moved");
        moved = in_order.clone();
        moved.remove(number - 1);
        assert!(refused(&with(&moved), killed), "{number} left out");
        moved = in_order.clone();
        moved.push(number);
        assert!(refused(&with(&moved), killed), "{number} repeated at the end");
    }
    assert!(refused(&with(&[&in_order[..], &[last]].concat()), killed), "the last repeated");
}

#[test]
fn commits_of_another_generation_count_for_nothing() {
    let (written, other) = (Written::new(1, 40), Written::new(2, 40));
    let [killed, closed] = &written.anchors;
    assert!(refused(&other.bytes, killed) && refused(&other.bytes, closed));
    let (tail, first) = (written.journal.tail, other.states[0].1);
    let mut mixed = written.bytes[..tail].to_vec();
    mixed.extend(&other.bytes[first..]);
    assert_eq!(open(&mixed, closed).unwrap(), (written.whole().clone(), false));
    let mut replaced = written.bytes.clone();
    replaced[first..].copy_from_slice(&other.bytes[first..]);
    assert_eq!(open(&replaced, killed).unwrap(), (written.states[0].0.clone(), false));
    assert!(refused(&replaced, closed));
}

/// A file that claims to be longer than anything.
#[derive(Debug)]
struct Endless(Arc<dyn Medium>);

impl Medium for Endless {
    fn len(&self) -> io::Result<u64> {
        Ok(u64::MAX / 2)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_at(offset, out)
    }

    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
        unreachable!("opening writes nothing")
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        unreachable!("opening writes nothing")
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn place(&self) -> io::Result<[u8; 32]> {
        self.0.place()
    }

    fn times(&self) -> io::Result<Option<Times>> {
        Ok(None)
    }

    fn now(&self) -> u64 {
        self.0.now()
    }
}

#[test]
fn a_length_that_somebody_claims_allocates_nothing() {
    let written = Written::new(1, 40);
    let [killed, closed] = &written.anchors;
    let base = 8 + 4 + 16 + 8 + 8 + 32 + 2 * Version::LEN + 32 + 3 * 8;
    for huge in [u64::MAX, i64::MAX as u64, 1 << 40] {
        let mut damaged = written.bytes.clone();
        damaged[base..base + 8].copy_from_slice(&huge.to_le_bytes());
        assert!(refused(&damaged, killed), "{huge}");
        let mut damaged = written.bytes.clone();
        for copy in written.copies(5) {
            let at = copy.start + HEAD_LEN - 8;
            damaged[at..at + 8].copy_from_slice(&huge.to_le_bytes());
        }
        assert_eq!(open(&damaged, killed).unwrap(), (written.states[4].0.clone(), false));
        assert!(refused(&damaged, closed), "{huge}");
    }
    let endless = Arc::new(Endless(written.disk.open(FILE).unwrap().unwrap()));
    let outcome = Journal::open(named(endless), killed);
    assert_eq!(outcome.err().unwrap().blame(), Blame::Unavailable);
}

fn in_use() -> (Disk, Box<KeptHints>) {
    let disk = Disk::default();
    let mut opened = hints(&disk).unwrap();
    opened.preparation().unwrap().save_generation(&generation(1)).unwrap();
    opened.switch().unwrap();
    (disk, opened)
}

/// Two writes and one sync, however many reservations come together, with the changes that were
/// settled before.
#[test]
fn reservations_that_come_together_take_one_sync() {
    let (disk, mut opened) = in_use();
    let batch = |ids: Range<u64>| -> Vec<_> {
        ids.map(|id| (ReservationId(id), record(&[id as u8; 9], &[id as u8; 30]))).collect()
    };
    for (ids, len) in [(0..1, 1), (1..9, 8), (9..9, 0)] {
        let before = disk.operations();
        let receipts = opened.reserve(&together(&batch(ids.clone()))).unwrap();
        assert_eq!(receipts.len(), len);
        assert_eq!(disk.operations() - before, 3 * usize::from(len > 0), "{ids:?}");
    }
    opened.settle(ReservationId(3), b"answer").unwrap();
    for wrong in [batch(8..9), batch(10..11), [batch(9..10), batch(9..10)].concat()] {
        let before = disk.operations();
        assert_eq!(opened.reserve(&together(&wrong)).err().unwrap().blame(), Blame::ApiMisuse);
        assert_eq!(disk.operations(), before, "nothing was written");
    }
    let before = disk.operations();
    opened.reserve(&together(&batch(9..12))).unwrap();
    assert_eq!(disk.operations() - before, 3);
    let killed = disk.snapshot();
    let found = seen(&mut hints(&killed).unwrap()).unwrap();
    let unfinished: Vec<u64> = found.unfinished.iter().map(|(id, _)| *id).collect();
    assert_eq!(unfinished, [0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11]);
    assert_eq!((found.changes.len(), found.changes[9].as_slice()), (13, &b"answer"[..]));
}

/// Useless records do not fill the disk, and none of them stays.
#[test]
fn a_journal_that_is_mostly_of_no_use_is_begun_anew_and_the_old_one_erased() {
    let (disk, mut opened) = in_use();
    let mut longest = 0;
    for id in 0..200 {
        let query = [id as u8; 3000];
        opened.reserve_one(ReservationId(id), &record(&[id as u8; 9], &query)).unwrap();
        opened.settle(ReservationId(id), &[id as u8; 7]).unwrap();
        let names = disk.file_names();
        let journals: Vec<_> = names.iter().filter(|name| name.starts_with("journal")).collect();
        assert_eq!(journals.len(), 1);
        longest = longest.max(disk.read(journals[0]).len());
    }
    assert!(longest < 100_000, "{longest} bytes for 600,000 of queries");
    let killed = disk.snapshot();
    let found = seen(&mut hints(&killed).unwrap()).unwrap();
    assert_eq!((found.changes.len(), found.unfinished.len()), (399, 1));
    let holds = |query: [u8; 3000]| {
        let all = disk.all_bytes();
        all.iter().any(|bytes| bytes.windows(3000).any(|window| window == query))
    };
    assert!(!holds([100; 3000]) && holds([199; 3000]));
}
