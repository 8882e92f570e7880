//! From a hint to a query: both forms of dummy subsets ask a server the same way (Algorithm 2 of
//! the paper).

use super::{DummySubsetsParameters, DummySubsetsQuery};
use crate::planted;
use privet_core::hints::{HintForm, HintTable, Partitions};
use privet_core::{Secret, SecretRng};
use privet_kernels::Kernels;
use privet_kernels::taint::admit;
use subtle::{ConditionallySelectable as _, ConstantTimeEq as _};
use zeroize::Zeroizing;

/// The form of this scheme's hints.
pub(super) fn hint_form(parameters: &DummySubsetsParameters, key: [u8; 16]) -> HintForm {
    HintForm {
        partitions: *parameters.cut(),
        key: Secret::new(key),
        selects: true,
        security: parameters.hint_security(),
    }
}

/// The query for `index` through the hint in `row`, which contains it.
pub(super) fn query_through(
    table: &HintTable,
    row: u32,
    index: u64,
    real_half: bool,
    kernels: Kernels,
) -> Option<DummySubsetsQuery> {
    let (hint, is_there) = table.hint_for(Some(row), index);
    if !is_there {
        return None;
    }
    let cut = table.partitions();
    let partitions = cut.count() as usize;
    let mut selects = Zeroizing::new(vec![0; partitions]);
    let mut offsets = Zeroizing::new(vec![0; partitions]);
    kernels.subset_rebuild(table.key(), hint.id, cut.records(), &mut selects, &mut offsets);
    let mut real = Zeroizing::new(vec![false; partitions]);
    let (extra_partition, extra_offset) = cut.place(hint.extra.unwrap_or(index));
    let contents = real.iter_mut().zip(selects.iter()).zip(offsets.iter_mut());
    for (partition, ((real, select), offset)) in (0u32..).zip(contents) {
        // Compares with every partition, so that no address shows which it is.
        let is_extra = partition.ct_eq(&extra_partition);
        let selected = (*select < hint.cutoff) != hint.above;
        *real = selected | bool::from(is_extra);
        offset.conditional_assign(&(extra_offset as u16), is_extra);
    }
    let left_out = planted::left_out(&real, cut.place(index).0);
    for (partition, real) in (0u32..).zip(real.iter_mut()) {
        *real &= !bool::from(partition.ct_eq(&left_out));
    }
    planted::real_offsets(cut, &mut offsets);

    let mut kept = vec![0; partitions / 2 + 1];
    let mut filled = 0;
    for (real, offset) in real.iter().zip(offsets.iter()) {
        // Always written, and kept only if it is real, so that no branch depends on it. An address
        // does depend on it: how fast the list fills up, which shows which half of the query is the
        // real one.
        kept[admit(filled.min(partitions / 2))] = *offset;
        filled += usize::from(*real);
    }
    kept.truncate(partitions / 2);
    planted::dummy_offsets(cut, index, &real, &mut kept);
    Some(query(cut, &real, real_half, kept))
}

/// A query that only looks like one: a uniform split and uniform offsets.
pub(super) fn cover(cut: &Partitions, rng: &mut SecretRng) -> DummySubsetsQuery {
    let partitions = cut.count() as usize;
    let mut real: Vec<bool> = (0..partitions).map(|k| k < partitions / 2).collect();
    for k in (1..partitions).rev() {
        let other = rng.below(k as u64 + 1) as usize;
        real.swap(k, planted::changes_places_with(k, other));
    }
    let records = u64::from(cut.records());
    let offsets = (0..partitions / 2).map(|_| rng.below(records) as u16).collect();
    query(cut, &real, false, offsets)
}

fn query(cut: &Partitions, real: &[bool], real_half: bool, offsets: Vec<u16>) -> DummySubsetsQuery {
    let halves = real.chunks(8).map(|real| {
        let bits = real.iter().enumerate();
        bits.fold(0, |byte, (bit, real)| byte | (u8::from(*real == real_half) << bit))
    });
    DummySubsetsQuery { halves: halves.collect(), offsets, offset_bits: cut.offset_bits() }
}

/// Whether the half of pair `id` that does *not* select the partition of `index` is the one of the
/// partitions not below the cutoff.
pub(super) fn successor_is_above(
    table: &HintTable,
    id: u32,
    cutoff: u32,
    index: u64,
    kernels: Kernels,
) -> bool {
    let (partition, _) = table.partitions().place(index);
    let mut select = [0];
    kernels.subset_selects_at(table.key(), partition, &[id], &mut select);
    select[0] < cutoff
}

#[cfg(test)]
pub(super) mod testing {
    use super::*;

    /// What the hint in `row` contains: for each partition, the offset of its record there, if any.
    pub(in super::super) fn contents(
        table: &HintTable,
        row: u32,
        kernels: Kernels,
    ) -> Option<Vec<Option<u16>>> {
        let hint = table.hint(row)?;
        let cut = table.partitions();
        let partitions = cut.count() as usize;
        let (mut selects, mut offsets) = (vec![0; partitions], vec![0; partitions]);
        kernels.subset_rebuild(table.key(), hint.id, cut.records(), &mut selects, &mut offsets);
        let picks = selects.iter().zip(&offsets);
        let mut contents: Vec<Option<u16>> = picks
            .map(|(v, offset)| ((*v < hint.cutoff) != hint.above).then_some(*offset))
            .collect();
        if let Some(extra) = hint.extra {
            let (partition, offset) = cut.place(extra);
            contents[partition as usize] = Some(offset as u16);
        }
        Some(contents)
    }

    /// What all live hints contain.
    pub(in super::super) fn all_contents(
        table: &HintTable,
        kernels: Kernels,
    ) -> Vec<Vec<Option<u16>>> {
        (0..table.len()).filter_map(|row| contents(table, row, kernels)).collect()
    }
}
