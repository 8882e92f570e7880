//! Ranges: tables in which a row answers for all keys from one to another.
//!
//! A table of networks has a row for each range of addresses, and a client looks up a single
//! address. The *directory* of a table holds the bounds of all its ranges, and every client
//! downloads it with the key map. A client itself finds the range that holds its key, and then
//! looks up that range's first point, as it would look up any other key. So ranges work with every
//! kind of key map and every scheme. A key that no range holds costs the same queries: it is looked
//! up under a name that no range has.
//!
//! # Points
//!
//! Bounds and keys are *points*, numbers of 128 bits. There are three kinds:
//!
//! | kind | written as | point |
//! |---|---|---|
//! | [numbers](Points::Numbers) | decimal, without a sign; addresses too | the number |
//! | [signed numbers](Points::SignedNumbers) | decimal | the number plus 2^127 |
//! | [addresses](Points::Addresses) | IPv4 or IPv6 | IPv6; IPv4 as ::ffff:0:0/96 |
//!
//! # The directory as bytes
//!
//! Ranges are in ascending order and do not overlap. If they are networks, most begin right after
//! the one before, and most sizes are powers of two. Such a range takes one byte:
//!
//! | first byte | then | the range |
//! |---|---|---|
//! | *z*, 0 to 127 | | begins after the one before and has 2^*z* points |
//! | 128 | *gap*, *z*, *odd* | begins *gap* points after that, and has (2·*odd* + 1)·2^*z* points |
//! | 129 | *z*, *odd* | as 128, without a gap |
//!
//! *z* is a byte; *gap* and *odd* are written with seven bits to a byte, the lowest first, and the
//! eighth bit set in all bytes but the last (LEB128 with no needless bytes). A range of all 2^128
//! points has *z* = 128 and *odd* = 0. Each range has one encoding, the shortest. A table of
//! 500,000 networks has a directory of some 600 KB.

use super::key_format::malformed;
use super::number;
use privet_core::codec::Reader;
use privet_core::{Error, Result, SecretRng};
use privet_kernels::taint::{admit, conceal};
use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr};

/// What the bounds of ranges are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Points {
    /// Numbers from 0 to 2^128 − 1. A key may be written as an address too: as its number.
    Numbers,
    /// Numbers from −2^127 to 2^127 − 1.
    SignedNumbers,
    /// IPv4 and IPv6 addresses.
    Addresses,
}

impl Points {
    /// All kinds. A table gets the first kind that fits its bounds.
    pub(crate) const ALL: [Self; 3] = [Self::Numbers, Self::SignedNumbers, Self::Addresses];

    /// Their name in the plural.
    pub fn name(self) -> &'static str {
        match self {
            Points::Numbers => "numbers",
            Points::SignedNumbers => "signed numbers",
            Points::Addresses => "addresses",
        }
    }

    /// The point that a bound in a row stands for. As [`parse`](Self::parse), except that an
    /// address is not accepted as a number.
    fn parse_bound(self, text: &str) -> Option<u128> {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        self.parse(text.as_bytes()).filter(|_| self != Points::Numbers || is_number)
    }

    /// Refuses what is no point of this kind, and says why. The words do not have the key in them:
    /// it may be a secret. Why a long text is none is not looked for: it would take longer than
    /// reading a point does.
    pub(super) fn check(self, key: &[u8]) -> Result<(), &'static str> {
        if self.parse(key).is_some() {
            return Ok(());
        }
        let short = Some(key).filter(|key| key.len() <= LONGEST_EXPLAINED);
        let text = short.and_then(|key| std::str::from_utf8(key).ok()).unwrap_or_default().trim();
        let octets = || text.split('.');
        Err(match self {
            Points::Numbers => "this is no number from 0 to 2^128 - 1, and no address",
            Points::SignedNumbers => "this is no whole number, or it is too large",
            Points::Addresses if text.contains('/') => {
                "this is a network and no address: name one address of it"
            }
            Points::Addresses if text.starts_with('[') => {
                "this is no address: leave out the brackets, and a port"
            }
            Points::Addresses if text.contains('%') => {
                "this is no address: leave out the zone, from the % on"
            }
            Points::Addresses
                if octets().count() == 4
                    && octets().all(|octet| octet.parse::<u8>().is_ok())
                    && octets().any(|octet| octet.len() > 1 && octet.starts_with('0')) =>
            {
                "this is no address: leave out the zeros at the beginning of its numbers"
            }
            Points::Addresses => "this is no address",
        })
    }

    /// The bounds in a row: `from` and `until`; or in `from` alone a network, `1.2.3.0/24`, two
    /// addresses, `1.2.3.0-1.2.3.255`, or the first point.
    pub(crate) fn parse_bounds(self, text: &str, until: Option<&str>) -> Option<Bounds> {
        let bound = |text: &str| self.parse_bound(text.trim());
        if let Some(to) = until {
            return Some(Bounds { from: bound(text)?, to: Some(bound(to)?) });
        }
        if let (Points::Addresses, Some((address, bits))) = (self, text.split_once('/')) {
            return network(address.trim(), bits.trim());
        }
        if let (Points::Addresses, Some((from, to))) = (self, text.split_once('-')) {
            return Some(Bounds { from: bound(from)?, to: Some(bound(to)?) });
        }
        Some(Bounds { from: bound(text)?, to: None })
    }

    /// A point as people write it.
    pub fn text(self, point: u128) -> String {
        match self {
            Points::Numbers => point.to_string(),
            Points::SignedNumbers => (point as i128 ^ i128::MIN).to_string(),
            Points::Addresses => Ipv6Addr::from_bits(point).to_canonical().to_string(),
        }
    }

    fn code(self) -> u8 {
        match self {
            Points::Numbers => 0,
            Points::SignedNumbers => 1,
            Points::Addresses => 2,
        }
    }

    /// The point that `text` names.
    pub(super) fn parse(self, text: &[u8]) -> Option<u128> {
        let text = std::str::from_utf8(text).ok()?.trim();
        let address = || text.parse().ok();
        match self {
            Points::Numbers => text.parse().ok().or_else(|| match address()? {
                IpAddr::V4(address) => Some(address.to_bits().into()),
                IpAddr::V6(address) => Some(address.to_bits()),
            }),
            Points::SignedNumbers => {
                text.parse::<i128>().ok().map(|number| number as u128 ^ (1 << 127))
            }
            Points::Addresses => Some(match address()? {
                IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
                IpAddr::V6(address) => address.to_bits(),
            }),
        }
    }
}

