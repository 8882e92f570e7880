use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use proptest::prelude::*;

use super::{Numbers, all_kernels};
use crate::{Kernels, TreeKeys};

/// Matyas, Meyer and Oseas' form for one node, as the module's documentation defines it.
fn child(key: &[u8; 16], node: u128, correction: u128) -> u128 {
    let seed = node >> 1 << 1;
    let mut block = Array(seed.to_le_bytes());
    Aes128::new(&Array(*key)).encrypt_block(&mut block);
    let grown = u128::from_le_bytes(block.0) ^ seed;
    if node % 2 == 1 { grown ^ correction } else { grown }
}

fn number(numbers: &mut Numbers) -> u128 {
    u128::from(numbers.next()) << 64 | u128::from(numbers.next())
}

/// Buffers are as misaligned as their type allows, and the memory around them must not change.
fn check(kernels: Kernels, nodes: usize, seed: u64) {
    let mut numbers = Numbers(seed);
    let mut key = || numbers.bytes(16).try_into().expect("16 bytes");
    let (left, right) = (key(), key());
    let keys = TreeKeys::new(left, right);
    let corrections = [number(&mut numbers), number(&mut numbers)];
    let parents: Vec<u128> = (0..=nodes).map(|_| number(&mut numbers)).collect();
    let parents = &parents[1..];
    let arm = kernels.arm();

    let both =
        |&parent| [child(&left, parent, corrections[0]), child(&right, parent, corrections[1])];
    let expected: Vec<u128> = parents.iter().flat_map(both).collect();
    for missing in 0..=usize::from(nodes > 0) {
        let count = 2 * nodes - missing;
        let mut children = vec![7; count + 2];
        kernels.ggm_expand(&keys, parents, corrections, &mut children[1..=count]);
        assert_eq!(children[1..=count], expected[..count], "{arm}: {count} children");
        assert_eq!((children[0], children[count + 1]), (7, 7), "{arm}: wrote outside");
    }

    let leaf = |&node| child(&left, node, corrections[1]);
    let expected: Vec<u128> = parents.iter().map(leaf).collect();
    let mut leaves = vec![7; nodes + 2];
    kernels.ggm_convert(&keys, parents, corrections[1], &mut leaves[1..=nodes]);
    assert_eq!(leaves[1..=nodes], expected, "{arm}: {nodes} leaves");
    assert_eq!((leaves[0], leaves[nodes + 1]), (7, 7), "{arm}: wrote outside");
}

/// Batches are 32 blocks (portable and AVX-512) and 8 (AVX2), so up to twice that in nodes and
/// beyond.
#[test]
fn children_and_leaves_are_those_of_the_definition() {
    for nodes in (0..70).chain([127, 128, 129, 1000]) {
        for kernels in all_kernels() {
            check(kernels, nodes, nodes as u64);
        }
    }
}

/// FIPS 197, appendix C.1, whose plaintext can be a seed: its lowest bit is 0.
#[test]
fn known_answer() {
    let key = 0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f_u128.to_be_bytes();
    let seed = u128::from_le_bytes(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff_u128.to_be_bytes());
    let answer = u128::from_le_bytes(0x69c4_e0d8_6a7b_0430_d8cd_b780_70b4_c55a_u128.to_be_bytes());
    assert_eq!(seed & 1, 0);
    let keys = TreeKeys::new(key, [0; 16]);
    for kernels in all_kernels() {
        let mut children = [0];
        kernels.ggm_expand(&keys, &[seed], [5, 6], &mut children);
        assert_eq!(children, [answer ^ seed], "{}", kernels.arm());
        kernels.ggm_expand(&keys, &[seed | 1], [5, 6], &mut children);
        assert_eq!(children, [answer ^ seed ^ 5], "{}", kernels.arm());
    }
}

#[test]
#[should_panic(expected = "two children")]
fn too_few_children_panic() {
    let keys = TreeKeys::new([1; 16], [2; 16]);
    Kernels::detect().ggm_expand(&keys, &[1, 2], [0; 2], &mut [0; 2]);
}

#[test]
#[should_panic(expected = "two children")]
fn too_many_children_panic() {
    let keys = TreeKeys::new([1; 16], [2; 16]);
    Kernels::detect().ggm_expand(&keys, &[1, 2], [0; 2], &mut [0; 5]);
}

#[test]
#[should_panic(expected = "one leaf")]
fn too_few_leaves_panic() {
    let keys = TreeKeys::new([1; 16], [2; 16]);
    Kernels::detect().ggm_convert(&keys, &[1, 2], 0, &mut [0; 1]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_number_of_nodes(nodes in 0usize..300, seed: u64) {
        for kernels in all_kernels() {
            check(kernels, nodes, seed);
        }
    }
}
