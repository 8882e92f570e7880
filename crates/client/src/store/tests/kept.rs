//! Files that a shell keeps for a state in memory.

use super::*;
use crate::store::{Change, Keeping, KeptState};

const URL: &str = "http://a";

/// The files of a shell.
#[derive(Clone, Default)]
struct Shell {
    parts: HashMap<String, Vec<u8>>,
    pins: HashMap<String, Vec<u8>>,
}

impl Shell {
    /// A client that begins with these files.
    fn begin(&mut self) -> (KeptState, Keeping) {
        let pins = self.pins.iter().map(|(name, file)| (name.clone(), file.clone())).collect();
        let (state, keeping) = KeptState::new(pins, &[URL], None, false).unwrap();
        self.parts.retain(|name, _| keeping.wants(name).is_some());
        for (name, file) in self.parts.iter().filter(|(name, _)| keeping.wants(name).unwrap()) {
            keeping.read(name.clone(), file.clone());
        }
        (state, keeping)
    }

    /// Does what the client wants. Returns how much that was.
    fn carry_out(&mut self, keeping: &Keeping) -> Result<usize> {
        let changes = keeping.changes();
        let count = changes.len();
        for change in changes {
            match change {
                Change::Keep(name, part) => {
                    self.parts.insert(name, contents(&*part)?);
                }
                Change::Remove(name) => {
                    self.parts.remove(&name);
                }
                Change::Pin(name) => {
                    let file = keeping.pins(&name, self.pins.get(&name).map(Vec::as_slice))?;
                    self.pins.insert(name, file);
                }
            }
        }
        Ok(count)
    }

    /// A client that has received `part`, whose table it pins.
    fn after_a_first_use(bytes: &[u8], part: &PartKey) -> Self {
        let mut shell = Self::default();
        let (mut state, keeping) = shell.begin();
        let download = partial(state.open(part).unwrap());
        assert_eq!(download.next_offset(), 0);
        state.append(part, 0, bytes).unwrap();
        state.complete(part).unwrap();
        state.pin(URL, "t", &pin_of(part)).unwrap();
        shell.carry_out(&keeping).unwrap();
        shell
    }
}

fn pin_of(part: &PartKey) -> Pin {
    Pin { hint: Some(PartDescription { len: part.len, digest: part.digest }), ..pin(1, 0) }
}

#[test]
fn a_part_is_received_once_and_goes_with_its_pin() {
    let bytes = bytes(300);
    let part = part_of(&bytes, PartKind::Hint);
    let mut shell = Shell::after_a_first_use(&bytes, &part);
    assert_eq!(shell.parts.len(), 1);
    let (mut state, keeping) = shell.begin();
    assert_eq!(state.pins(URL).unwrap(), [("t".to_owned(), pin_of(&part))]);
    let opened = state.open(&part).unwrap();
    assert_eq!(notice(&opened), None);
    assert_eq!(contents(&*complete(opened)).unwrap(), bytes);
    assert_eq!(shell.carry_out(&keeping).unwrap(), 0);
    state.pin(URL, "t", &pin(1, 1)).unwrap();
    shell.carry_out(&keeping).unwrap();
    assert!(shell.parts.is_empty());
}

#[test]
fn a_damaged_part_is_received_anew() {
    let bytes = bytes(300);
    let part = part_of(&bytes, PartKind::Hint);
    let whole = Shell::after_a_first_use(&bytes, &part);
    let name = whole.parts.keys().next().unwrap();
    let torn = (0..300).map(|len| bytes[..len].to_vec());
    let changed = (0..300).map(|at| {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        changed
    });
    for damaged in torn.chain(changed).chain([[&bytes[..], &[0]].concat()]) {
        let mut shell = whole.clone();
        shell.parts.insert(name.clone(), damaged);
        let (mut state, keeping) = shell.begin();
        let opened = state.open(&part).unwrap();
        assert!(notice(&opened).unwrap().contains("damaged"));
        assert_eq!(partial(opened).next_offset(), 0);
        state.append(&part, 0, &bytes).unwrap();
        state.complete(&part).unwrap();
        shell.carry_out(&keeping).unwrap();
        assert_eq!(shell.parts, whole.parts);
    }
}

#[test]
fn damaged_pins_are_refused_by_whoever_asks_that_server() {
    let bytes = bytes(300);
    let whole = Shell::after_a_first_use(&bytes, &part_of(&bytes, PartKind::Hint));
    let (name, file) = whole.pins.iter().next().unwrap();
    for len in 0..file.len() {
        let pins = || vec![(name.clone(), file[..len].to_vec())];
        let refused = KeptState::new(pins(), &[URL], None, false).err().unwrap();
        assert_eq!(refused.blame(), Blame::Corrupted);
        assert!(refused.message().contains(name.as_str()), "{refused}");
        assert!(KeptState::new(pins(), &["http://b"], None, false).is_ok());
        // A user who believes what is served now has it pinned.
        let (mut accepting, keeping) = KeptState::new(pins(), &[URL], None, true).unwrap();
        accepting.pin(URL, "t", &pin(3, 0)).unwrap();
        let mut shell = Shell { pins: pins().into_iter().collect(), ..Shell::default() };
        shell.carry_out(&keeping).unwrap();
        assert_eq!(shell.begin().0.pins(URL).unwrap(), [("t".to_owned(), pin(3, 0))]);
    }
}

