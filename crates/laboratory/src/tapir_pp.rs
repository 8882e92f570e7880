//! TAPIR-PP: the second form of [TAPIR](privet_schemes::tapir). Answers are verified by
//! [`pointproofs`](crate::pointproofs), one proof of 48 bytes for the records of all partitions.
//! Servers read them from a trusted [`ReferenceString`].
//!
//! For `Q` partitions of `M` records of `w` bytes, `n` records in all, it costs in addition to
//! SinglePass:
//!
//! | | |
//! |---|---|
//! | offline, server, once for all clients | n additions of points, about 25 each |
//! | offline, client | n·w + 96·M + 48·Q down |
//! | answer, each server | 48 more down; n products of numbers, a multi-exponentiation of 2·M points |
//! | recover, client | a pairing for each different offset, 2·Q multiplications of points |
//! | state, client | 192·M + 96·Q more, public; in memory 12 KiB for each partition, and 19 KiB for each of M if that is at most 1024 |
//! | state, server | 32·n more |
//!
//! Different from the paper: openings are not stored beside the records, unless the operator wants
//! it. A server makes them for each query.

use crate::pointproofs::{Openings, Pointproofs, ReferenceString};
use privet_core::codec::Reader;
use privet_core::commit::{VectorCommitment as _, Vectors};
use privet_core::quantities::hexadecimal;
use privet_laboratory_kernels::bls12_381::G1;
use privet_schemes::SchemeId;
use privet_schemes::contract::Parameters as _;
use privet_schemes::registry::room::*;
use privet_schemes::singlepass::{self, SinglePassParameters};
use privet_schemes::tapir::{Form, RegisteredForm, TapirParameters, vectors_of};

/// The form's name.
pub(crate) const ID: SchemeId = SchemeId::named("tapir-pp");

/// TAPIR-PP: Pointproofs, aggregated over all partitions.
pub struct PointproofsForm;

impl Form for PointproofsForm {
    const ID: SchemeId = ID;
    type Commitment = Pointproofs;

    /// The reference string's size (u32) and its digest (32 bytes).
    fn encode(commitment: &Pointproofs) -> Vec<u8> {
        let mut bytes = commitment.size().to_le_bytes().to_vec();
        bytes.extend(commitment.reference_digest());
        bytes
    }

    /// Memory for multiples of the commitments, and for the precomputed part of pairings with the
    /// reference string's points.
    fn verifier_memory(commitment: &Pointproofs) -> u64 {
        commitment.verifier_memory() + commitment.announcement_len()
    }

    /// A valid point: a check stops early if the bytes are no point, and adding the point at
    /// infinity is faster than adding another one.
    fn proof_in_form(_: &Pointproofs) -> Vec<u8> {
        G1::generator().compress().to_vec()
    }

    fn decode(vectors: Vectors, reader: &mut Reader<'_>) -> Result<Pointproofs> {
        let size = reader.u32()?;
        Pointproofs::for_client(vectors, size, reader.array()?)
    }
}

/// The [`ReferenceString`] with which TAPIR-PP commits.
pub static REFERENCE_STRING: SchemeOption = SchemeOption {
    missing: Some(
        "tapir-pp commits to the table with a reference string, and none is given: let somebody whom all clients trust make one, and give it to both servers",
    ),
    ..SchemeOption::new(
        "reference-string",
        OptionKind::File {
            what: "the reference string",
            needed: Reason::ReferenceStringNeeded,
            // The largest ones are for partitions of 2^16 records, with 192 bytes for each record.
            most_bytes: 16 << 20,
            decode: |bytes| Ok(Arc::new(ReferenceString::decode(bytes)?).into()),
        },
        "The reference string for the commitments to the table. Somebody whom all clients trust \
         must make it. Both servers of a table need the same file",
    )
};

/// Whether a server computes all openings before it starts, so that answers take less work.
pub static PRECOMPUTE_OPENINGS: SchemeOption = SchemeOption::new(
    "precompute-openings",
    OptionKind::Flag,
    "Compute the openings of all records before serving, so that answers take less work. This \
     takes long, and for each record 96 bytes of memory and of the cache",
);

impl RegisteredForm for PointproofsForm {
    const ABOUT: About = About {
        servers: 2..=2,
        verifies: true,
        commits: true,
        options: &[&PARTITION_RECORDS, &REFERENCE_STRING, &PRECOMPUTE_OPENINGS],
        ..About::new("SinglePass verified by short proofs, with a trusted reference string", 40)
    };
    const WITH_A_PROOF: &'static str = "them, with one proof of 48 bytes,";

