//! What programs computed that share no code with this one, in files of `vectors`. Any other
//! implementation must send the same bytes.

use super::stateless::{Stateless, World};
use crate::contract::StatelessClient;
use crate::test_tables::hex;
use privet_core::SecretRng;
use serde_json::Value;

/// A case of such a file, or a part of a case. Bytes are in hexadecimal.
#[derive(Debug)]
pub struct Known(Value);

impl Known {
    pub fn file(text: &str) -> Self {
        Self(serde_json::from_str(text).unwrap())
    }

    /// The cases of a file, of which there must be `least`.
    pub fn cases(text: &str, least: usize) -> Vec<Self> {
        let cases = Self::file(text).list("cases");
        assert!(cases.len() >= least);
        cases
    }

    pub fn list(&self, name: &str) -> Vec<Self> {
        self.0[name].as_array().unwrap().iter().cloned().map(Self).collect()
    }

    pub fn number(&self, name: &str) -> u64 {
        self.0[name].as_u64().unwrap()
    }

    pub fn is(&self, name: &str) -> bool {
        self.0[name].as_bool().unwrap()
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        let text = self.0[name].as_str().unwrap();
        let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
        (0..text.len()).step_by(2).map(byte).collect()
    }

    /// Asserts that these bytes have that name; or that their digest has it, if it ends with
    /// `_blake3`.
    pub fn assert(&self, name: &str, bytes: &[u8]) {
        assert_eq!(shown(name, bytes), self.0[name].as_str().unwrap(), "{name}");
    }

    /// The same for a list.
    pub fn assert_list(&self, name: &str, all: &[Vec<u8>]) {
        let known = self.0[name].as_array().unwrap().iter().map(|one| one.as_str().unwrap());
        let all: Vec<_> = all.iter().map(|bytes| shown(name, bytes)).collect();
        assert_eq!(all, known.collect::<Vec<_>>(), "{name}");
    }

    /// The messages of all servers, or the digest of the only one.
    fn assert_messages(&self, list: &str, digest: &str, messages: &[Vec<u8>]) {
        match messages {
            [message] if self.0[list].is_null() => self.assert(digest, message),
            _ => self.assert_list(list, messages),
        }
    }
}

fn shown(name: &str, bytes: &[u8]) -> String {
    match name.ends_with("_blake3") {
        true => blake3::hash(bytes).to_hex().to_string(),
        false => hex(bytes),
    }
}

impl<S: Stateless> World<S> {
    /// The queries of a known lookup, and what the client keeps, compared with what is known.
    pub fn known_queries(
        &self,
        case: &Known,
    ) -> (Vec<Vec<u8>>, <S::Client as StatelessClient>::Pending) {
        case.assert("table_blake3", &self.table);
        let mut rng = SecretRng::from_fixed_seed([case.number("rng_seed") as u8; 32]);
        let (queries, pending) = self.lookup(case.number("index"), &mut rng);
        case.assert_messages("queries", "query_blake3", &queries);
        (queries, pending)
    }

    /// Makes a known lookup, and compares all of it.
    pub fn check_known(&self, case: &Known) {
        let (queries, pending) = self.known_queries(case);
        let answers = self.answers(&queries);
        case.assert_messages("answers", "answer_blake3", &answers);
        case.assert("record", &self.client.recover(pending, &self.read(&answers)).unwrap());
    }
}
