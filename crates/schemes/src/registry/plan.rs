//! What is known about a scheme on a table before any of its state exists.
//!
//! Public parameters are derived if possible, not announced. SimplePIR's matrix seed follows from
//! the table's id and its number of columns from shape and layout, so its server announces eight
//! bytes. [`SchemePlan::from_announcement`] refuses parameters that a scheme's security does not
//! cover.

#[cfg(feature = "servers")]
use super::{Costs, Work, descriptor::Told};
use crate::SchemeId;
use crate::contract::{Message, Offline, Parameters, QueryMessage, Role, refused};
use crate::offline::OfflinePhase;
use privet_core::{Error, Result, TableIdentity};

/// The most bytes of a query, answer, request or reply: 128 MiB. Both sides hold them in memory.
pub const MAX_MESSAGE_LEN: usize = 1 << 27;

/// What is known about a scheme on a table before any of its state exists: the sizes of all
/// messages, and what clients must receive first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemePlan {
    /// The scheme.
    pub scheme: SchemeId,
    /// The scheme's parameters in their canonical encoding.
    pub parameters: Vec<u8>,
    /// How many servers take part in a query.
    pub servers: usize,
    /// Size of every query to the server of each role, in bytes.
    pub query_lens: Vec<usize>,
    /// Size of every answer of one server, in bytes.
    pub answer_len: usize,
    /// What a client must receive before the first query.
    pub offline: OfflinePhase,
}

impl SchemePlan {
    /// Reads what a server announced. Refuses parameters that are malformed, inconsistent with the
    /// table or below the security target.
    ///
    /// # Errors
    /// As [`Parameters::decode`].
    pub fn from_announcement(
        scheme: SchemeId,
        identity: &TableIdentity,
        parameters: &[u8],
    ) -> Result<Self> {
        let plan = scheme.descriptor().announced(identity, parameters)?;
        plan.check_messages().map_err(refused)?;
        Ok(plan)
    }

    /// Refuses messages that are too long.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse), with the numbers.
    pub(super) fn check_messages(&self) -> Result<()> {
        let asked = match self.offline {
            OfflinePhase::Ask { request_len, reply_len, .. } => request_len.max(reply_len),
            _ => 0,
        };
        let longest = self.longest_query().max(self.answer_len).max(asked);
        if longest <= MAX_MESSAGE_LEN {
            return Ok(());
        }
        Err(Error::api_misuse(format!(
            "{} on this table would have messages of {longest} bytes; the limit is {MAX_MESSAGE_LEN}",
            self.scheme
        )))
    }

    pub(super) fn of<S: Offline>(parameters: &S::Parameters) -> Self {
        let servers = S::servers(parameters);
        Self {
            scheme: S::ID,
            parameters: parameters.encode(),
            servers,
            query_lens: (0..servers)
                .map(|role| S::Query::query_len(parameters, Role(role as u8)))
                .collect(),
            answer_len: S::Answer::encoded_len(parameters),
            offline: S::offline_phase(parameters),
        }
    }

    /// Size of the longest query to one server, in bytes.
    pub fn longest_query(&self) -> usize {
        self.query_lens.iter().copied().max().unwrap_or(0)
    }

    /// How many bytes a client of the table keeps of one generation of single-use hints; 0 for
    /// schemes without such hints. The journal of lookups comes on top. While the client prepares
    /// the next generation, it keeps as much again.
    ///
    /// It follows from the parameters, so it is known before anything is received.
    pub fn hints_len(&self, identity: &TableIdentity) -> u64 {
        // Invalid parameters never get here: no plan is made of them.
        self.scheme.descriptor().hints_len(identity, &self.parameters).unwrap_or(0)
    }

    /// A digest of everything both sides must agree on: the scheme, its parameters and the table in
    /// its epoch. Every message carries it.
    pub fn digest(&self, identity: &TableIdentity) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("privet 2026-11 parameter digest");
        hasher.update(&identity.id.0);
        hasher.update(&identity.epoch.0.to_le_bytes());
        hasher.update(&identity.digest.0);
        hasher.update(&identity.shape.records().to_le_bytes());
        hasher.update(&identity.shape.record_len().to_le_bytes());
        hasher.update(&(self.scheme.name().len() as u64).to_le_bytes());
        hasher.update(self.scheme.name().as_bytes());
        hasher.update(&self.parameters);
        *hasher.finalize().as_bytes()
    }
}

/// What servers, forecasts and people ask of a plan.
#[cfg(feature = "servers")]
impl SchemePlan {
    /// How many queries a generation of hints serves, if it follows from the parameters.
    pub fn supply(&self, identity: &TableIdentity) -> Option<u64> {
        self.told(identity)?.supply
    }

    /// A description of the parameters for people, beyond the scheme's name, if there is anything
    /// to say.
    pub fn words(&self, identity: &TableIdentity) -> Option<String> {
        self.told(identity)?.words
    }

    /// The least work of a query.
    pub fn work(&self, identity: &TableIdentity) -> Work {
        self.told(identity).map_or(Work::WholeTable, |told| told.work)
    }

    /// What each step costs, in counted operations.
    pub fn costs(&self, identity: &TableIdentity) -> Costs {
        self.told(identity).map_or_else(Costs::default, |told| told.costs)
    }

    /// What queries reveal to the server of role `role`, in words, if words are needed.
    pub fn queries_say(&self, identity: &TableIdentity, role: Role) -> Option<String> {
        self.scheme.descriptor().queries_say(identity, &self.parameters, role)
    }

    /// Whether the bits of a query to the server of role `role` look random.
    pub fn queries_look_random(&self, role: Role) -> bool {
        self.scheme.descriptor().queries_look_random(role)
    }

    fn told(&self, identity: &TableIdentity) -> Option<Told> {
        self.scheme.descriptor().told(identity, &self.parameters).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Tuning, plan};
    use super::*;
    use crate::test_tables::identity;
    use privet_core::Blame;

    #[test]
    fn messages_beyond_reason_are_refused() {
        let table = identity(1 << 14, 32);
        for scheme in [SchemeId::DummySubsetsTwo, SchemeId::SinglePass] {
            let good = plan(scheme, &table, &Tuning::default()).unwrap();
            good.check_messages().unwrap();
            let (mut answer, mut query, mut reply) = (good.clone(), good.clone(), good);
            answer.answer_len = MAX_MESSAGE_LEN + 1;
            query.query_lens[1] = MAX_MESSAGE_LEN + 1;
            let OfflinePhase::Ask { reply_len, .. } = &mut reply.offline else { panic!() };
            *reply_len = MAX_MESSAGE_LEN + 1;
            for long in [answer, query, reply] {
                let refused = long.check_messages().err().unwrap();
                assert_eq!(refused.blame(), Blame::ApiMisuse);
                assert!(refused.message().contains("134217729 bytes"), "{refused}");
            }
        }
    }
}
