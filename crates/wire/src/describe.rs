//! A server's description of what it serves.
//!
//! A [`ServerDescription`] is the first thing that a client gets from a server, and everything in
//! it is only the server's claim: sizes that the client will allocate, parameters that decide how
//! well its queries are hidden, names that it will print. So this module checks all of it. The
//! scheme itself decodes the parameters, and refuses those below the security target. The announced
//! digests and sizes must be the ones that follow from them.
//!
//! A scheme with an unknown name is skipped, so that an older client can talk to a newer server. So
//! is `plain`, the lookup without privacy that benchmarks compare with: it has no [`SchemeId`], and
//! no server can make a client use it.

use crate::fields::{array, printable};
use crate::limits::{
    MAX_EARLIER, MAX_LAYOUT_LEN, MAX_LINEAGE_LEN, MAX_NAME_LEN, MAX_PARAMETERS_LEN, MAX_QUERIES,
    MAX_SCHEMES, MAX_SOFTWARE_LEN, MAX_TABLES, MAX_TOLD_LAYOUT_LEN,
};
use crate::{PROTOCOL_VERSION, PartKind, counted, proto};
use privet_core::{Epoch, Error, Result, TableDigest, TableId, TableIdentity, TableShape};
use privet_schemes::SchemeId;
use privet_schemes::offline::OfflinePhase;
use privet_schemes::registry::SchemePlan;
use prost::Message as _;
use std::collections::HashSet;

/// Asks the server what it serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescribeRequest {
    /// The highest protocol version that the client speaks, at least 1.
    pub protocol_version: u32,
}

impl Default for DescribeRequest {
    fn default() -> Self {
        Self { protocol_version: PROTOCOL_VERSION }
    }
}

/// A server's description of itself and its tables.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerDescription {
    /// Name and version of the server software, for people: at most [`MAX_SOFTWARE_LEN`] bytes, all
    /// printable.
    pub software: String,
    /// At most [`MAX_TABLES`] tables, all with different names and ids.
    pub tables: Vec<TableDescription>,
    /// How many queries a request may carry at most, if their lengths allow it: 1 to
    /// [`MAX_QUERIES`]. A new description has 1.
    pub max_queries: u32,
}

/// One table in its current version.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableDescription {
    /// 1 to [`MAX_NAME_LEN`] characters of `A-Z a-z 0-9 . _ -`.
    pub name: String,
    /// The table's id and version.
    pub identity: TableIdentity,
    /// How keys and values lie in records: at most [`MAX_LAYOUT_LEN`] bytes.
    pub layout: PartDescription,
    /// The layout itself, if the server sent it along: at most [`MAX_TOLD_LAYOUT_LEN`] bytes, not
    /// checked against [`layout`](Self::layout).
    pub layout_bytes: Option<Vec<u8>>,
    /// At most [`MAX_SCHEMES`] schemes that serve it, all with different parameter digests. Empty
    /// if this program knows none of the offered schemes.
    pub schemes: Vec<SchemeDescription>,
    /// Its update log, if it has one.
    pub updates: Option<UpdatesDescription>,
    /// Earlier versions that are still served, at most [`MAX_EARLIER`], the latest first. Behind
    /// them stand those of tables that this one succeeds, with the same name and without earlier
    /// versions of their own. Those with the same id have no update log of their own.
    pub earlier: Vec<TableDescription>,
}

/// A server's description of a table's update log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpdatesDescription {
    /// The Ed25519 public key of the epochs' signatures.
    pub publisher: [u8; 32],
    /// The oldest version from which the epochs that follow it can be fetched; at most the current
    /// version.
    pub first_epoch: Epoch,
    /// The digest of the key that signs a successor, if one was named.
    pub next_key: Option<[u8; 32]>,
    /// The successions that lead to the table, if there are any: 1 to [`MAX_LINEAGE_LEN`] bytes.
    pub lineage: Option<PartDescription>,
}

/// One scheme that serves a table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchemeDescription {
    /// The scheme, its parameters and the sizes that follow.
    pub plan: SchemePlan,
    /// [`SchemePlan::digest`] for the table.
    pub parameter_digest: [u8; 32],
    /// What a client fetches before the first query: the part that [`hint_kind`](Self::hint_kind)
    /// names, a hint proper or the table's records. Present exactly if the plan says so, with the
    /// length that it says; absent if a server computes hints for each client alone.
    pub hint: Option<PartDescription>,
}

/// Length and digest of a part that is the same for every client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartDescription {
    /// Length in bytes.
    pub len: u64,
    /// BLAKE3 digest.
    pub digest: [u8; 32],
}

