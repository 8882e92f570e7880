//! `vectors/simplepir_packed.json`: encryption, packing, answer and decryption with given
//! randomness.

use super::*;
use serde_json::Value;

/// SHAKE-256 of a label is not among our dependencies, so the file's generator gives digests only
/// of what follows; the inputs are made here from Keccak.
struct Stream(Vec<u8>);

impl Stream {
    fn new(label: String, len: usize) -> Self {
        Self(shake256(label.as_bytes(), len))
    }

    fn polynomials(label: String, count: usize) -> Vec<i64> {
        let bytes = Self::new(label, 7 * count).0;
        let number = |group: &[u8]| {
            let mut word = [0; 8];
            word[..7].copy_from_slice(group);
            centred(u64::from_le_bytes(word), MODULUS_BITS)
        };
        bytes.chunks_exact(7).map(number).collect()
    }
}

/// FIPS 202.
fn shake256(message: &[u8], len: usize) -> Vec<u8> {
    const RATE: usize = 136;
    let mut padded = message.to_vec();
    padded.push(0x1f);
    padded.resize(padded.len().next_multiple_of(RATE), 0);
    *padded.last_mut().unwrap() |= 0x80;
    let mut state = [0u64; 25];
    for block in padded.chunks_exact(RATE) {
        for (lane, bytes) in state.iter_mut().zip(block.as_chunks::<8>().0) {
            *lane ^= u64::from_le_bytes(*bytes);
        }
        keccak_f(&mut state);
    }
    let mut out = Vec::with_capacity(len + RATE);
    loop {
        out.extend(state[..RATE / 8].iter().flat_map(|lane| lane.to_le_bytes()));
        if out.len() >= len {
            out.truncate(len);
            return out;
        }
        keccak_f(&mut state);
    }
}

fn keccak_f(state: &mut [u64; 25]) {
    // The round constants, from the specification's shift register.
    let mut register = 1u8;
    let mut bit = || {
        let out = register & 1;
        let carry = register >> 7;
        register = register << 1 ^ if carry == 1 { 0x71 } else { 0 };
        out
    };
    for _ in 0..24 {
        let parity: [u64; 5] = std::array::from_fn(|x| (0..5).fold(0, |p, y| p ^ state[x + 5 * y]));
        for (place, lane) in state.iter_mut().enumerate() {
            *lane ^= parity[(place + 4) % 5] ^ parity[(place + 1) % 5].rotate_left(1);
        }
        let (mut x, mut y, mut lane) = (1, 0, state[1]);
        for t in 0..24u32 {
            (x, y) = (y, (2 * x + 3 * y) % 5);
            lane = std::mem::replace(
                &mut state[x + 5 * y],
                lane.rotate_left((t + 1) * (t + 2) / 2 % 64),
            );
        }
        for row in state.chunks_exact_mut(5) {
            let old: [u64; 5] = std::array::from_fn(|x| row[x]);
            for x in 0..5 {
                row[x] = old[x] ^ (!old[(x + 1) % 5] & old[(x + 2) % 5]);
            }
        }
        for j in 0..7 {
            state[0] ^= u64::from(bit()) << ((1u32 << j) - 1);
        }
    }
}

#[test]
fn shake256_is_that_of_the_standard() {
    let hex = |bytes: Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(hex(shake256(b"", 8)), "46b9dd2b0ba88d13");
    assert_eq!(hex(shake256(b"abc", 8)), "483366601360a877");
}

fn digest(bytes: impl IntoIterator<Item = u8>) -> String {
    blake3::hash(&bytes.into_iter().collect::<Vec<u8>>()).to_hex().to_string()
}

#[test]
fn packings_are_those_of_the_definition() {
    let file = include_str!("../../../../../vectors/simplepir_packed.json");
    let vectors: Value = serde_json::from_str(file).unwrap();
    for case in vectors["packings"].as_array().unwrap() {
        check(case);
    }
}

