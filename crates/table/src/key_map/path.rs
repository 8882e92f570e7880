//! Room for one more entry: in one of its candidates, or by moving others out of the way.
//!
//! An entry goes to the roomier of its candidates. If none has room, an entry that lies there moves
//! to *its* other candidate. If that has no room either, an entry there moves on, and so forth: a
//! *path* of moves. The shortest path is searched for breadth first, over at most
//! [`SEARCHED_RECORDS`] records, each of them looked at once. Nothing is random: the same records
//! always lead to the same path.
//!
//! The builder and the editor make room in the same way. They differ in what they know of a record,
//! so the search asks a [`Shelf`]. In a bucket map no entry has another candidate, and a search
//! ends where it began.
//!
//! Cuckoo hashing is due to Pagh and Rodler (*Cuckoo hashing*, Journal of Algorithms 2004), and
//! records of several entries to Dietzfelbinger and Weidling (*Balanced allocation and dictionaries
//! with tightly packed constant size bins*, TCS 2007).

/// How many records are looked at for one entry before the search is given up. Paths found are far
/// shorter: with four entries to a record this many lie within four or five moves.
const SEARCHED_RECORDS: usize = 256;

/// The records among which room is looked for.
pub(super) trait Shelf {
    /// Why a record cannot be looked at.
    type Error;

    /// The bytes that each record has.
    fn width(&self) -> u64;

    /// The bytes that the entries of a record take.
    fn load(&mut self, record: u64) -> Result<u64, Self::Error>;

    /// What is known of the entry at `position` in a record; `None` if the record has no more than
    /// `position` of them.
    fn entry(&mut self, record: u64, position: usize) -> Result<Option<Lying>, Self::Error>;
}

/// An entry that lies in a record and could move.
#[derive(Clone, Copy)]
pub(super) struct Lying {
    pub(super) len: u64,
    /// Its other candidate; if it has none, the record in which it lies.
    pub(super) other: u64,
}

/// A move of one entry to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Move {
    /// The record that it leaves, and its position there; `None` for the entry for which room is
    /// made.
    pub(super) from: Option<(u64, usize)>,
    pub(super) to: u64,
}

/// The moves that bring an entry of `len` bytes into one of `candidates`, in the order in which
/// they must be made, so that each entry comes into a record with room. The last move is that of
/// the entry itself. `None` if no way was found.
///
/// No record is left twice or entered twice, and each is left before it is entered, so the
/// positions in the moves hold until they are used.
pub(super) fn make_room<S: Shelf>(
    shelf: &mut S,
    candidates: &[u64],
    len: u64,
) -> Result<Option<Vec<Move>>, S::Error> {
    let roomier = roomier(shelf, candidates)?;
    if shelf.load(roomier)? + len <= shelf.width() {
        return Ok(Some(vec![Move { from: None, to: roomier }]));
    }
    let first_step = |&record| Reached { record, incoming: len, from: None };
    let mut search = Search { steps: candidates.iter().map(first_step).collect() };
    let mut next = 0;
    while next < search.steps.len() {
        if let Some(last) = search.look_around(shelf, next)? {
            return Ok(Some(search.walk_back(last)));
        }
        next += 1;
    }
    Ok(None)
}

/// The one of `candidates` with the most room, the first if several are level. There is at least
/// one candidate.
pub(super) fn roomier<S: Shelf>(shelf: &mut S, candidates: &[u64]) -> Result<u64, S::Error> {
    let mut best = (shelf.load(candidates[0])?, candidates[0]);
    for &candidate in &candidates[1..] {
        let load = shelf.load(candidate)?;
        if load < best.0 {
            best = (load, candidate);
        }
    }
    Ok(best.1)
}

/// One record that a search has reached.
#[derive(Clone, Copy)]
struct Reached {
    record: u64,
    /// The length of the entry that would come here.
    incoming: u64,
    /// Where that entry lies: the step whose record it would leave, and its position there.
    from: Option<(usize, usize)>,
}

struct Search {
    steps: Vec<Reached>,
}

impl Search {
    /// Follows each entry of one record to its other candidate. If one of these has room, returns
    /// it as the last step of a path. Otherwise notes them as places to look on from.
    fn look_around<S: Shelf>(
        &mut self,
        shelf: &mut S,
        at: usize,
    ) -> Result<Option<Reached>, S::Error> {
        let Reached { record, incoming, .. } = self.steps[at];
        let needed = shelf.load(record)? + incoming;
        let mut position = 0;
        while let Some(leaving) = shelf.entry(record, position)? {
            let from = Some((at, position));
            position += 1;
            if self.steps.len() == SEARCHED_RECORDS {
                break;
            }
            if needed - leaving.len > shelf.width()
                || self.steps.iter().any(|step| step.record == leaving.other)
            {
                continue;
            }
            let step = Reached { record: leaving.other, incoming: leaving.len, from };
            if shelf.load(step.record)? + step.incoming <= shelf.width() {
                return Ok(Some(step));
            }
            self.steps.push(step);
        }
        Ok(None)
    }

    fn walk_back(&self, last: Reached) -> Vec<Move> {
        let mut path = Vec::new();
        let mut step = last;
        while let Some((from, position)) = step.from {
            path.push(Move { from: Some((self.steps[from].record, position)), to: step.record });
            step = self.steps[from];
        }
        path.push(Move { from: None, to: step.record });
        path
    }
}
