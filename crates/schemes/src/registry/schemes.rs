//! The table of all schemes: those of this crate, and those that a program adds.

use super::descriptor::{About, Descriptor, Of, Registered};
use crate::SchemeId;
use crate::apir_dpf::ApirDpf;
use crate::dpf::Dpf;
use crate::simplepir_packed::SimplePirPacked;
use crate::singlepass::SinglePass;
use crate::tapir::{MerkleForm, Tapir};
#[cfg(feature = "all-schemes")]
use crate::{
    apir_matrix::ApirMatrix,
    doublepir::DoublePir,
    download::Download,
    dummy_subsets::{DummySubsets, two_servers::DummySubsetsTwo},
    harmony::Harmony,
    piano::{Piano, PianoAllParities},
    simplepir::SimplePir,
};
use std::sync::OnceLock;

/// The schemes of this crate, in the order in which they are listed. A new scheme needs its folder,
/// and a line here.
const OWN: &[Room] = &[
    #[cfg(feature = "all-schemes")]
    Room::of::<SimplePir>(),
    Room::of::<SimplePirPacked>(),
    #[cfg(feature = "all-schemes")]
    Room::of::<DoublePir>(),
    Room::of::<Dpf>(),
    #[cfg(feature = "all-schemes")]
    Room::of::<DummySubsets>(),
    #[cfg(feature = "all-schemes")]
    Room::of::<DummySubsetsTwo>(),
    #[cfg(feature = "all-schemes")]
    Room::of::<Harmony>(),
    #[cfg(feature = "all-schemes")]
    Room::of::<Piano>(),
    #[cfg(feature = "all-schemes")]
    Room::of::<PianoAllParities>(),
    Room::of::<SinglePass>(),
    Room::of::<Tapir<MerkleForm>>(),
    Room::of::<ApirDpf>(),
    #[cfg(feature = "all-schemes")]
    Room::of::<ApirMatrix>(),
    #[cfg(feature = "all-schemes")]
    Room::of::<Download>(),
    #[cfg(test)]
    Room::of::<crate::toy::Toy>(),
];

/// The rooms of other crates.
static FURTHER: OnceLock<&'static [Room]> = OnceLock::new();

/// Adds schemes whose rooms are in other crates, all at once. From then on, they are as those of
/// this crate. A program does so when it starts, and may do so again.
///
/// # Panics
/// If others were added before, or one of them has the name of a scheme of this crate.
pub fn add_rooms(rooms: &'static [Room]) {
    for Room { id, .. } in rooms {
        assert!(OWN.iter().all(|own| own.id != *id), "{id} is a scheme of this crate");
    }
    let added = FURTHER.get_or_init(|| rooms);
    let same = added.iter().map(|room| room.id).eq(rooms.iter().map(|room| room.id));
    assert!(same, "a program adds the rooms of all crates at once");
}

fn rooms() -> impl Iterator<Item = &'static Room> + Clone {
    OWN.iter().chain(FURTHER.get().copied().unwrap_or_default())
}

/// A scheme's name with its description.
#[derive(Clone, Copy)]
pub struct Room {
    id: SchemeId,
    about: &'static About,
    descriptor: &'static dyn Descriptor,
}

impl Room {
    /// The room that registers `S`.
    pub const fn of<S: Registered>() -> Self {
        Self { id: S::ID, about: &S::ABOUT, descriptor: Of::<S>::DESCRIPTOR }
    }
}

impl SchemeId {
    /// All schemes that this program knows.
    pub fn all() -> impl Iterator<Item = Self> + Clone {
        rooms().map(|room| room.id)
    }

    /// The properties that are the same on every table.
    pub fn about(self) -> &'static About {
        self.room().about
    }

    /// The descriptor that its folder registers.
    pub(super) fn descriptor(self) -> &'static dyn Descriptor {
        self.room().descriptor
    }

    fn room(self) -> &'static Room {
        let room = rooms().find(|room| room.id == self);
        room.unwrap_or_else(|| {
            panic!("{self} is not registered: a program calls `add_rooms` when it starts")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{PARTITION_RECORDS, Tuning, plan};
    use crate::test_tables::identity;

    #[test]
    fn what_a_scheme_says_of_itself_is_so() {
        let all: Vec<_> = SchemeId::all().collect();
        for (place, scheme) in all.iter().enumerate() {
            assert!(!all[..place].contains(scheme), "{scheme} is there twice");
            assert_eq!(scheme.name().parse::<SchemeId>().unwrap(), *scheme);
            let about = scheme.about();
            assert!(about.summary.len() <= 80 && !about.summary.ends_with('.'), "{scheme}");
            let plan = plan(*scheme, &identity(1000, 4), &Tuning::default()).unwrap();
            assert_eq!(plan.scheme, *scheme);
            assert!(about.servers.contains(&(plan.servers as u32)), "{scheme}");
            let tuning = Tuning::default().with(&PARTITION_RECORDS, 64u32);
            let cut = crate::registry::plan(*scheme, &identity(1000, 4), &tuning);
            assert_eq!(cut.is_ok(), about.has("partition-records"), "{scheme}");
        }
    }

    #[test]
    #[should_panic = "download is a scheme of this crate"]
    fn no_further_scheme_takes_the_name_of_another() {
        const TAKEN: &[Room] = &[Room::of::<Download>()];
        add_rooms(TAKEN);
    }

    #[test]
    fn every_scheme_that_has_a_constant_is_in_the_table() {
        let named = [
            SchemeId::SimplePir,
            SchemeId::SimplePirPacked,
            SchemeId::DoublePir,
            SchemeId::Dpf,
            SchemeId::DummySubsets,
            SchemeId::DummySubsetsTwo,
            SchemeId::Harmony,
            SchemeId::Piano,
            SchemeId::PianoAllParities,
            SchemeId::SinglePass,
            SchemeId::TapirMerkle,
            SchemeId::ApirDpf,
            SchemeId::ApirMatrix,
            SchemeId::Download,
        ];
        assert!(named.iter().all(|named| SchemeId::all().any(|scheme| scheme == *named)));
    }
}