/// Such a file may name any part.
#[test]
fn no_part_is_removed_while_a_file_of_pins_is_damaged() {
    let bytes = bytes(300);
    let whole = Shell::after_a_first_use(&bytes, &part_of(&bytes, PartKind::Hint));
    let (name, file) = whole.pins.iter().next().unwrap();
    let part = whole.parts.keys().next().unwrap();
    for len in [file.len(), file.len() - 1, 0] {
        let pins = vec![(name.clone(), file[..len].to_vec())];
        let (_, keeping) = KeptState::new(pins, &["http://b"], None, false).unwrap();
        assert_eq!(keeping.wants(part), Some(false));
    }
    let (_, keeping) = KeptState::new(Vec::new(), &["http://b"], None, false).unwrap();
    assert_eq!(keeping.wants(part), None);
}

/// A file that is older than what the shell could not write to it.
#[test]
fn of_two_files_of_one_name_the_later_one_counts() {
    let mut shell = Shell::default();
    let (mut state, keeping) = shell.begin();
    state.pin(URL, "t", &pin(1, 0)).unwrap();
    state.pin(URL, "other", &pin(5, 0)).unwrap();
    shell.carry_out(&keeping).unwrap();
    let mut newer = Shell::default();
    let (mut state, keeping) = newer.begin();
    state.pin(URL, "t", &pin(2, 0)).unwrap();
    newer.carry_out(&keeping).unwrap();
    let both = shell.pins.iter().chain(&newer.pins);
    let both = both.map(|(name, file)| (name.clone(), file.clone())).collect();
    let (mut state, keeping) = KeptState::new(both, &[URL], None, false).unwrap();
    let expected = [("other".to_owned(), pin(5, 0)), ("t".to_owned(), pin(2, 0))];
    assert_eq!(state.pins(URL).unwrap(), expected);
    // The older file has nothing that this client has not seen.
    state.pin(URL, "t", &pin(2, 0)).unwrap();
    shell.carry_out(&keeping).unwrap();
    assert_eq!(shell.begin().0.pins(URL).unwrap(), expected);
}

/// Nothing of single-use hints reaches whoever keeps files.
#[test]
fn single_use_hints_are_not_kept() {
    let (mut state, keeping) = KeptState::new(Vec::new(), &[URL], None, false).unwrap();
    let key = HintsKey {
        table: identity(1, 0),
        scheme: SchemeId::DummySubsets,
        parameter_digest: [4; 32],
        servers: [7; 32],
    };
    let HintsOpened::Have { mut hints, .. } = state.open_hints(&key, false).unwrap() else {
        panic!("busy");
    };
    hints.preparation().unwrap().save_generation(b"a generation").unwrap();
    hints.switch().unwrap();
    assert!(hints.load().unwrap().generation.is_some());
    assert!(keeping.changes().is_empty());
}

/// Two clients that begin at once with the same files.
#[test]
fn pins_of_several_clients_are_joined_unless_they_contradict_each_other() {
    let mut shell = Shell::default();
    let ((mut one, of_one), (mut other, of_other)) = (shell.begin(), shell.begin());
    one.pin(URL, "t", &pin(1, 0)).unwrap();
    shell.carry_out(&of_one).unwrap();
    other.pin(URL, "v", &pin(2, 0)).unwrap();
    shell.carry_out(&of_other).unwrap();
    let both = [("t".to_owned(), pin(1, 0)), ("v".to_owned(), pin(2, 0))];
    assert_eq!(shell.begin().0.pins(URL).unwrap(), both);
    // The first does not know that pin, nor the table that comes under its name.
    one.pin(URL, "v", &pin(3, 0)).unwrap();
    assert_eq!(shell.carry_out(&of_one).unwrap_err().blame(), Blame::Integrity);
    assert_eq!(shell.begin().0.pins(URL).unwrap(), both);
    // Whoever has compared it may go on.
    let (mut later, of_later) = shell.begin();
    later.pin(URL, "v", &pin(3, 0)).unwrap();
    later.pin(URL, "v", &pin(4, 0)).unwrap();
    shell.carry_out(&of_later).unwrap();
    assert!(shell.begin().0.pins(URL).unwrap().contains(&("v".to_owned(), pin(4, 0))));
}

/// A table that was left stays left, also for the other client.
#[test]
fn tables_that_were_left_are_kept() {
    let mut shell = Shell::default();
    let (mut one, of_one) = shell.begin();
    one.pin(URL, "t", &pin(1, 0)).unwrap();
    shell.carry_out(&of_one).unwrap();
    let left = Left { id: pin(1, 0).table.id, by: privet_table::update_log::EpochHash([1; 32]) };
    one.pin_successor(URL, "t", &pin(2, 1), &[left]).unwrap();
    shell.carry_out(&of_one).unwrap();
    let (mut next, of_next) = shell.begin();
    assert_eq!(next.tables_left().unwrap(), [(URL.to_owned(), left)]);
    next.pin(URL, "u", &pin(1, 0)).unwrap();
    assert_eq!(shell.carry_out(&of_next).unwrap_err().blame(), Blame::Integrity);
}