impl ServerDescription {
    /// A server's description of itself. Characters of `software` that a terminal cannot safely
    /// print are replaced.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage) if there are more than
    /// [`MAX_TABLES`] tables, or two with the same name or id.
    pub fn new(software: &str, tables: Vec<TableDescription>) -> Result<Self> {
        if tables.len() > MAX_TABLES {
            return Err(Error::invalid_message(format!(
                "one server serves at most {MAX_TABLES} tables, not {}",
                tables.len()
            )));
        }
        let (mut names, mut ids) = (HashSet::new(), HashSet::new());
        for table in &tables {
            if !names.insert(table.name.as_str()) {
                return Err(Error::invalid_message(format!("two tables are named {}", table.name)));
            }
            if !ids.insert(table.identity.id) {
                return Err(Error::invalid_message(format!(
                    "two tables have the id {}",
                    table.identity.id
                )));
            }
        }
        Ok(Self {
            software: shorten(&printable(software, MAX_SOFTWARE_LEN), MAX_SOFTWARE_LEN).to_owned(),
            tables,
            max_queries: 1,
        })
    }

    /// The table of that name.
    pub fn table(&self, name: &str) -> Option<&TableDescription> {
        self.tables.iter().find(|table| table.name == name)
    }

    /// The plans of all schemes of all tables in all versions; limits of messages are computed from
    /// them.
    pub fn plans(&self) -> impl Iterator<Item = &SchemePlan> {
        let versions = self.tables.iter().flat_map(TableDescription::versions);
        versions.flat_map(|table| &table.schemes).map(|scheme| &scheme.plan)
    }
}

impl TableDescription {
    /// A table and the schemes that serve it.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage) if the name is not valid, the
    /// layout is too long, there are too many schemes, or two have the same parameter digest.
    /// [`Blame::PeerMisbehaved`](privet_core::Blame::PeerMisbehaved) if a scheme does not belong to
    /// the table `identity`.
    pub fn new(
        name: &str,
        identity: TableIdentity,
        layout: PartDescription,
        schemes: Vec<SchemeDescription>,
    ) -> Result<Self> {
        check_name(name)?;
        if layout.len > MAX_LAYOUT_LEN {
            return Err(Error::invalid_message(format!(
                "the record layout of table {name} has {} bytes; the limit is {MAX_LAYOUT_LEN}",
                layout.len
            )));
        }
        check_scheme_count(name, schemes.len())?;
        let mut digests = HashSet::new();
        for scheme in &schemes {
            if scheme.parameter_digest != scheme.plan.digest(&identity) {
                return Err(foreign_digest(scheme.plan.scheme).within(format!("table {name}")));
            }
            if !digests.insert(scheme.parameter_digest) {
                return Err(Error::invalid_message(format!(
                    "table {name} lists {} twice with the same parameters",
                    scheme.plan.scheme
                )));
            }
        }
        let (name, layout_bytes) = (name.to_owned(), None);
        let (updates, earlier) = (None, Vec::new());
        Ok(Self { name, identity, layout, layout_bytes, schemes, updates, earlier })
    }

    /// The same table with an update log, and with earlier versions that are still served, the
    /// latest first.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage) if the log begins after the
    /// table's version; there are more than [`MAX_EARLIER`] earlier versions; or one is not earlier
    /// than the one before it, has another name, or a log or earlier versions that it may not have.
    pub fn with_versions(
        self,
        updates: Option<UpdatesDescription>,
        earlier: Vec<TableDescription>,
    ) -> Result<Self> {
        let wrong = |what: &str| {
            Err(Error::invalid_message(format!("table {} is described {what}", self.name)))
        };
        if updates.is_some_and(|updates| updates.first_epoch > self.identity.epoch) {
            return wrong("with an update log that begins after its version");
        }
        if earlier.len() > MAX_EARLIER {
            return wrong(&format!(
                "with {} earlier versions; the limit is {MAX_EARLIER}",
                earlier.len()
            ));
        }
        let mut later = self.identity;
        for version in &earlier {
            let is_own = version.identity.id == self.identity.id;
            let nested = (is_own && version.updates.is_some()) || !version.earlier.is_empty();
            let comes_before = match version.identity.id == later.id {
                true => version.identity.epoch < later.epoch,
                // Of a table that this one succeeds.
                false => !is_own,
            };
            if nested || version.name != self.name || !comes_before {
                return wrong("with a version that is not an earlier one");
            }
            later = version.identity;
        }
        Ok(Self { updates, earlier, ..self })
    }