    /// Partitions as large as the reference string allows, unless chosen otherwise.
    fn parameters(identity: &TableIdentity, tuning: &Tuning) -> Result<TapirParameters<Self>> {
        let reference: Arc<ReferenceString> =
            tuning.object(&REFERENCE_STRING).ok_or_else(|| {
                Error::api_misuse(
                    "tapir-pp needs a reference string, and none was given; somebody whom all clients trust must make it",
                )
                .because(Reason::ReferenceStringNeeded)
            })?;
        let largest = u64::from(reference.size());
        let pass = SinglePassParameters::with_partition_records(
            identity.shape,
            tuning.number(&PARTITION_RECORDS).unwrap_or(largest),
        )?;
        let openings = match tuning.has(&PRECOMPUTE_OPENINGS) {
            true => Openings::Precomputed,
            false => Openings::OnDemand,
        };
        let commitment = Pointproofs::new(vectors_of(&pass)?, reference, openings)?;
        TapirParameters::new(pass, commitment)
    }

    /// The parameters with the announced cut and the announced reference string.
    fn parameters_as(
        identity: &TableIdentity,
        announced: &[u8],
        tuning: &Tuning,
    ) -> Result<TapirParameters<Self>> {
        let records = Reader::new("the parameters of TAPIR", announced).u64()?;
        let tuning = tuning.clone().with(&PARTITION_RECORDS, records);
        let parameters = Self::parameters(identity, &tuning)?;
        match parameters.encode() == announced {
            true => Ok(parameters),
            false => Err(Error::api_misuse(
                "the given reference string is not the one that clients of this table have seen",
            )),
        }
    }

    fn words(parameters: &TapirParameters<Self>) -> String {
        format!(
            "{} in all; the reference string is for partitions of up to {} records, its digest {}",
            bytes(parameters.state_bytes()),
            count(parameters.commitment().size().into()),
            hexadecimal(&parameters.commitment().reference_digest())
        )
    }

    fn work(_pass: &SinglePassParameters) -> Work {
        Work::Points
    }

    fn costs(parameters: &TapirParameters<Self>) -> Costs {
        let (pass, records) = (parameters.pass(), parameters.shape().records());
        let (size, partitions) = (pass.partition_records(), u64::from(pass.partitions()));
        let answer = 0.25 * point_products(2 * u64::from(size)) + 20.0 * steps(records);
        Costs {
            setup: 0.3 * point_products(records),
            hints: Operations::default(),
            prepare: 2.0 * point_products(u64::from(size) + partitions),
            answer,
            answer_of_eight: answer,
            recover: 4.0 * point_products(partitions + 5),
            server_bytes: 32 * records,
            ..singlepass::costs(pass)
        }
    }
}

/// If the scheme needs a reference string and `tuning` has none: the size of one that suits the
/// table.
pub fn missing_string(scheme: SchemeId, identity: &TableIdentity, tuning: &Tuning) -> Option<u32> {
    let is_missing = scheme == ID && !tuning.has(&REFERENCE_STRING);
    let size = || match tuning.count(&PARTITION_RECORDS) {
        Some(records) => records,
        None => partition_records_for(identity.shape.records()),
    };
    is_missing.then(size)
}

/// The tuning, with a reference string made on the spot if the scheme needs one and there is none.
/// Only for a process that is client and server in one, or whose clients trust it.
///
/// # Errors
/// If there is none of that size, or no entropy.
pub fn completed(scheme: SchemeId, identity: &TableIdentity, tuning: Tuning) -> Result<Tuning> {
    let Some(size) = missing_string(scheme, identity, &tuning) else { return Ok(tuning) };
    let string = ReferenceString::generate(size, &mut SecretRng::from_os()?)?;
    Ok(tuning.with(&REFERENCE_STRING, Arc::new(string)))
}

