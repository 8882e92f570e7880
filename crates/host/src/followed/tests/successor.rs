//! Tables that are moved to where the served one lies.

use super::*;
use privet_table::update_log::Signers;

impl Owner {
    /// The owner of a table that continues this one, under a key of its own.
    fn hand_on(&self) -> Self {
        let heir = Self::new();
        let [old, new] = [self, &heir].map(|owner| Snapshot::open(&owner.path()).unwrap());
        let mut writer = LogWriter::open(&self.log_path(), &old).unwrap();
        let signers = Signers { publisher: Some(&self.key), next: None };
        let keys = TableKeys::from(heir.key.id());
        let (_, lineage) = writer.succeed(signers, &new, keys).unwrap();
        UpdateLog::create_after(&heir.log_path(), &new, keys, &lineage).unwrap();
        heir
    }

    /// Puts this table where `other` has its own.
    fn move_to(&self, other: &Self) {
        for (from, to) in [(self.path(), other.path()), (self.log_path(), other.log_path())] {
            let moving = to.with_extension("moving");
            fs::copy(from, &moving).unwrap();
            fs::rename(moving, to).unwrap();
        }
    }

    /// The successor that the look finds.
    fn check_offered(&self, table: &mut FollowedTable, scheme: privet_schemes::SchemeId) {
        let Some(Next::Successor(served)) = table.look().unwrap() else { panic!("a successor") };
        assert_eq!((served.scheme, &*served.name), (scheme, "t"));
        let updates = served.updates.unwrap();
        assert_eq!(updates.signing.publisher, self.key.id().0);
        assert!(!updates.signing.lineage.is_empty());
        let records = match updates.next {
            Some(next) => next.records.to_vec(),
            None => served.records.to_vec(),
        };
        assert_eq!(records.unwrap(), self.records);
    }
}

#[test]
fn a_successor_is_offered_until_it_is_taken_and_then_followed() {
    for epochs_before in 0..3u64 {
        let mut owner = Owner::new();
        owner.update(&[1], false);
        let (served, mut table) = owner.serve().unwrap();
        let scheme = served.scheme;
        // An epoch that the server has not seen when the table ends.
        owner.update(&[2], false);
        let mut heir = owner.hand_on();
        (0..epochs_before).for_each(|number| heir.update(&[number], false));
        let old = [owner.path(), owner.log_path()].map(|path| fs::read(path).unwrap());
        heir.move_to(&owner);
        assert!(table.has_changed());
        for _ in 0..2 {
            heir.check_offered(&mut table, scheme);
            assert_eq!(table.position.identity.id, served.identity.id, "it is not taken yet");
        }
        table.taken();
        assert!(table.look().unwrap().is_none() && !table.has_changed());
        let mut heir = Owner { directory: owner.directory, ..heir };
        heir.update(&[3, 4], false);
        let next = epochs_before + 1;
        assert_eq!(epochs(&heir.check_found(&mut table)), [(next, true)]);

        // The table before is no successor.
        for (path, bytes) in [heir.path(), heir.log_path()].into_iter().zip(old) {
            fs::remove_file(&path).unwrap();
            fs::write(path, bytes).unwrap();
        }
        assert_eq!(refused(&mut table).blame(), Blame::Integrity);
    }
}

#[test]
fn a_table_that_does_not_continue_the_served_one_is_refused_and_the_served_one_goes_on() {
    let mut owner = Owner::new();
    let unsigned = Owner::new();
    fs::copy(owner.path(), unsigned.path()).unwrap();
    owner.update(&[1], false);
    let mut table = owner.follow();
    let mut stranger = Owner::new();
    stranger.update(&[1], false);
    let (another, compacted) = (stranger.hand_on(), {
        let mut heir = owner.hand_on();
        heir.update(&[1], true);
        heir
    });
    for (wrong, how) in [
        (&stranger, "is another table than the one that is served"),
        (&another, "is another table than the one that is served"),
        (&compacted, "need all epochs since the succession"),
    ] {
        wrong.move_to(&owner);
        for _ in 0..2 {
            let error = refused(&mut table);
            assert_eq!(error.blame(), Blame::Integrity, "{error}");
            assert!(error.message().contains(how), "{how}: {error}");
        }
    }
    // Signed by somebody who has not the served table's key.
    let forged = Owner { key: PublisherKey::generate().unwrap(), ..unsigned };
    let snapshot = Snapshot::open(&forged.path()).unwrap();
    UpdateLog::create(&forged.log_path(), &snapshot, forged.key.id()).unwrap();
    for number in 0..2 {
        let written = BTreeMap::from([(number, vec![9; LEN as usize])]);
        let update = TableUpdate::new(snapshot.identity().shape, written, None).unwrap();
        let mut writer = LogWriter::open(&forged.log_path(), &snapshot).unwrap();
        writer.append(&forged.key, &update).unwrap();
    }
    forged.hand_on().move_to(&owner);
    let error = refused(&mut table);
    assert!(error.message().contains("a signature of the succession"), "{error}");
}

/// A log's header names the next key, and nobody signs the header.
#[test]
fn the_same_table_with_another_next_key_is_refused() {
    let owner = Owner::new();
    let snapshot = Snapshot::open(&owner.path()).unwrap();
    let keys = TableKeys::from(owner.key.id());
    UpdateLog::create(&owner.log_path(), &snapshot, keys).unwrap();
    let mut table = owner.follow();
    let stranger = PublisherKey::generate().unwrap();
    let keys = TableKeys { next: Some(stranger.id().as_next_key()), ..keys };
    fs::remove_file(owner.log_path()).unwrap();
    UpdateLog::create(&owner.log_path(), &snapshot, keys).unwrap();
    let error = refused(&mut table);
    assert!(error.message().contains("names another next key"), "{error}");
}

#[test]
fn the_publisher_who_was_named_before_a_succession_may_still_be_named() {
    let mut owner = Owner::new();
    owner.update(&[1], false);
    let named = |publisher| TableFile { publisher: Some(publisher), ..owner.table_file() }.open();
    let (_, mut table) = named(owner.key.id()).unwrap();
    let scheme = table.table.scheme.unwrap();
    let heir = owner.hand_on();
    heir.move_to(&owner);
    heir.check_offered(&mut table, scheme);
    assert!(named(owner.key.id()).is_ok() && named(heir.key.id()).is_ok());
    let error = named(PublisherKey::generate().unwrap().id()).err().unwrap();
    assert_eq!(error.blame(), Blame::Integrity, "{error}");
}