/// A range of points, both bounds included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first point.
    pub from: u128,
    /// The last point, not below the first.
    pub to: u128,
}

impl Range {
    /// The key under which the row of this range is packed, and looked up.
    pub fn name(&self) -> [u8; NAME_LEN] {
        name(true, self.from)
    }
}

/// What a row says of its range. Without `to`, the range ends where the next one begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) from: u128,
    pub(crate) to: Option<u128>,
}

/// What a row says of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowKey<'a> {
    /// The key. In a table of ranges, the bounds of a range, its first point, or any of its points.
    pub key: &'a [u8],
    /// The last point of a range, if it stands in a column of its own.
    pub until: Option<&'a [u8]>,
}

impl<'a> From<&'a [u8]> for RowKey<'a> {
    fn from(key: &'a [u8]) -> Self {
        Self { key, until: None }
    }
}

impl<'a, const LEN: usize> From<&'a [u8; LEN]> for RowKey<'a> {
    fn from(key: &'a [u8; LEN]) -> Self {
        key.as_slice().into()
    }
}

/// The bounds of a network: an address in which all but the first `bits` bits are zero.
fn network(address: &str, bits: &str) -> Option<Bounds> {
    let (address, bits): (IpAddr, u32) = (address.parse().ok()?, bits.parse().ok()?);
    let (from, free) = match address {
        IpAddr::V4(address) => (address.to_ipv6_mapped().to_bits(), 32u32.checked_sub(bits)?),
        IpAddr::V6(address) => (address.to_bits(), 128u32.checked_sub(bits)?),
    };
    let rest = u128::MAX.checked_shr(128 - free).unwrap_or(0);
    (from & rest == 0).then_some(Bounds { from, to: Some(from | rest) })
}

/// Of texts up to this length it is said why they are no points. No address is longer.
const LONGEST_EXPLAINED: usize = 128;

/// Ranges are found by blocks of this many. A client looks through one block for each key.
const BLOCK: usize = 64;

/// The bounds of all ranges of a table, as every client downloads them.
#[derive(Clone, PartialEq, Eq)]
pub struct Directory {
    points: Points,
    is_nested: bool,
    ranges: u32,
    bytes: Vec<u8>,
    /// Where every block begins; at least one.
    blocks: Vec<Block>,
}

/// Where a block of ranges begins.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Block {
    /// The first point of its first range.
    first: u128,
    /// The point after the range before it.
    after: u128,
    offset: usize,
}

