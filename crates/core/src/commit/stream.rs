//! A streamed table, vector by vector, with the announcement after it.

use super::Vectors;
use crate::codec::Reader;
use crate::stream_digest::StreamDigest;
use crate::{Error, Result};

/// Checks the order, length and digest of a stream, and passes it on, a vector at a time.
///
/// A stream is the table in its natural order. If an announcement follows, the table is first
/// padded to whole vectors, as in a server's memory.
pub struct VectorStream {
    vectors: Vectors,
    announcement_len: u64,
    expected_digest: [u8; 32],
    /// The vector that is being collected, padded with zeros after the bytes that have arrived.
    vector: Vec<u8>,
    announcement: Vec<u8>,
    /// The number of vectors passed on.
    taken: u32,
    /// Bytes of the vector that is being collected.
    filled: usize,
    /// The digest of everything before that vector, and of the announcement.
    digest: StreamDigest,
    finished: bool,
}

impl VectorStream {
    /// A stream from its beginning. The whole must have the BLAKE3 digest `expected_digest`.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](crate::Blame::Unavailable) if there is no memory for one vector.
    pub fn new(vectors: Vectors, announcement_len: u64, expected_digest: [u8; 32]) -> Result<Self> {
        let no_memory = || Error::unavailable("no memory for a vector of records");
        let len = usize::try_from(vectors.vector_bytes()).map_err(|_| no_memory())?;
        let mut vector = Vec::new();
        vector.try_reserve_exact(len).map_err(|error| no_memory().caused_by(error))?;
        vector.resize(len, 0);
        Ok(Self {
            vectors,
            announcement_len,
            expected_digest,
            vector,
            announcement: Vec::new(),
            taken: 0,
            filled: 0,
            digest: StreamDigest::default(),
            finished: false,
        })
    }

    /// Bytes of the whole stream.
    pub fn total(&self) -> u64 {
        stream_len(&self.vectors, self.announcement_len)
    }

    /// Bytes of the table in it, including padding.
    fn table_len(&self) -> u64 {
        self.total() - self.announcement_len
    }

    /// The offset of the next byte that is wanted.
    pub fn next_offset(&self) -> u64 {
        self.checkpoint_offset() + self.filled as u64
    }

    /// The offset at which a checkpoint taken now would go on.
    pub fn checkpoint_offset(&self) -> u64 {
        let taken = u64::from(self.taken) * self.vectors.vector_bytes();
        taken.min(self.table_len()) + self.announcement.len() as u64
    }

    /// Takes the bytes at `offset`. `take_in` gets the number of each vector that is complete, and
    /// its records.
    ///
    /// # Errors
    /// [`Blame::PeerMisbehaved`](crate::Blame::PeerMisbehaved) if they are not the next ones or
    /// reach beyond the end.
    pub fn absorb(
        &mut self,
        offset: u64,
        mut chunk: &[u8],
        mut take_in: impl FnMut(u32, &[u8]),
    ) -> Result<()> {
        let (due, total) = (self.next_offset(), self.total());
        if offset != due {
            return Err(Error::peer_misbehaved(format!(
                "the server sent byte {offset} of the table when byte {due} was due"
            )));
        }
        if chunk.len() as u64 > total - due {
            return Err(Error::peer_misbehaved(format!(
                "the server sent more than the {total} bytes of the table"
            )));
        }
        while self.taken < self.vectors.count() && !chunk.is_empty() {
            let left = self.table_len() - self.next_offset();
            let room =
                (self.vector.len() - self.filled).min(usize::try_from(left).unwrap_or(usize::MAX));
            let (head, rest) = chunk.split_at(room.min(chunk.len()));
            self.vector[self.filled..][..head.len()].copy_from_slice(head);
            self.filled += head.len();
            chunk = rest;
            if self.filled == self.vector.len() || self.next_offset() == self.table_len() {
                self.hand_on(&mut take_in);
            }
        }
        self.announcement.try_reserve(chunk.len()).map_err(|error| {
            Error::unavailable("no memory for what the servers announce").caused_by(error)
        })?;
        self.digest.absorb(chunk);
        self.announcement.extend_from_slice(chunk);
        Ok(())
    }

    /// Passes on the collected vector, and after the table's last bytes also the vectors beyond its
    /// end.
    fn hand_on(&mut self, take_in: &mut impl FnMut(u32, &[u8])) {
        self.digest.absorb(&self.vector[..self.filled]);
        let ended = self.next_offset() == self.table_len();
        self.vector[self.filled..].fill(0);
        take_in(self.taken, &self.vector);
        self.taken += 1;
        self.filled = 0;
        while ended && self.taken < self.vectors.count() {
            self.vector.fill(0);
            take_in(self.taken, &self.vector);
            self.taken += 1;
        }
    }

    /// Checks that everything arrived and is as announced. Returns the bytes after the table.
    ///
    /// # Errors
    /// [`Blame::Integrity`](crate::Blame::Integrity) if the digest does not match,
    /// [`Blame::PeerMisbehaved`](crate::Blame::PeerMisbehaved) if bytes are missing.
    pub fn finish(&mut self) -> Result<&[u8]> {
        let (arrived, total) = (self.next_offset(), self.total());
        if arrived != total {
            return Err(Error::peer_misbehaved(format!(
                "the stream of the table ended after {arrived} of {total} bytes"
            )));
        }
        if self.digest.finalize() != self.expected_digest {
            return Err(Error::integrity(
                "the table that was streamed does not have the digest on which the servers had agreed; it was damaged on the way or one of them does not tell the truth",
            ));
        }
        self.finished = true;
        Ok(&self.announcement)
    }