    /// The table in its current version and the earlier ones that are still served, the latest
    /// first; then the tables that it succeeds.
    pub fn versions(&self) -> impl Iterator<Item = &TableDescription> {
        std::iter::once(self).chain(&self.earlier)
    }

    /// The served versions of this table, or of one that it succeeds, the latest first.
    pub fn versions_of(&self, id: TableId) -> impl Iterator<Item = &TableDescription> {
        self.versions().filter(move |version| version.identity.id == id)
    }

    /// The update log of this table, or of one that it succeeds and that is still served.
    pub fn updates_of(&self, id: TableId) -> Option<UpdatesDescription> {
        self.versions_of(id).next()?.updates
    }

    /// The description of `scheme`, if it serves the table.
    pub fn scheme(&self, scheme: SchemeId) -> Option<&SchemeDescription> {
        self.schemes.iter().find(|description| description.plan.scheme == scheme)
    }
}

impl SchemeDescription {
    /// A scheme with the plan `plan` on the table `identity`; `hint` describes what its clients
    /// fetch first.
    ///
    /// # Errors
    /// [`Blame::PeerMisbehaved`](privet_core::Blame::PeerMisbehaved) if `hint` differs from what
    /// the plan prescribes.
    pub fn new(
        plan: SchemePlan,
        identity: &TableIdentity,
        hint: Option<PartDescription>,
    ) -> Result<Self> {
        let prescribed = part_received(plan.offline).map(|_| plan.offline.len());
        let announced = hint.map(|hint| hint.len);
        if announced != prescribed {
            let bytes =
                |len: Option<u64>| len.map_or("nothing".to_owned(), |len| format!("{len} bytes"));
            return Err(Error::peer_misbehaved(format!(
                "clients of {} with these parameters have {} to fetch before their first query; the announcement says {}",
                plan.scheme,
                bytes(prescribed),
                bytes(announced)
            )));
        }
        let parameter_digest = plan.digest(identity);
        Ok(Self { plan, parameter_digest, hint })
    }

    /// The part that [`hint`](Self::hint) describes: the one to fetch before the first query.
    pub fn hint_kind(&self) -> Option<PartKind> {
        part_received(self.plan.offline)
    }
}

impl PartDescription {
    /// The description of a part with this length and digest.
    pub fn new(len: u64, digest: [u8; 32]) -> Self {
        Self { len, digest }
    }
}

/// Checks a table's name: 1 to [`MAX_NAME_LEN`] characters of `A-Z a-z 0-9 . _ -`.
///
/// # Errors
/// [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage) if it is not valid. The message
/// quotes only printable characters.
pub fn check_name(name: &str) -> Result<()> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if (1..=MAX_NAME_LEN).contains(&name.len()) && name.bytes().all(allowed) {
        return Ok(());
    }
    Err(Error::invalid_message(format!(
        "{:?} cannot be a name: a name has 1 to {MAX_NAME_LEN} characters of A-Z a-z 0-9 . _ -",
        printable(name, MAX_NAME_LEN)
    )))
}

/// The part that clients receive in an offline phase.
fn part_received(offline: OfflinePhase) -> Option<PartKind> {
    match offline {
        OfflinePhase::Download { .. } | OfflinePhase::StreamArranged { .. } => Some(PartKind::Hint),
        OfflinePhase::StreamTable { .. } | OfflinePhase::KeepTable { .. } => Some(PartKind::Table),
        _ => None,
    }
}

fn check_scheme_count(name: &str, count: usize) -> Result<()> {
    if count <= MAX_SCHEMES {
        return Ok(());
    }
    Err(Error::invalid_message(format!(
        "table {name} lists {count} schemes; the limit is {MAX_SCHEMES}"
    )))
}

fn foreign_digest(scheme: SchemeId) -> Error {
    Error::peer_misbehaved(format!(
        "the parameters of {scheme} do not have the digest that was announced for them; server and client are probably of incompatible versions"
    ))
}

/// The longest prefix of `text` with at most `max_len` bytes.
fn shorten(text: &str, max_len: usize) -> &str {
    &text[..text.floor_char_boundary(max_len)]
}

impl TryFrom<proto::DescribeRequest> for DescribeRequest {
    type Error = Error;

    fn try_from(message: proto::DescribeRequest) -> Result<Self> {
        if message.protocol_version == 0 {
            return Err(Error::invalid_message(
                "a client must say which protocol version it speaks",
            ));
        }
        Ok(Self { protocol_version: message.protocol_version })
    }
}

impl From<DescribeRequest> for proto::DescribeRequest {
    fn from(request: DescribeRequest) -> Self {
        Self { protocol_version: request.protocol_version }
    }
}