impl Directory {
    /// The directory of `ranges`, which are in ascending order. They `are_nested` if they are what
    /// is left of ranges that may lie in one another, so that several may belong to one row.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if there are none, or 2^32 and more; if
    /// a range ends before it begins, or begins before the one before it has ended.
    pub fn new(points: Points, ranges: &[Range], are_nested: bool) -> Result<Self> {
        let mut bytes = Vec::new();
        // `None` once no point is left.
        let mut after = Some(0);
        for range in ranges {
            let begins = after.filter(|after| *after <= range.from && range.from <= range.to);
            let Some(begins) = begins else {
                return Err(Error::api_misuse("ranges overlap or are not in ascending order"));
            };
            write_range(range, begins, &mut bytes);
            after = range.to.checked_add(1);
        }
        let count = u32::try_from(ranges.len()).ok().filter(|count| *count > 0);
        let count = count.ok_or_else(|| {
            Error::api_misuse(format!("a table has 1 to {} ranges, not {}", u32::MAX, ranges.len()))
        })?;
        Self::read(points, are_nested, count, bytes)
    }

    /// Whether several ranges may belong to one row.
    pub fn is_nested(&self) -> bool {
        self.is_nested
    }

    /// What the bounds are.
    pub fn points(&self) -> Points {
        self.points
    }

    /// How many ranges there are.
    pub fn ranges(&self) -> u64 {
        self.ranges.into()
    }

    /// The bytes that the bounds take.
    pub fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The name under which the range that holds `key` is looked up. For a key that no range holds,
    /// a name of the same length that no range has.
    ///
    /// The key decides which addresses the search for its block reads, which block is read, and so
    /// which bytes are decoded. Apart from that, no branch depends on the key after its text is
    /// read.
    pub(super) fn name_for(&self, key: &[u8]) -> [u8; NAME_LEN] {
        let point = self.points.parse(key);
        // From here on, a key that is no point takes as long as a point that no range holds.
        let (is_point, point) = (point.is_some(), conceal(point.unwrap_or(u128::MAX)));
        let mut block = 0;
        let mut blocks_left = self.blocks.len();
        while blocks_left > 1 {
            let half = blocks_left / 2;
            let lies_beyond = self.blocks[admit(block + half)].first <= point;
            block += half * usize::from(lies_beyond);
            blocks_left -= half;
        }
        let block = admit(block);
        let Block { mut after, offset, .. } = self.blocks[block];
        let in_block = (self.ranges as usize - block * BLOCK).min(BLOCK);
        let mut reader = Reader::new(WHAT, &self.bytes[offset..]);
        let (mut found, mut from) = (false, point);
        for _ in 0..in_block {
            // Cannot fail: these bytes were read when the directory was made.
            let Ok(range) = read_range(&mut reader, after) else { break };
            let holds = is_point & (range.from <= point) & (point <= range.to);
            let mask = 0u128.wrapping_sub(holds.into());
            from = (range.from & mask) | (from & !mask);
            found |= holds;
            after = range.to.wrapping_add(1);
        }
        name(found, from)
    }

    /// A point of any range, as people write it.
    pub(super) fn any_point(&self, rng: &mut SecretRng) -> String {
        let block = rng.below(self.blocks.len() as u64) as usize;
        self.points.text(self.blocks[block].first)
    }

    /// Whether a range holds `key`. For the owner, from whom the answer need not be hidden.
    pub(super) fn holds(&self, key: &[u8]) -> bool {
        self.name_for(key)[0] == 1
    }

