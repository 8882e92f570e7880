//! `vectors/merkle.json`, computed by a program that shares no code with this one.

use super::*;
use crate::commit::Changed;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn file() -> serde_json::Value {
    serde_json::from_str(include_str!("../../../../../../vectors/merkle.json")).unwrap()
}

#[test]
fn leaves_nodes_and_roots() {
    let file = file();
    for kernels in all_kernels() {
        let hasher = MerkleHasher::new(kernels);
        let leaf = hasher.leaf(5, b"a record");
        let mut many = [ZERO; 20];
        hasher.leaves_at(&[5; 20], &b"a record".repeat(20), 8, &mut many);
        assert_eq!(hex(&leaf), file["leaf"]);
        assert_eq!(many, [leaf; 20]);
        assert_eq!(hex(&hasher.parent(&leaf, &ZERO)), file["node"]);
        let trees = file["trees"].as_array().unwrap();
        assert!(trees.len() >= 8);
        for known in trees {
            let merkle = cut(known["records"].as_u64().unwrap(), 32, 1, 0, 0);
            let tree = Tree::new(&hasher, &table(&merkle, "a table"), 32).unwrap();
            assert_eq!(hex(&tree.root()), known["root"]);
        }
    }
}

#[test]
fn caps_proofs_and_updates() {
    let file = file();
    let cases = file["cases"].as_array().unwrap();
    assert!(cases.len() >= 9);
    for (case, kernels) in cases.iter().flat_map(|case| all_kernels().map(move |k| (case, k))) {
        let number = |name: &str| case[name].as_u64().unwrap();
        let numbers = |name: &str| {
            case[name].as_array().unwrap().iter().map(|number| number.as_u64().unwrap())
        };
        let digest = |bytes: &[u8], name: &str| {
            assert_eq!(blake3::hash(bytes).to_hex().as_str(), case[name], "{name} of {case}");
        };
        let (len, vector_len) = (number("record_len"), number("vector_len") as u32);
        let merkle = cut(number("records"), len, vector_len, 0, number("cap_levels") as u8);
        let mut world = World::new(merkle, kernels);
        digest(&encoded(&world.verifier), "cap_blake3");
        let answer = world.answer(numbers("offsets").map(|offset| offset as u16).collect());
        digest(&answer.proof, "proof_blake3");

        let edits: Vec<u64> = numbers("edits").chain(number("records")..number("grown")).collect();
        let mut fresh = vec![0; edits.len() * len as usize];
        blake3::Hasher::new().update(b"an update").finalize_xof().fill(&mut fresh);
        let after = cut(number("grown"), len, vector_len, 0, 0).vectors;
        world.table.resize(after.padded_bytes() as usize, 0);
        for (&index, record) in edits.iter().zip(fresh.chunks(len as usize)) {
            world.table[(index * len) as usize..][..len as usize].copy_from_slice(record);
        }
        let changed: Vec<Changed<'_>> =
            edits.iter().map(|&index| Changed { index, before: &[] }).collect();
        let told = world.prover.update(after, &world.table, &changed).unwrap();
        digest(&told, "update_blake3");
        world.verifier.update(after, &told).unwrap();
        digest(&encoded(&world.verifier), "after_blake3");
    }
}