impl ServerDescription {
    /// Reads a description that came from outside. Allocates little more than `bytes` is long:
    /// what it lists is counted first.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage) or
    /// [`Blame::PeerMisbehaved`](privet_core::Blame::PeerMisbehaved) if it is none.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        // A request has the version in the same field, and nothing else.
        let version = proto::DescribeRequest::decode(bytes).map_err(counted::malformed)?;
        let protocol_version = version.protocol_version;
        if protocol_version != PROTOCOL_VERSION {
            return proto::DescribeResponse { protocol_version, ..Default::default() }.try_into();
        }
        counted::check(bytes)?;
        proto::DescribeResponse::decode(bytes).map_err(counted::malformed)?.try_into()
    }
}

impl TryFrom<proto::DescribeResponse> for ServerDescription {
    type Error = Error;

    fn try_from(message: proto::DescribeResponse) -> Result<Self> {
        // Check this first: in a message of another version, all other fields may have another
        // meaning.
        if message.protocol_version != PROTOCOL_VERSION {
            return Err(Error::peer_misbehaved(format!(
                "the server speaks version {} of the protocol, this program version {PROTOCOL_VERSION}; install the release that fits the server",
                message.protocol_version
            )));
        }
        if message.software.len() > MAX_SOFTWARE_LEN {
            return Err(Error::invalid_message(format!(
                "the name of the server software has {} bytes; the limit is {MAX_SOFTWARE_LEN}",
                message.software.len()
            )));
        }
        if message.tables.len() > MAX_TABLES {
            return Err(Error::invalid_message(format!(
                "the server lists {} tables; the limit is {MAX_TABLES}",
                message.tables.len()
            )));
        }
        let tables =
            message.tables.into_iter().map(TableDescription::try_from).collect::<Result<_>>()?;
        let max_queries = message.max_queries.clamp(1, MAX_QUERIES);
        Ok(Self { max_queries, ..Self::new(&message.software, tables)? })
    }
}

impl From<ServerDescription> for proto::DescribeResponse {
    fn from(description: ServerDescription) -> Self {
        Self {
            protocol_version: PROTOCOL_VERSION,
            software: description.software,
            tables: description.tables.into_iter().map(Into::into).collect(),
            // One needs no field.
            max_queries: if description.max_queries > 1 { description.max_queries } else { 0 },
        }
    }
}

impl TryFrom<proto::Table> for TableDescription {
    type Error = Error;

    fn try_from(mut message: proto::Table) -> Result<Self> {
        check_name(&message.name)?;
        let name = message.name.clone();
        let updates = message.updates.take();
        let mut earlier = std::mem::take(&mut message.earlier);
        let own = earlier.len();
        earlier.append(&mut message.predecessors);
        let checked = || {
            let table = checked_table(message)?;
            let updates = updates.map(UpdatesDescription::try_from).transpose()?;
            // Count before decoding, and look no deeper than one level.
            let nested = |version: &proto::Table| {
                !version.earlier.is_empty() || !version.predecessors.is_empty()
            };
            if earlier.len() > MAX_EARLIER || earlier.iter().any(nested) {
                return Err(Error::invalid_message(format!(
                    "it has more than {MAX_EARLIER} earlier versions, or they have versions of their own"
                )));
            }
            let id = table.identity.id;
            let earlier = earlier.into_iter().enumerate().map(|(place, mut version)| {
                check_name(&version.name)?;
                let updates = version.updates.take().map(UpdatesDescription::try_from);
                let version = checked_table(version)?;
                if (version.identity.id == id) != (place < own) {
                    return Err(Error::invalid_message(
                        "an earlier version is of another table, or a predecessor of the same",
                    ));
                }
                version.with_versions(updates.transpose()?, Vec::new())
            });
            table.with_versions(updates, earlier.collect::<Result<_>>()?)
        };
        checked().map_err(|error: Error| error.within(format!("table {name}")))
    }
}

impl TryFrom<proto::Updates> for UpdatesDescription {
    type Error = Error;

    fn try_from(message: proto::Updates) -> Result<Self> {
        let next_key = message.next_key.map(|digest| array("the digest of a next key", &digest));
        let lineage = message.lineage.map(PartDescription::try_from).transpose()?;
        if lineage.is_some_and(|lineage| !(1..=MAX_LINEAGE_LEN).contains(&lineage.len)) {
            return Err(Error::invalid_message(format!(
                "the successions that lead to it take 1 to {MAX_LINEAGE_LEN} bytes"
            )));
        }
        Ok(Self {
            publisher: array("the publisher's key", &message.publisher)?,
            first_epoch: Epoch(message.first_epoch),
            next_key: next_key.transpose()?,
            lineage,
        })
    }
}

