//! A reference string must be the powers of one number.

use super::{bytes, known_string};
use crate::pointproofs::ReferenceString;
use crate::pointproofs::reference_string::read_share;
use privet_core::{Blame, SecretRng};
use privet_laboratory_kernels::bls12_381::{G1, G2, Scalar};

const HEADER: usize = 8 + 2 + 4;

/// With the digest that belongs to the rest.
fn sealed(mut encoded: Vec<u8>) -> Vec<u8> {
    let content = encoded.len() - 32;
    let digest = blake3::hash(&encoded[..content]);
    encoded[content..].copy_from_slice(digest.as_bytes());
    encoded
}

fn refusal(encoded: &[u8]) -> String {
    let error = ReferenceString::decode(encoded).unwrap_err();
    assert_eq!(error.blame(), Blame::Corrupted);
    error.message().to_owned()
}

#[test]
fn what_was_made_is_read_back() {
    let mut rng = SecretRng::from_os().unwrap();
    for size in [1, 2, 3, 5] {
        let string = ReferenceString::generate(size, &mut rng).unwrap();
        let read = ReferenceString::decode(&string.encode()).unwrap();
        assert_eq!(read.encode(), string.encode());
        assert_eq!((read.size(), read.digest()), (size, string.digest()));
        let (alpha, powers) = read_share(size, &string.digest(), &string.share()).unwrap();
        assert_eq!((alpha, powers.len()), (read.commitment_bases(1)[0], size as usize));
        let another = ReferenceString::generate(size, &mut rng).unwrap();
        assert_ne!(another.digest(), string.digest());
    }
    for size in [0, (1 << 16) + 1, u32::MAX] {
        let refused = ReferenceString::generate(size, &mut rng).unwrap_err();
        assert_eq!(refused.blame(), Blame::ApiMisuse);
    }
}

#[test]
fn one_wrong_point_anywhere() {
    for size in [1u32, 2, 4] {
        let good = known_string(size).encode();
        let second = HEADER + 48..HEADER + 48 + size as usize * 96;
        let first = [HEADER].into_iter().chain((second.end..good.len() - 32).step_by(48));
        let wrong = G1::generator().to_sum().power(&Scalar::from(5)).to_affine().compress();
        for place in first {
            for point in [wrong, G1::infinity().compress()] {
                let mut encoded = good.clone();
                encoded[place..place + 48].copy_from_slice(&point);
                assert!(refusal(&sealed(encoded)).contains("powers of one number"));
            }
        }
        let wrong = G2::generator().to_sum().power(&Scalar::from(5)).to_affine().compress();
        for place in second.step_by(96) {
            for point in [wrong, G2::infinity().compress()] {
                let mut encoded = good.clone();
                encoded[place..place + 96].copy_from_slice(&point);
                assert!(refusal(&sealed(encoded)).contains("powers of one number"));
            }
        }
    }
}

#[test]
fn powers_of_two_numbers_and_of_zero() {
    let [one, other] = [7, 11].map(|alpha| ReferenceString::from_alpha(3, &Scalar::from(alpha)));
    let [one, other] = [one.encode(), other.encode()];
    // The first group of one, the second of the other.
    let mut mixed = one.clone();
    mixed[HEADER + 48..][..3 * 96].copy_from_slice(&other[HEADER + 48..][..3 * 96]);
    assert!(refusal(&sealed(mixed)).contains("powers of one number"));
    // Beyond the gap, the powers of the other number, which are consecutive among themselves.
    let mut mixed = one.clone();
    let beyond = one.len() - 32 - 2 * 48;
    mixed[beyond..].copy_from_slice(&other[beyond..]);
    assert!(refusal(&sealed(mixed)).contains("powers of one number"));
    // Consistent, and worthless.
    let zero = ReferenceString::from_alpha(3, &Scalar::ZERO);
    assert!(refusal(&zero.encode()).contains("powers of one number"));
    assert_eq!(read_share(3, &zero.digest(), &zero.share()), None);
}

#[test]
fn a_share_is_checked_beside_its_digest() {
    let string = known_string(3);
    let mut share = string.share();
    assert!(read_share(3, &string.digest(), &share).is_some());
    assert_eq!(read_share(2, &string.digest(), &share), None);
    assert_eq!(read_share(3, &string.digest(), &share[..share.len() - 1]), None);
    // Points that are not powers, with the right digest.
    let wrong = G2::generator().compress();
    share[48 + 96..][..96].copy_from_slice(&wrong);
    let digest = super::super::reference_string::digest_of_share(3, &share);
    assert_eq!(read_share(3, &digest, &share), None);
}

#[test]
fn malformed_files() {
    let good = known_string(2).encode();
    for len in 0..good.len() {
        refusal(&good[..len]);
    }
    refusal(&[good.clone(), vec![0]].concat());
    for place in 0..good.len() {
        let mut damaged = good.clone();
        damaged[place] ^= 0x10;
        refusal(&damaged);
    }
    let with = |place: usize, bytes: &[u8]| {
        let mut encoded = good.clone();
        encoded[place..place + bytes.len()].copy_from_slice(bytes);
        refusal(&sealed(encoded))
    };
    assert!(with(8, &[2, 0]).contains("version 2"));
    assert!(with(10, &u32::MAX.to_le_bytes()).contains("not for 4294967295"));
    assert!(with(10, &[0; 4]).contains("not for 0"));
    assert!(with(10, &(1u32 << 16).to_le_bytes()).contains("bytes"));
    let mut outside = [0; 48];
    (outside[0], outside[47]) = (0x80, 4);
    assert!(with(HEADER, &outside).contains("outside the first group"));
    assert!(with(HEADER + 48, &bytes("noise", 96)).contains("outside the second group"));
}