fn check(case: &Value) {
    let number = |name: &str| case[name].as_u64().unwrap() as usize;
    let name = case["name"].as_str().unwrap();
    let (degree, rows, columns) = (number("degree"), number("rows"), number("columns"));
    let form = if degree == 2048 { Form::STANDARD } else { Form::insecure(degree) };
    let polynomials = columns.div_ceil(degree);
    let public = PublicCoefficients {
        columns: Stream::polynomials(format!("{name} a"), polynomials * degree),
        packing: Stream::polynomials(format!("{name} wg"), degree),
        fold: Stream::polynomials(format!("{name} wh"), degree),
    };
    let table = Stream::new(format!("{name} table"), rows * columns).0;
    let secret = Stream::new(format!("{name} secret"), degree).0;
    let secret: Vec<i32> = secret.iter().map(|byte| i32::from(byte % 3) - 1).collect();
    let errors = Stream::new(format!("{name} errors"), (polynomials + 2) * degree).0;
    let errors: Vec<u32> = errors.iter().map(|byte| (i32::from(byte % 13) - 6) as u32).collect();
    let (of_columns, of_keys) = errors.split_at(polynomials * degree);
    let errors = [&of_columns[..columns], of_keys].concat();

    let world = World::with_public(form, rows, columns, table, public);
    let query_bits = number("query_bits") as u32;
    let (secret, lens) = (Zeroizing::new(secret), [columns as u64]);
    let blank = Blank::with(kernels(), &world.factors, (&lens, query_bits), secret, &errors);
    let (words, keys, key) = blank.into_query(&[number("column") as u64]);
    let asked = Asked { words, query_bits, keys, key };
    assert_eq!(asked.key.error_sum(0), case["error_sum"].as_i64().unwrap());
    let (pass, _) = world.pass(&asked);
    let answer = world.answer(&asked);
    let bytes = world.decrypt(&asked.key, &answer);
    assert_eq!(bytes, world.column(number("column")));

    // Row by row, as the file has it.
    let matrix = world.blocks.iter().flat_map(|block| {
        let rows = block.matrix.len() / degree;
        (0..rows).flat_map(move |row| block.matrix[row..].iter().step_by(rows).copied())
    });
    let masks = world.blocks.iter().flat_map(|block| block.mask.iter().copied());
    let folds = world.blocks.iter().flat_map(|block| block.fold.iter().copied());
    let narrow = |numbers: Vec<u32>| {
        let values = numbers.iter().map(|number| Value::from(*number)).collect::<Vec<_>>();
        (values, digest(numbers.iter().flat_map(|number| number.to_le_bytes())))
    };
    let wide = |numbers: &[u64]| {
        let values = numbers.iter().map(|number| Value::from(*number)).collect::<Vec<_>>();
        (values, digest(numbers.iter().flat_map(|number| number.to_le_bytes())))
    };
    let folds: Vec<u32> = folds.collect();
    let signed = folds.iter().map(|digit| Value::from(*digit as i32)).collect::<Vec<_>>();
    let found = [
        ("masks_u32", narrow(masks.collect())),
        ("matrix_u32", narrow(matrix.collect())),
        ("fold_digits_i32", (signed, narrow(folds).1)),
        ("query_u32", narrow(asked.words.clone())),
        ("packing_key_u64", wide(&asked.keys.packing)),
        ("fold_key_u64", wide(&asked.keys.fold)),
        ("pass_words_u32", narrow(pass)),
        (
            "answer_u16",
            (
                answer.iter().map(|symbol| Value::from(*symbol)).collect(),
                digest(answer.iter().flat_map(|symbol| symbol.to_le_bytes())),
            ),
        ),
        (
            "column_u8",
            (bytes.iter().map(|byte| Value::from(*byte)).collect(), digest(bytes.iter().copied())),
        ),
    ];
    for (what, (values, digest)) in found {
        if let Some(expected) = case.get("values") {
            assert_eq!(expected[what].as_array().unwrap(), &values, "{name}: {what}");
        }
        assert_eq!(case["blake3"][what].as_str().unwrap(), digest, "{name}: {what}");
    }
}
