//! The users and their public keys.
//!
//! A key is 32 bytes that follow from the user's name and a public seed, so that anybody can check
//! any answer. They stand for Ed25519 or X25519 keys, which look as random.

/// The public seed: the context of the hash.
const SEED: &str = "privet example key transparency 2025 public key";

/// The directory: a line for each user, after the names of the columns.
pub(crate) fn csv(count: u32) -> String {
    let rows = (0..count).map(|number| {
        let user = name(number);
        let key = key(&user, 0);
        format!("{user},{key}\n")
    });
    std::iter::once("user,key\n".to_owned()).chain(rows).collect()
}

/// The first three have names of their own, for the story that `run.sh` tells.
fn name(number: u32) -> String {
    let named = ["alice", "bob", "carol"].get(number as usize);
    named.map_or_else(|| format!("user-{number}"), |&name| name.to_owned())
}

/// The key of `user` after `rotations`, in 64 hexadecimal digits.
pub(crate) fn key(user: &str, rotations: u32) -> String {
    let mut hash = blake3::Hasher::new_derive_key(SEED);
    hash.update(&rotations.to_le_bytes()).update(user.as_bytes());
    hash.finalize().to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_user_and_every_rotation_has_a_key_of_its_own() {
        let csv = csv(1000);
        let lines: Vec<_> = csv.lines().collect();
        assert_eq!((lines.len(), lines[0]), (1001, "user,key"));
        assert_eq!(lines[2], format!("bob,{}", key("bob", 0)));
        assert_eq!(lines[8], format!("user-7,{}", key("user-7", 0)));
        let mut keys: HashSet<_> = lines[1..].iter().map(|line| line.rsplit(',').next()).collect();
        assert_eq!(keys.len(), 1000);
        let rotated = key("user-7", 1);
        assert!(rotated.len() == 64 && keys.insert(Some(&rotated)));
    }
}