impl From<UpdatesDescription> for proto::Updates {
    fn from(updates: UpdatesDescription) -> Self {
        Self {
            publisher: updates.publisher.to_vec(),
            first_epoch: updates.first_epoch.0,
            next_key: updates.next_key.map(|digest| digest.to_vec()),
            lineage: updates.lineage.map(Into::into),
        }
    }
}

fn checked_table(message: proto::Table) -> Result<TableDescription> {
    let shape = TableShape::new(message.records, message.record_len)
        .map_err(|error| Error::invalid_message(error.message().to_owned()))?;
    let identity = TableIdentity {
        id: TableId(array("the table id", &message.table_id)?),
        epoch: Epoch(message.epoch),
        digest: TableDigest(array("the table digest", &message.digest)?),
        shape,
    };
    let layout = message
        .layout
        .ok_or_else(|| Error::invalid_message("the record layout is not described"))?
        .try_into()?;
    check_scheme_count(&message.name, message.schemes.len())?;
    let mut schemes = Vec::with_capacity(message.schemes.len());
    for scheme in message.schemes {
        schemes.extend(checked_scheme(scheme, &identity)?);
    }
    let layout_bytes = message.layout_bytes;
    if let Some(told) = layout_bytes.as_ref().filter(|told| told.len() > MAX_TOLD_LAYOUT_LEN) {
        return Err(Error::invalid_message(format!(
            "a record layout of {} bytes is sent along; the limit is {MAX_TOLD_LAYOUT_LEN}",
            told.len()
        )));
    }
    let table = TableDescription::new(&message.name, identity, layout, schemes)?;
    Ok(TableDescription { layout_bytes, ..table })
}

impl From<TableDescription> for proto::Table {
    fn from(table: TableDescription) -> Self {
        let is_own = |version: &TableDescription| version.identity.id == table.identity.id;
        let (earlier, predecessors): (Vec<_>, Vec<_>) = table.earlier.into_iter().partition(is_own);
        Self {
            name: table.name,
            table_id: table.identity.id.0.to_vec(),
            epoch: table.identity.epoch.0,
            digest: table.identity.digest.0.to_vec(),
            records: table.identity.shape.records(),
            record_len: table.identity.shape.record_len(),
            layout: Some(table.layout.into()),
            schemes: table.schemes.into_iter().map(Into::into).collect(),
            updates: table.updates.map(Into::into),
            earlier: earlier.into_iter().map(Into::into).collect(),
            predecessors: predecessors.into_iter().map(Into::into).collect(),
            layout_bytes: table.layout_bytes,
        }
    }
}

/// The scheme, or `None` if this program does not know its name.
fn checked_scheme(
    message: proto::Scheme,
    identity: &TableIdentity,
) -> Result<Option<SchemeDescription>> {
    check_name(&message.name)?;
    let Ok(scheme) = message.name.parse::<SchemeId>() else {
        return Ok(None);
    };
    if message.parameters.len() > MAX_PARAMETERS_LEN {
        return Err(Error::invalid_message(format!(
            "the parameters of {scheme} have {} bytes; the limit is {MAX_PARAMETERS_LEN}",
            message.parameters.len()
        )));
    }
    let parameter_digest: [u8; 32] = array("the parameter digest", &message.parameter_digest)?;
    let plan = SchemePlan::from_announcement(scheme, identity, &message.parameters)?;
    let hint = message.hint.map(PartDescription::try_from).transpose()?;
    let description = SchemeDescription::new(plan, identity, hint)?;
    if description.parameter_digest != parameter_digest {
        return Err(foreign_digest(scheme));
    }
    Ok(Some(description))
}

impl From<SchemeDescription> for proto::Scheme {
    fn from(scheme: SchemeDescription) -> Self {
        Self {
            name: scheme.plan.scheme.name().to_owned(),
            parameters: scheme.plan.parameters,
            parameter_digest: scheme.parameter_digest.to_vec(),
            hint: scheme.hint.map(Into::into),
        }
    }
}

impl TryFrom<proto::PartDescription> for PartDescription {
    type Error = Error;

    fn try_from(message: proto::PartDescription) -> Result<Self> {
        Ok(Self { len: message.len, digest: array("the digest of a part", &message.digest)? })
    }
}

impl From<PartDescription> for proto::PartDescription {
    fn from(part: PartDescription) -> Self {
        Self { len: part.len, digest: part.digest.to_vec() }
    }
}