    /// Whether [`finish`](Self::finish) has succeeded.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// `vectors handed on (u32) ‖ announcement so far (u32 length, bytes) ‖ digest so far`
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.taken.to_le_bytes());
        out.extend((self.announcement.len() as u32).to_le_bytes());
        out.extend_from_slice(&self.announcement);
        self.digest.encode(out);
    }

    /// Continues a stream that was encoded.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](crate::Blame::Corrupted) if the bytes are not one for this table,
    /// [`Blame::Unavailable`](crate::Blame::Unavailable) if there is not enough memory.
    pub fn decode(
        vectors: Vectors,
        announcement_len: u64,
        expected_digest: [u8; 32],
        reader: &mut Reader<'_>,
    ) -> Result<Self> {
        let read = |error: Error| {
            Error::corrupted("the checkpoint of unfinished hints cannot be read").caused_by(error)
        };
        let mut stream = Self::new(vectors, announcement_len, expected_digest)?;
        stream.taken = reader.u32().map_err(read)?;
        let announced = reader.u32().map_err(read)?;
        stream.announcement = reader.bytes(announced as usize).map_err(read)?.to_vec();
        stream.digest = StreamDigest::decode(reader).map_err(read)?;
        let after_table = stream.taken == vectors.count();
        if stream.taken > vectors.count()
            || u64::from(announced) > announcement_len
            || (announced > 0 && !after_table)
            || stream.digest.absorbed() != Some(stream.checkpoint_offset())
        {
            return Err(Error::corrupted(
                "a checkpoint's digest and its hints belong to different offsets",
            ));
        }
        Ok(stream)
    }
}

/// Bytes of a stream of the table, with an announcement of `announcement_len` bytes after it.
pub fn stream_len(vectors: &Vectors, announcement_len: u64) -> u64 {
    match announcement_len {
        0 => vectors.shape().bytes(),
        len => vectors.padded_bytes() + len,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Blame, TableShape};
    use proptest::prelude::*;

    fn digest(bytes: &[u8]) -> [u8; 32] {
        *blake3::hash(bytes).as_bytes()
    }

    proptest! {
        #[test]
        fn every_stream_is_handed_on_in_padded_vectors_with_or_without_interruptions(
            records in 1u64..60,
            record_len in 1u64..20,
            vector_len in 1u32..20,
            at_least in 1u32..5,
            announced in 0u64..40,
            piece in 1usize..100,
            interrupted: bool,
        ) {
            let shape = TableShape::new(records, record_len).unwrap();
            let vectors = Vectors::new(shape, vector_len, at_least).unwrap();
            let mut table: Vec<u8> = (0..shape.bytes()).map(|i| (i * 7 + 1) as u8).collect();
            let natural = table.clone();
            table.resize(vectors.padded_bytes() as usize, 0);
            let announcement: Vec<u8> = (0..announced).map(|i| i as u8 ^ 0x55).collect();
            let bytes = if announced == 0 { natural } else { [&table[..], &announcement].concat() };
            let mut stream = VectorStream::new(vectors, announced, digest(&bytes)).unwrap();
            prop_assert_eq!(stream.total(), bytes.len() as u64);
            let mut seen = Vec::new();
            while stream.next_offset() < stream.total() {
                let offset = stream.next_offset();
                let chunk = bytes[offset as usize..].chunks(piece).next().unwrap();
                stream.absorb(offset, chunk, |number, records| {
                    assert_eq!(number as usize * vectors.vector_bytes() as usize, seen.len());
                    seen.extend_from_slice(records);
                }).unwrap();
                if interrupted && piece as u64 >= vectors.vector_bytes() {
                    let mut checkpoint = Vec::new();
                    stream.encode(&mut checkpoint);
                    let mut reader = Reader::new("a checkpoint", &checkpoint);
                    let at = stream.checkpoint_offset();
                    stream = VectorStream::decode(vectors, announced, digest(&bytes), &mut reader).unwrap();
                    reader.finish().unwrap();
                    prop_assert_eq!(stream.next_offset(), at);
                }
            }
            prop_assert_eq!(&seen, &table);
            prop_assert_eq!(stream.finish().unwrap(), &announcement[..]);
        }
    }

    #[test]
    fn what_is_not_the_stream_is_refused() {
        let shape = TableShape::new(10, 3).unwrap();
        let vectors = Vectors::new(shape, 4, 2).unwrap();
        let bytes = vec![7; 36 + 5];
        let fresh = || VectorStream::new(vectors, 5, digest(&bytes)).unwrap();
        let blame = |result: Result<()>| result.unwrap_err().blame();
        assert_eq!(blame(fresh().absorb(1, &bytes[1..], |_, _| ())), Blame::PeerMisbehaved);
        assert_eq!(blame(fresh().absorb(0, &[7; 42], |_, _| ())), Blame::PeerMisbehaved);
        let mut short = fresh();
        short.absorb(0, &bytes[..40], |_, _| ()).unwrap();
        assert_eq!(short.finish().unwrap_err().blame(), Blame::PeerMisbehaved);
        for changed in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[changed] ^= 1;
            let mut stream = fresh();
            stream.absorb(0, &bytes, |_, _| ()).unwrap();
            assert_eq!(stream.finish().unwrap_err().blame(), Blame::Integrity);
        }
    }
}