/// How many records a partition of a table of `records` records should have: the power of two
/// nearest to 2·√n, within the limits of partitions. The work for an answer grows with the size of
/// partitions, and its bytes with their number.
fn partition_records_for(records: u64) -> u32 {
    const MOST: u64 = 1 << 16;
    let about = records.isqrt().saturating_mul(2).clamp(2, MOST);
    let above = about.next_power_of_two();
    let nearest = if about * 4 < above * 3 { above / 2 } else { above };
    // At most the limit, so it fits 32 bits.
    nearest as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_core::{Blame, TableShape};
    use privet_schemes::conformance::hinted::Hinted as _;
    use privet_schemes::contract::Preparation as _;
    use privet_schemes::offline::StreamConsumer as _;
    use privet_schemes::tapir::TapirPreparation;
    use privet_schemes::tapir::tests::adversaries::{
        every_bit, every_byte_of_the_stream, true_of_something_else,
    };
    use privet_schemes::tapir::tests::lookups::look_up;
    use privet_schemes::tapir::tests::selective_failure::{Lie, Spoiled, leak};
    use privet_schemes::tapir::tests::state::through_crashes;
    use privet_schemes::tapir::tests::updates::updates;
    use privet_schemes::tapir::tests::{self, TestForm, Tested};
    use privet_schemes::test_tables::{Sequence, identity, sequences};
    use proptest::prelude::*;

    type World = tests::World<PointproofsForm>;

    impl TestForm for PointproofsForm {
        fn commitment(pass: &SinglePassParameters) -> Pointproofs {
            let reference = crate::tests::reference_string();
            Pointproofs::new(vectors_of(pass).unwrap(), reference, Openings::OnDemand).unwrap()
        }
    }

    // The suite of schemes with hints takes tables of any size, for which this one is too slow.
    proptest! {
        #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

        #[test]
        fn any_sequence_of_a_small_table(
            records in 1u64..40,
            record_len in 1u64..40,
            partition_records in 2u64..=16,
            sequence in sequences(),
        ) {
            look_up::<PointproofsForm>(records, record_len, partition_records, 4, sequence);
        }
    }

    #[test]
    fn records_longer_than_a_hash_block() {
        look_up::<PointproofsForm>(20, 1500, 5, 2, Sequence::Random);
    }

    #[test]
    fn a_client_killed_after_every_change_goes_on() {
        through_crashes(World::cut(7, 3, 4), vec![0, 6, 1, 7, 2, 8, 3]);
    }

    #[test]
    fn clients_follow_updates() {
        updates(World::cut(7, 3, 4), &[(2, 0), (0, 3), (3, 6)], 2);
    }

    #[test]
    fn every_flipped_bit_ends_it() {
        // Each of the sixteen records meets other bits.
        every_bit(World::cut(16, 2, 4), 1, 32);
    }

    #[test]
    fn what_is_true_of_something_else_ends_it() {
        true_of_something_else(World::cut(6, 3, 3));
    }

    #[test]
    fn a_stream_that_was_not_announced_makes_no_hints() {
        every_byte_of_the_stream(World::cut(5, 3, 3));
    }

    /// If both servers lie or are broken, they may announce nonsense. Then there are no hints, and
    /// no panic.
    #[test]
    fn an_announcement_that_is_no_commitment_is_refused() {
        let mut world = World::cut(5, 3, 3);
        let stream = world.stream();
        let announced_at = world.parameters.commitment().vectors().padded_bytes() as usize;
        for at in (announced_at..stream.len()).step_by(7) {
            let mut changed = stream.clone();
            changed[at] ^= 4;
            let digest = *blake3::hash(&changed).as_bytes();
            let (rng, kernels) = (&mut world.rng, privet_kernels::Kernels::detect());
            let parameters = Tested::clients(&world.parameters);
            let mut preparation =
                TapirPreparation::<PointproofsForm>::begin(parameters, digest, rng, kernels)
                    .unwrap();
            preparation.absorb(0, &changed).unwrap();
            assert_eq!(preparation.finish().unwrap_err().blame(), Blame::PeerMisbehaved, "{at}");
        }
    }

    /// Whether a client ends tells nothing about the wanted record.
    #[test]
    fn the_rate_of_ends_does_not_depend_on_the_record() {
        let mut world = World::cut(6, 2, 3);
        for server in 0..2 {
            let spoiled =
                Spoiled { server, partition: 1, offsets: |offset| offset == 0, lie: Lie::Record };
            // The altered record itself, its neighbour, and a record of the other partition.
            let leak = leak(&mut world, &[3, 4, 0], spoiled, 120, false);
            assert!(leak < 9.0, "{spoiled:?}: {leak}");
        }
    }

    #[test]
    fn parameters_say_how_the_table_is_cut_and_committed_to() {
        let parameters =
            Tested::<PointproofsForm>::parameters(TableShape::new(100, 8).unwrap(), Some(16));
        let encoded = parameters.encode();
        assert_eq!(encoded.len(), 8 + 4 + 32);
        let decode = |identity: &TableIdentity, bytes: &[u8]| {
            TapirParameters::<PointproofsForm>::decode(identity, bytes)
        };
        assert_eq!(decode(&identity(100, 8), &encoded).unwrap().encode(), encoded);
        let of_size =
            |size: u32| [&16u64.to_le_bytes()[..], &size.to_le_bytes(), &[0; 32]].concat();
        // Reference strings of size zero, of a size too small for a partition, and of a size that
        // is too large.
        for size in [0u32, 15, u32::MAX] {
            let refused = decode(&identity(100, 8), &of_size(size)).err().unwrap();
            assert_eq!(refused.blame(), Blame::PeerMisbehaved, "{size}");
        }
        // Servers cannot make clients hold memory beyond reason: 12 KiB for each partition.
        let partitions = |count: u64| decode(&identity(count * 16, 8), &of_size(16)).map(|_| ());
        partitions(1 << 17).unwrap();
        assert_eq!(partitions(1 << 18).unwrap_err().blame(), Blame::PeerMisbehaved);
    }

    #[test]
    fn partitions_have_about_twice_the_square_root() {
        for (records, size) in
            [(1, 2), (4, 4), (1 << 14, 256), (1 << 20, 2048), (1 << 22, 4096), (u64::MAX, 1 << 16)]
        {
            assert_eq!(partition_records_for(records), size, "{records}");
        }
        // 2 · 707 = 1414 is nearer to 1024 than to 2048.
        assert_eq!(partition_records_for(500_000), 1024);
    }
}
