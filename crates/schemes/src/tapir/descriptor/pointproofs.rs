//! The form with Pointproofs, and its options.

use super::{POINTPROOFS_ABOUT, RegisteredForm};
use crate::contract::Parameters as _;
use crate::registry::room::*;
use crate::singlepass::SinglePassParameters;
use crate::singlepass::descriptor::costs;
use crate::tapir::{PointproofsForm, TapirParameters, TapirServer, vectors_of};
use privet_core::codec::Reader;
use privet_core::commit::pointproofs::{Openings, Pointproofs, ReferenceString};
use privet_core::quantities::hexadecimal;

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
        options: &[&PARTITION_RECORDS, &REFERENCE_STRING, &PRECOMPUTE_OPENINGS],
        ..POINTPROOFS_ABOUT
    };
    const SERVER: fn(ServerHost<TapirServer<Self>>) -> ServerHost<TapirServer<Self>> =
        |server| server.streaming().succeeding();
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

    fn makeshift(identity: &TableIdentity, tuning: &Tuning) -> Option<Makeshift> {
        if tuning.has(&REFERENCE_STRING) {
            return None;
        }
        let size = match tuning.count(&PARTITION_RECORDS) {
            Some(records) => records,
            None => partition_records_for(identity.shape.records()),
        };
        let tuning = tuning.clone();
        Some(Makeshift {
            what: format!("a reference string for partitions of {} records", count(size.into())),
            make: Box::new(move || {
                let string = ReferenceString::generate(size, &mut SecretRng::from_os()?)?;
                Ok(tuning.with(&REFERENCE_STRING, Value::from(Arc::new(string))))
            }),
        })
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
            ..costs(pass)
        }
    }
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
