//! What is said of a table's room, compared with how many keys really fit.

use super::editing::{Table, key};
use super::*;

/// Sets new keys until one is refused. Returns how many went in.
fn fill(table: &Table, len: impl Fn(usize) -> usize) -> u64 {
    let records = table.records.clone();
    let mut editor = Editor::new(&table.key_map, |number| Ok(records[number as usize].clone()));
    let mut count = 0;
    // A single key may be unlucky long before the table is full.
    let mut refused = 0;
    while refused < 3 {
        let number = 1_000_000 + count as usize + refused;
        match editor.set(&key(number), &vec![7; len(number)]) {
            Ok(_) => count += 1,
            Err(_) => refused += 1,
        }
    }
    count
}

#[test]
fn a_table_takes_as_many_keys_as_it_was_built_with_room_for() {
    let pair = |i: usize| -> Pair { (key(i), vec![5; i * 7 % 90]) };
    let pairs: Vec<Pair> = (0..500).map(pair).collect();
    let seed = fixed_seed();
    for (parts, room) in [(1, 0), (1, 500), (1, 5000), (3, 2000)] {
        let options =
            PackOptions { kind: KeyMapKind::Cuckoo, parts: Some(parts), lists: false, room };
        let packed = pack_with(&options, &pairs[..], seed).expect("packs");
        let map = KeyMap::decode(&packed.key_map().encode()).expect("just encoded");
        assert_eq!(map.keys(), 500);
        let records = packed.records(&pairs[..]);
        for (key, value) in &pairs {
            assert_eq!(look_up(&map, &records, key).as_ref(), Some(value));
        }
        let mut editor = Editor::new(&map, |number| Ok(records[number as usize].clone()));
        for i in 0..room as usize {
            let (key, value) = pair(1000 + i);
            editor.set(&key, &value).expect("there is room");
        }
    }
    let buckets = PackOptions { parts: Some(1), room: 1, ..PackOptions::default() };
    assert!(pack_with(&buckets, &pairs[..], seed).is_err());
}

/// Rows may be sorted by their lengths. What comes later is taken to be as all rows are, not as the
/// first.
#[test]
fn room_is_as_large_in_whatever_order_rows_come() {
    let options = PackOptions { kind: KeyMapKind::Cuckoo, parts: Some(1), lists: false, room: 250 };
    let bytes = |len: fn(usize) -> usize| {
        let pairs: Vec<Pair> = (0..500).map(|i| (key(i), vec![5; len(i)])).collect();
        let packed = pack_with(&options, &pairs[..], fixed_seed()).expect("packs");
        packed.key_map().buckets() * packed.key_map().record_len()
    };
    let (rising, falling) = (bytes(|i| i / 5), bytes(|i| (499 - i) / 5));
    assert!(rising.abs_diff(falling) <= rising / 20, "{rising} and {falling}");
}

#[test]
fn about_as_many_keys_fit_as_is_said() {
    type Len = fn(usize) -> usize;
    let lengths: [(&str, Len); 3] =
        [("equal", |_| 40), ("alike", |i| 30 + i * 7 % 20), ("varied", |i| i * i % 300)];
    for (name, len) in lengths {
        for kind in KeyMapKind::ALL {
            for (keys, deleted) in [(300, 0), (3000, 0), (3000, 600), (20_000, 0)] {
                let pairs: Vec<Pair> = (0..keys).map(|i| (key(i), vec![5; len(i)])).collect();
                let mut table = Table::new(kind, &pairs);
                for number in 0..deleted {
                    table.delete(&key(number * 3));
                }
                let read = |number: u64| Ok(table.records[number as usize].clone());
                let room = table.key_map.room(read).unwrap();
                let fits = fill(&table, len);
                let context = format!("{name}, {kind:?}, {keys} keys: {room:?}, {fits} fit");
                let known = (keys - deleted) as u64;
                assert!(room.entries.abs_diff(known) <= known / 20, "{context}");
                // Which of several long values come first decides much in a cuckoo map.
                let tolerance = match (name, kind) {
                    ("varied", KeyMapKind::Cuckoo) => known / 4,
                    _ => fits / 2 + 20,
                };
                assert!(room.more.abs_diff(fits) <= tolerance, "{context}");
            }
        }
    }
}

#[test]
fn a_table_is_short_of_room_long_before_it_is_full() {
    for kind in KeyMapKind::ALL {
        let pairs: Vec<Pair> = (0..2000).map(|i| (key(i), vec![5; 40])).collect();
        let table = Table::new(kind, &pairs);
        let room = |table: &Table| {
            table.key_map.room(|number| Ok(table.records[number as usize].clone())).unwrap()
        };
        assert!(!room(&table).is_short() && room(&table).fullness() < 0.97, "{:?}", room(&table));
        let (mut table, mut said_at, mut count) = (table, None, 0);
        while table.set(&key(5000 + count), &[5; 40]).is_ok() {
            count += 1;
            if said_at.is_none() && room(&table).is_short() {
                said_at = Some(count);
            }
        }
        let left = count - said_at.expect("it was said");
        assert!((20..120).contains(&left), "{kind:?}: {left} keys before the end");
        assert!(room(&table).fullness() > 0.98, "{:?}", room(&table));
    }
}