    /// The key to edit for the row that `key` stands for: a point, or the bounds of a range that
    /// the table has. `None` if it has no such range. For the owner, like [`holds`](Self::holds).
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if these are no bounds and no point.
    pub(super) fn key_of_row<'k>(&self, row: RowKey<'k>) -> Result<Option<Cow<'k, [u8]>>> {
        let RowKey { key, until } = row;
        // What is no text is no point, as the empty text is none.
        let until = until.map(|until| std::str::from_utf8(until).unwrap_or_default());
        let text = std::str::from_utf8(key).ok();
        let bounds = text.and_then(|text| self.points.parse_bounds(text, until));
        if bounds.is_none() && until.is_some() {
            return Err(malformed("these are no bounds of a range"));
        }
        let Some(Bounds { from, to: Some(to) }) = bounds else {
            self.points.check(key).map_err(malformed)?;
            return Ok(self.holds(key).then_some(Cow::Borrowed(key)));
        };
        let from_text = self.points.text(from);
        let to_text = self.points.text(to);
        // It must be the range that begins at `from`, holds `to`, and does not go on after it.
        let name = self.name_for(from_text.as_bytes());
        let range = Range { from, to };
        let ends = to == u128::MAX || self.name_for(self.points.text(to + 1).as_bytes()) != name;
        let is_it = name == range.name() && self.name_for(to_text.as_bytes()) == name && ends;
        Ok(is_it.then(|| Cow::Owned(from_text.into_bytes())))
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.points.code());
        out.extend_from_slice(&self.ranges.to_le_bytes());
        // There are fewer than 2^32 ranges of at most 41 bytes, so the length fits.
        out.extend_from_slice(&(self.bytes.len() as u64).to_le_bytes());
        out.extend_from_slice(&self.bytes);
    }

    pub(super) fn decode(reader: &mut Reader<'_>, is_nested: bool) -> Result<Self> {
        let code = reader.u8()?;
        let points = Points::ALL.into_iter().find(|points| points.code() == code);
        let points = points.ok_or_else(|| invalid("this program does not know its points"))?;
        let ranges = reader.u32()?;
        let len = usize::try_from(reader.u64()?).map_err(|_| invalid("it is too long"))?;
        let bytes = reader.bytes(len)?.to_vec();
        if ranges == 0 {
            return Err(invalid("it has no ranges"));
        }
        Self::read(points, is_nested, ranges, bytes)
    }

    /// Reads all of `bytes`, and notes where blocks begin.
    fn read(points: Points, is_nested: bool, ranges: u32, bytes: Vec<u8>) -> Result<Self> {
        let mut reader = Reader::new(WHAT, &bytes);
        let (mut blocks, mut after) = (Vec::new(), Some(0));
        let mut encoded = Vec::new();
        for number in 0..ranges as usize {
            let begins = after.ok_or_else(|| invalid("a range begins after the last point"))?;
            let offset = bytes.len() - reader.remaining();
            let range = read_range(&mut reader, begins)?;
            encoded.clear();
            write_range(&range, begins, &mut encoded);
            if encoded != bytes[offset..bytes.len() - reader.remaining()] {
                return Err(invalid("a range is not written in the shortest way"));
            }
            if number.is_multiple_of(BLOCK) {
                blocks.push(Block { first: range.from, after: begins, offset });
            }
            after = range.to.checked_add(1);
        }
        reader.finish()?;
        Ok(Self { points, is_nested, ranges, bytes, blocks })
    }
}

impl std::fmt::Debug for Directory {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Directory")
            .field("points", &self.points)
            .field("is_nested", &self.is_nested)
            .field("ranges", &self.ranges)
            .finish_non_exhaustive()
    }
}

/// The bytes of a range's name.
pub(crate) const NAME_LEN: usize = 17;

fn name(is_range: bool, point: u128) -> [u8; NAME_LEN] {
    let mut name = [0; NAME_LEN];
    name[0] = is_range.into();
    name[1..].copy_from_slice(&point.to_be_bytes());
    name
}

const WHAT: &str = "a directory of ranges";
const WITH_GAP: u8 = 128;
const WITHOUT_GAP: u8 = 129;

/// Appends `range`. `after` is the point at which it would begin without a gap.
fn write_range(range: &Range, after: u128, out: &mut Vec<u8>) {
    let gap = range.from - after;
    // 0 stands for all 2^128 points.
    let size = (range.to - range.from).wrapping_add(1);
    let zeros = size.trailing_zeros() as u8;
    let odd = size.checked_shr(zeros.into()).unwrap_or(0) >> 1;
    if gap == 0 && odd == 0 && zeros < WITH_GAP {
        out.push(zeros);
        return;
    }
    if gap == 0 {
        out.push(WITHOUT_GAP);
    } else {
        out.push(WITH_GAP);
        number::write(out, gap);
    }
    out.push(zeros);
    number::write(out, odd);
}

fn read_range(reader: &mut Reader<'_>, after: u128) -> Result<Range> {
    let too_large = || invalid("a range ends after the last point");
    let (gap, zeros, odd) = match reader.u8()? {
        WITH_GAP => (read_number(reader)?, reader.u8()?, read_number(reader)?),
        WITHOUT_GAP => (0, reader.u8()?, read_number(reader)?),
        zeros @ ..WITH_GAP => (0, zeros, 0),
        _ => return Err(invalid("a range begins with an unknown byte")),
    };
    let from = after.checked_add(gap).ok_or_else(too_large)?;
    // One less than the size, which may be 2^128.
    let span = match zeros {
        128 if odd == 0 => Some(u128::MAX),
        128.. => None,
        _ => {
            let factor = odd.checked_mul(2).and_then(|twice| twice.checked_add(1));
            // The highest bits must not be shifted out.
            factor
                .filter(|factor| factor.leading_zeros() >= u32::from(zeros))
                .map(|factor| (factor << zeros) - 1)
        }
    };
    let to = span.and_then(|span| from.checked_add(span)).ok_or_else(too_large)?;
    Ok(Range { from, to })
}

fn read_number(reader: &mut Reader<'_>) -> Result<u128> {
    number::take(u128::MAX, || reader.u8().ok()).map_err(invalid)
}

fn invalid(why: &str) -> Error {
    Error::invalid_message(format!("{WHAT} is invalid: {why}"))
}
