//! Mistakes that must be reported: without these, a check that sees nothing would pass.

use super::cases::queries_for;
use super::{Case, secret, secret_coins};
use privet_core::hints::{HintForm, HintTable, LiveHint, Partitions};
use privet_core::{RecordIndex, Secret, TableShape};
use privet_kernels::taint::declassify;
use privet_kernels::{Arm, Kernels};
use privet_schemes::SchemeId;
use std::hint::black_box;
use zeroize::Zeroizing;

pub(crate) const CASES: &[Case] = &[
    Case::planted("planted: a branch on an index", branch_on_an_index),
    Case::planted("planted: an address that depends on an index", address_of_an_index),
    Case::planted("planted: a search that ends with the first match", search_that_ends_early),
    Case::planted("planted: a branch on a coin", branch_on_a_coin),
    Case::planted("planted: a branch on the hint that was chosen", branch_on_a_chosen_hint),
    Case::planted("planted: an index that is declassified", declassified_index),
];

const RECORDS: u64 = 1 << 12;

fn secret_index() -> RecordIndex {
    let shape = TableShape::new(RECORDS, 16).unwrap();
    RecordIndex::new(secret(1234), shape).unwrap()
}

#[inline(never)]
fn something() {
    black_box(());
}

fn branch_on_an_index() {
    if secret_index().expose() % 2 == 1 {
        something();
    }
}

fn address_of_an_index() {
    // No branch checks whether the position is inside: every position is.
    let list = black_box([7u8; 1 << 12]);
    black_box(list[secret_index().expose() as usize % list.len()]);
}

fn search_that_ends_early() {
    let marks = [0u64, 0, 4, 0, 1].map(secret);
    black_box(marks.iter().position(|word| *word != 0));
}

fn branch_on_a_coin() {
    if secret_coins().below(2) == 1 {
        something();
    }
}

fn branch_on_a_chosen_hint() {
    let table = small_table();
    let row = table.find(secret_index().expose()).choose(&mut secret_coins());
    if row.unwrap() % 2 == 1 {
        something();
    }
}

/// Memcheck reports nothing then, but what is sent has lost its mark.
fn declassified_index() {
    queries_for(SchemeId::SimplePir, |index| {
        let shape = TableShape::new(3001, 16).unwrap();
        RecordIndex::new(declassify(secret(index)), shape).unwrap()
    });
}

/// A table of hints that have a record in every one of 64 partitions of 64 records.
fn small_table() -> HintTable {
    let shape = TableShape::new(RECORDS, 16).unwrap();
    let form = HintForm {
        partitions: Partitions::new(shape, 64, 2, 2).unwrap(),
        key: Secret::new(secret([9; 16])),
        selects: false,
        security: 40,
    };
    let hint = |id| Some(LiveHint { id, cutoff: 0, above: false, extra: None });
    let hints = 64 * 80;
    let parities = Zeroizing::new(vec![0; hints as usize * 16]);
    HintTable::new(form, (0..hints).map(hint), parities, 0, Kernels::with_arm(Arm::Avx2).unwrap())
        .unwrap()
}
