//! Both servers: the same program with the same table, in either role.

use super::messages::{HintsReply, HintsRequest, Replenishment, TwoServersQuery};
use super::{DummySubsetsAnswer, DummySubsetsParameters, DummySubsetsTwo};
use crate::contract::{Answerer, Message as _, Role, SchemeOf, asked};
use crate::dummy_subsets::DummySubsetsServer;
use privet_core::hints::partition_stream::empty_group;
use privet_core::{Result, TableSource};
use privet_kernels::Kernels;
use privet_kernels::subset_hints::PartitionGroup;
use std::sync::Mutex;

/// Groups of partitions that are kept for the next request.
const GROUPS_KEPT: usize = 4;

/// A server for both roles.
pub struct DummySubsetsTwoServer {
    server: DummySubsetsServer,
    kernels: Kernels,
    groups: Mutex<Vec<PartitionGroup>>,
}

impl DummySubsetsTwoServer {
    /// Copies `table` into place; the source can be dropped.
    ///
    /// # Errors
    /// As [`DummySubsetsServer::new`].
    pub fn new<'t>(
        parameters: DummySubsetsParameters,
        table: impl Into<TableSource<'t>>,
        kernels: Kernels,
    ) -> Result<Self> {
        // Takes memory for one group now, so that a request can always be served.
        let groups = Mutex::new(vec![empty_group(parameters.cut())?]);
        let server = DummySubsetsServer::new(parameters, table, kernels)?;
        Ok(Self { server, kernels, groups })
    }

    /// Both halves of one pair (Algorithm 3).
    fn replenish(&self, request: &Replenishment) -> DummySubsetsAnswer {
        let cut = self.parameters().cut();
        let partitions = cut.count() as usize;
        let (mut selects, mut offsets) = (vec![0; partitions], vec![0; partitions]);
        let key = request.key.expose();
        self.kernels.subset_rebuild(key, request.id, cut.records(), &mut selects, &mut offsets);
        // The work is the same for every cutoff: partitions below it go to one sum, and all others
        // to the other.
        let mut positions = vec![0; partitions];
        let (mut below, mut above) = (0, partitions);
        for ((partition, select), offset) in (0u64..).zip(&selects).zip(&offsets) {
            let position = partition << cut.offset_bits() | u64::from(*offset);
            let is_below = *select < request.cutoff;
            above -= usize::from(!is_below);
            positions[if is_below { below } else { above }] = position;
            below += usize::from(is_below);
        }
        let (of_below, of_above) = positions.split_at(below);
        self.server.sums([of_below, of_above])
    }

    /// A group to work with.
    fn group(&self) -> Result<PartitionGroup> {
        let kept = self.groups.lock().ok().and_then(|mut groups| groups.pop());
        kept.map_or_else(|| empty_group(self.parameters().cut()), Ok)
    }
}

impl Answerer for DummySubsetsTwoServer {
    const SHARES_PASSES: bool = false;

    fn parameters(&self) -> &DummySubsetsParameters {
        self.server.parameters()
    }

    fn answer(&self, role: Role, queries: &[TwoServersQuery]) -> Vec<DummySubsetsAnswer> {
        let answer = |query: &TwoServersQuery| match query {
            TwoServersQuery::Replenish(request) => self.replenish(request),
            TwoServersQuery::Subsets(query) => {
                self.server.answer(role, std::slice::from_ref(query)).swap_remove(0)
            }
        };
        queries.iter().map(answer).collect()
    }

    fn huge_page_bytes(&self) -> Option<u64> {
        self.server.huge_page_bytes()
    }

    fn held(&self) -> Vec<&[u8]> {
        self.server.held()
    }

    fn reply(&self, role: Role, request: &[u8]) -> Result<Vec<u8>> {
        let request = asked::<DummySubsetsTwo>(self.parameters(), role, request)?;
        Ok(self.hints(&request)?.encode())
    }
}

impl DummySubsetsTwoServer {
    /// The parities of many hints (Algorithm 1), from one pass over the table.
    pub(super) fn hints(&self, request: &HintsRequest) -> Result<HintsReply> {
        let cut = *self.parameters().cut();
        let mut parities = vec![0; request.cutoffs.len() * cut.record_len()];
        let mut group = self.group()?;
        let partitions = self.server.records.chunks_exact(cut.partition_bytes() as usize);
        let mut partitions = (0u32..).zip(partitions).peekable();
        while let Some((first, _)) = partitions.peek() {
            let (first, mut len) = (*first, 0);
            for (_, partition) in partitions.by_ref().take(group.capacity()) {
                group.partition_mut(len).copy_from_slice(partition);
                len += 1;
            }
            group.set_len(len);
            self.kernels.subset_accumulate_single(
                request.key.expose(),
                request.first_id,
                &request.cutoffs,
                first,
                &group,
                &mut parities,
            );
        }
        group.clear();
        if let Ok(mut groups) = self.groups.lock() {
            groups.push(group);
            groups.truncate(GROUPS_KEPT);
        }
        Ok(HintsReply { parities })
    }
}

impl SchemeOf for DummySubsetsTwoServer {
    type Scheme = DummySubsetsTwo;
}
