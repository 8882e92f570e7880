//! How long a message may be.
//!
//! A limit is what the longest valid message needs, computed field by field from the parameters of
//! the served tables, so that no peer can make a program allocate more. Protobuf leaves out fields
//! that are zero and writes small numbers in few bytes; a limit assumes the longest form of each
//! field.
//!
//! A server has one limit for all requests: [`request_limit`]. A client has one for each kind of
//! response: [`DESCRIBE_RESPONSE_LIMIT`], [`FETCH_CHUNK_LIMIT`], [`answer_response_limit`] and
//! [`prepare_response_limit`].

pub use privet_core::table::{MAX_EPOCH_LEN, MAX_LAYOUT_LEN, MAX_LINEAGE_LEN};
use privet_schemes::offline::OfflinePhase;
use privet_schemes::registry::SchemePlan;

/// A chunk of a fetched part carries at most this many bytes: 256 KiB.
pub const FETCH_CHUNK_LEN: usize = 1 << 18;

/// One server serves at most this many tables.
pub const MAX_TABLES: usize = 1024;

/// A table is served by at most this many schemes.
pub const MAX_SCHEMES: usize = 32;

/// A server serves at most this many earlier versions of a table.
pub const MAX_EARLIER: usize = 3;

/// A layout of at most this many bytes travels with the description of its table.
pub const MAX_TOLD_LAYOUT_LEN: usize = 4096;

/// A table's or scheme's name has at most this many characters.
pub const MAX_NAME_LEN: usize = 64;

/// The name and version of the server software has at most this many bytes.
pub const MAX_SOFTWARE_LEN: usize = 128;

/// The canonical encoding of a scheme's parameters has at most this many bytes.
pub const MAX_PARAMETERS_LEN: usize = 256;

/// A request carries at most this many queries.
pub const MAX_QUERIES: u32 = 64;

/// Several queries in a request, or their answers, have at most this many bytes together: 256 KiB.
/// One alone may be longer.
pub const MAX_TOGETHER_LEN: usize = 1 << 18;

/// How many queries of `query_len` bytes a request may carry, if each answer has `answer_len`
/// bytes. It follows from the parameters, so both sides know it.
pub fn queries_together(query_len: usize, answer_len: usize) -> usize {
    let longest = query_len.max(answer_len).max(1);
    (MAX_TOGETHER_LEN / longest).clamp(1, MAX_QUERIES as usize)
}

/// The longest valid request for a description.
pub const DESCRIBE_REQUEST_LIMIT: usize = VARINT_32;

/// The longest valid description.
pub const DESCRIBE_RESPONSE_LIMIT: usize =
    2 * VARINT_32 + delimited(MAX_SOFTWARE_LEN) + MAX_TABLES * delimited(TABLE_LIMIT);

/// The longest valid request for a part.
pub const FETCH_REQUEST_LIMIT: usize = TABLE_VERSION_LIMIT + VARINT_32 + 2 * VARINT_64;

/// The longest valid chunk.
pub const FETCH_CHUNK_LIMIT: usize = VARINT_64 + delimited(FETCH_CHUNK_LEN);

/// The longest request that carries `query_len` bytes of queries.
pub const fn answer_request_limit(query_len: usize) -> usize {
    TABLE_VERSION_LIMIT + VARINT_32 + delimited(query_len)
}

/// The longest response that carries `answer_len` bytes of answers.
pub const fn answer_response_limit(answer_len: usize) -> usize {
    TABLE_VERSION_LIMIT + delimited(answer_len)
}

/// The longest request that carries a request for hints of `request_len` bytes.
pub const fn prepare_request_limit(request_len: usize) -> usize {
    answer_request_limit(request_len)
}

/// The longest response that carries a reply of `reply_len` bytes.
pub const fn prepare_response_limit(reply_len: usize) -> usize {
    answer_response_limit(reply_len)
}

/// The longest valid request of any kind to a server that serves schemes with these plans.
pub fn request_limit<'a>(plans: impl IntoIterator<Item = &'a SchemePlan>) -> usize {
    let of_scheme = |plan: &SchemePlan| {
        let together = |len: &usize| *len * queries_together(*len, plan.answer_len);
        let queries = plan.query_lens.iter().map(together).max().unwrap_or(0);
        answer_request_limit(queries).max(match plan.offline {
            OfflinePhase::Ask { request_len, .. } => prepare_request_limit(request_len),
            _ => 0,
        })
    };
    let longest = plans.into_iter().map(of_scheme).max().unwrap_or(0);
    longest.max(FETCH_REQUEST_LIMIT).max(DESCRIBE_REQUEST_LIMIT)
}

const TABLE_LIMIT: usize = TABLE_WITH_LOG_LIMIT + MAX_EARLIER * delimited(TABLE_WITH_LOG_LIMIT);

const TABLE_WITH_LOG_LIMIT: usize = TABLE_ALONE_LIMIT + delimited(UPDATES_LIMIT);

const UPDATES_LIMIT: usize = 2 * delimited(32) + VARINT_64 + delimited(PART_LIMIT);

/// A table in one version.
const TABLE_ALONE_LIMIT: usize = delimited(MAX_NAME_LEN)
    + delimited(16)
    + VARINT_64
    + delimited(32)
    + VARINT_64
    + VARINT_64
    + delimited(PART_LIMIT)
    + delimited(MAX_TOLD_LAYOUT_LEN)
    + MAX_SCHEMES * delimited(SCHEME_LIMIT);

const SCHEME_LIMIT: usize =
    delimited(MAX_NAME_LEN) + delimited(MAX_PARAMETERS_LEN) + delimited(32) + delimited(PART_LIMIT);

const PART_LIMIT: usize = VARINT_64 + delimited(32);

/// Table id, epoch and parameter digest.
const TABLE_VERSION_LIMIT: usize = delimited(16) + VARINT_64 + delimited(32);

/// A field's number and type: one byte, because no message here has a field beyond number 15.
const TAG: usize = 1;

/// A field with a 32-bit number, at its longest.
const VARINT_32: usize = TAG + varint_len(u32::MAX as u64);

/// A field with a 64-bit number, at its longest.
const VARINT_64: usize = TAG + varint_len(u64::MAX);

/// A field of `len` bytes: text, bytes or a message.
const fn delimited(len: usize) -> usize {
    TAG + varint_len(len as u64) + len
}

/// Bytes of a number in base 128.
const fn varint_len(number: u64) -> usize {
    let bits = 64 - (number | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}
