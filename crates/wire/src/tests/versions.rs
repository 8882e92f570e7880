//! Tables that change: earlier versions, and the epochs between them.

use super::*;
use crate::UpdatesDescription;
use crate::limits::{MAX_EARLIER, MAX_EPOCH_LEN};
use crate::updates::{EpochReader, encode, encoded_len};
use privet_core::{Blame, Result};
use proptest::prelude::*;

fn at(epoch: u64) -> TableDescription {
    table("packages", TableIdentity { epoch: Epoch(epoch), ..identity(1000, 20) }, 7)
}

fn updates(first_epoch: u64) -> Option<UpdatesDescription> {
    Some(UpdatesDescription {
        publisher: [5; 32],
        first_epoch: Epoch(first_epoch),
        next_key: None,
        lineage: None,
    })
}

fn read(table: proto::Table) -> Result<TableDescription> {
    let message = proto::DescribeResponse { tables: vec![table], ..announced() };
    ServerDescription::try_from(message).map(|description| description.tables[0].clone())
}

#[test]
fn a_table_with_earlier_versions_is_read_as_it_was_described() {
    for earlier in 0..=MAX_EARLIER as u64 {
        let earlier = (0..earlier).map(|back| at(9 - 2 * back)).collect();
        let table = at(10).with_versions(updates(3), earlier).unwrap();
        assert_eq!(read(table.clone().into()).unwrap(), table);
        let epochs: Vec<_> = table.versions().map(|version| version.identity.epoch.0).collect();
        assert_eq!(epochs, [10, 9, 7, 5][..=table.earlier.len()]);
    }
    // Message limits cover earlier served versions, which may have longer messages.
    let longer = table("packages", TableIdentity { epoch: Epoch(1), ..identity(1000, 20) }, 1);
    let both = at(2).with_versions(None, vec![longer]).unwrap();
    let description = ServerDescription::new("privet", vec![both]).unwrap();
    assert_eq!(description.plans().count(), 2);
}

#[test]
fn what_is_no_earlier_version_is_refused() {
    let other_name = table("other", identity(1000, 20), 7);
    let wrong = [
        vec![at(10)],
        vec![at(11)],
        vec![at(8), at(9)],
        vec![at(9), at(9)],
        vec![other_name],
        vec![at(9).with_versions(updates(9), Vec::new()).unwrap()],
        vec![at(9).with_versions(None, vec![at(8)]).unwrap()],
        (0..=MAX_EARLIER as u64).map(|back| at(9 - back)).collect(),
    ];
    for earlier in wrong {
        let announced = proto::Table {
            earlier: earlier.iter().cloned().map(Into::into).collect(),
            ..at(10).into()
        };
        let error = read(announced).unwrap_err();
        assert_eq!(error.blame(), Blame::InvalidMessage, "{error}");
        assert!(at(10).with_versions(None, earlier).is_err());
    }
    // A log that begins only after the table's version, or with an invalid key.
    assert!(at(10).with_versions(updates(11), Vec::new()).is_err());
    for announced in [
        proto::Updates { publisher: vec![5; 31], first_epoch: 1, ..Default::default() },
        proto::Updates { publisher: vec![5; 32], first_epoch: 11, ..Default::default() },
    ] {
        let announced = proto::Table { updates: Some(announced), ..at(10).into() };
        assert_eq!(read(announced).unwrap_err().blame(), Blame::InvalidMessage);
    }
}

proptest! {
    #[test]
    fn epochs_are_taken_apart_however_they_arrive(
        epochs in proptest::collection::vec(
            (proptest::collection::vec(any::<u8>(), 0..40), proptest::collection::vec(any::<u8>(), 0..9)),
            0..6,
        ),
        pieces in proptest::collection::vec(1..30usize, 1..20),
    ) {
        let mut bytes = Vec::new();
        for (epoch, commitments) in &epochs {
            let before = bytes.len();
            encode(epoch, commitments, &mut bytes).unwrap();
            prop_assert_eq!(bytes.len() - before, encoded_len(epoch.len(), commitments.len()));
        }
        let (mut reader, mut found) = (EpochReader::default(), Vec::new());
        let (mut rest, mut pieces) = (bytes.as_slice(), pieces.iter().cycle());
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(rest.len().min(*pieces.next().unwrap()));
            found.extend(reader.take(piece).unwrap());
            // Empty exactly at an end.
            let taken = bytes.len() - behind.len();
            let mut ends = epochs.iter().scan(0, |end, (epoch, commitments)| {
                *end += encoded_len(epoch.len(), commitments.len());
                Some(*end)
            });
            prop_assert_eq!(reader.is_empty(), ends.any(|end| end == taken));
            rest = behind;
        }
        let found: Vec<_> =
            found.into_iter().map(|found| (found.epoch.to_vec(), found.commitments.to_vec())).collect();
        prop_assert_eq!(found, epochs);
    }
}

