//! Many byte strings in few allocations.

/// How much is allocated at a time. A vector that doubles would need up to three times the bytes it
/// holds.
const CHUNK: usize = 4 << 20;

/// Keeps byte strings, each in one piece. None is ever removed.
#[derive(Default)]
pub(super) struct Arena {
    chunks: Vec<Vec<u8>>,
}

/// Where a byte string is in its [`Arena`].
#[derive(Clone, Copy, Default)]
pub(super) struct ArenaSpan {
    chunk: u32,
    start: u32,
    len: u32,
}

impl ArenaSpan {
    pub(super) fn len(self) -> usize {
        self.len as usize
    }
}

impl Arena {
    /// Keeps `bytes`, of which there must be fewer than 2^32.
    pub(super) fn keep(&mut self, bytes: &[u8]) -> ArenaSpan {
        let has_room = |chunk: &Vec<u8>| chunk.capacity() - chunk.len() >= bytes.len();
        if !self.chunks.last().is_some_and(has_room) {
            self.chunks.push(Vec::with_capacity(bytes.len().max(CHUNK)));
        }
        let number = self.chunks.len() - 1;
        let chunk = &mut self.chunks[number];
        let start = chunk.len();
        chunk.extend_from_slice(bytes);
        ArenaSpan { chunk: number as u32, start: start as u32, len: bytes.len() as u32 }
    }

    /// The bytes at `place`, which this arena gave out.
    pub(super) fn at(&self, place: ArenaSpan) -> &[u8] {
        let start = place.start as usize;
        &self.chunks[place.chunk as usize][start..start + place.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_come_back_across_chunk_borders() {
        let mut arena = Arena::default();
        let strings: Vec<Vec<u8>> = [0, 1, CHUNK - 2, 1, 1, CHUNK, CHUNK + 1, 0, 7]
            .iter()
            .enumerate()
            .map(|(number, &len)| vec![number as u8; len])
            .collect();
        let places: Vec<ArenaSpan> = strings.iter().map(|string| arena.keep(string)).collect();
        for (string, place) in strings.iter().zip(places) {
            assert!(arena.at(place) == string);
        }
    }
}