#[test]
fn an_epoch_that_is_announced_too_long_is_refused_before_it_comes() {
    for (first, len) in [(true, MAX_EPOCH_LEN + 1), (false, u32::MAX as usize)] {
        let mut bytes = if first { Vec::new() } else { vec![0; 4] };
        bytes.extend((len as u32).to_le_bytes());
        let error = EpochReader::default().take(&bytes).unwrap_err();
        assert_eq!(error.blame(), Blame::InvalidMessage);
    }
}

/// Another table of that name, in the version `epoch`.
fn other(epoch: u64) -> TableDescription {
    let identity = TableIdentity { id: TableId([6; 16]), ..identity(1000, 20) };
    table("packages", TableIdentity { epoch: Epoch(epoch), ..identity }, 7)
}

#[test]
fn tables_that_are_succeeded_are_described_apart_from_earlier_versions() {
    let predecessor = |epoch| other(epoch).with_versions(updates(3), Vec::new()).unwrap();
    // It may have reached a later version.
    let earlier = vec![at(1), predecessor(12), predecessor(11)];
    let table = at(2).with_versions(updates(1), earlier).unwrap();
    let message = proto::Table::from(table.clone());
    assert_eq!((message.earlier.len(), message.predecessors.len()), (1, 2));
    assert_eq!(read(message.clone()).unwrap(), table);
    let (own, old) = (table.identity.id, TableId([6; 16]));
    let epochs = |id| table.versions_of(id).map(|version| version.identity.epoch.0);
    assert_eq!((epochs(own).collect(), epochs(old).collect()), (vec![2, 1], vec![12, 11]));
    assert_eq!((table.updates_of(own), table.updates_of(old)), (updates(1), updates(3)));
    assert_eq!(table.updates_of(TableId([9; 16])), None);

    let mut unordered = message.clone();
    unordered.predecessors.reverse();
    let mut mixed = message.clone();
    mixed.earlier.append(&mut mixed.predecessors);
    let own_as_other = proto::Table { predecessors: vec![at(1).into()], ..at(2).into() };
    let mut nested = message.clone();
    nested.predecessors[0].predecessors = vec![at(1).into()];
    let mut too_many = message;
    too_many.predecessors = (0..MAX_EARLIER as u64).map(|back| other(9 - back).into()).collect();
    for wrong in [unordered, mixed, own_as_other, nested, too_many] {
        assert_eq!(read(wrong).unwrap_err().blame(), Blame::InvalidMessage);
    }
}

#[test]
fn a_next_key_and_a_lineage_are_read_as_they_were_described() {
    let lineage = PartDescription::new(400, [6; 32]);
    let described = UpdatesDescription {
        next_key: Some([4; 32]),
        lineage: Some(lineage),
        ..updates(3).unwrap()
    };
    let table = at(10).with_versions(Some(described), Vec::new()).unwrap();
    assert_eq!(read(table.clone().into()).unwrap(), table);
    for len in [0, crate::limits::MAX_LINEAGE_LEN + 1] {
        let lineage = Some(PartDescription::new(len, [6; 32]));
        let described = UpdatesDescription { lineage, ..described };
        let table = at(10).with_versions(Some(described), Vec::new()).unwrap();
        assert_eq!(read(table.into()).unwrap_err().blame(), Blame::InvalidMessage);
    }
    let mut short: proto::Table = table.into();
    short.updates.as_mut().unwrap().next_key = Some(vec![4; 31]);
    assert_eq!(read(short).unwrap_err().blame(), Blame::InvalidMessage);
}
