//! Reasons: which error it is, for programs that act on it.

use std::fmt;

macro_rules! reasons {
    ($($(#[$doc:meta])* $reason:ident => $name:literal,)*) => {
        /// Which error it is, if a program may act on it. A program branches on the reason, and a
        /// command names the option that helps. Most errors have none.
        ///
        /// Reasons are not sent over the wire: a server's refusal has none at the client.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Reason {
            $($(#[$doc])* $reason,)*
        }

        impl Reason {
            /// All reasons.
            pub const ALL: &[Self] = &[$(Self::$reason,)*];

            /// A stable name in lower case, for logs, JSON and other languages.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$reason => $name,)*
                }
            }
        }
    };
}

reasons! {
    /// A server has several tables, and none was named.
    TableNotChosen => "table-not-chosen",
    /// The only table of a server has another name than the table that was used there last.
    TableRenamed => "table-renamed",
    /// The served table is not the pinned one.
    TableReplaced => "table-replaced",
    /// The server uses another scheme than the pinned one, perhaps because the caller asked for it.
    SchemeReplaced => "scheme-replaced",
    /// The served table contradicts what was pinned about the same table at another server.
    ContradictedElsewhere => "contradicted-elsewhere",
    /// Several servers have a table in different versions, perhaps because it is being updated.
    VersionsDiffer => "versions-differ",
    /// Several servers do not serve the same table with the same parameters.
    ServersDisagree => "servers-disagree",
    /// No scheme that the caller allows is offered by all servers.
    SchemeNotOffered => "scheme-not-offered",
    /// The scheme needs another number of servers than were named.
    NumberOfServers => "number-of-servers",
    /// Only schemes that verify answers were allowed, and none is offered.
    NoSchemeVerifies => "no-scheme-verifies",
    /// The table has updates, and its publisher was not known before.
    PublisherUnknown => "publisher-unknown",
    /// The table's publisher is not the given or the pinned one.
    PublisherDiffers => "publisher-differs",
    /// A publisher was named, but the table has none.
    NotPublished => "not-published",
    /// A root was given, but the table is not authenticated.
    NotAuthenticated => "not-authenticated",
    /// The table has another root than the one that was given.
    RootDiffers => "root-differs",
    /// A digest was demanded, and no version that is served has it.
    DigestDiffers => "digest-differs",
    /// A version was demanded that the servers do not have yet.
    VersionTooEarly => "version-too-early",
    /// The given text is not a table's digest.
    NotADigest => "not-a-digest",
    /// The client would have to receive or keep more than is allowed.
    TooMuchToDownload => "too-much-to-download",
    /// The updates since the version that is kept are more than may be received.
    TooManyUpdates => "too-many-updates",
    /// The caller asked to compare two streams, but there are not two.
    NothingToCompare => "nothing-to-compare",
    /// Two servers streamed a half each, and together this is not the table that both announced.
    WrongHalf => "wrong-half",
    /// A key was looked up in a table that has none.
    NoKeys => "no-keys",
    /// A number was looked up in a table of keys.
    LookedUpByKey => "looked-up-by-key",
    /// A server did not answer, or sent nothing, within the longest wait.
    NoAnswerInTime => "no-answer-in-time",
    /// A server sends more slowly than the client tolerates.
    TooSlow => "too-slow",
    /// Not everything was done within the allowed time.
    TimeIsUp => "time-is-up",
    /// The client already remembers the most tables of one server that it can.
    TooManyTablesRemembered => "too-many-tables-remembered",
    /// The stored single-use hints cannot be used any more: they are damaged, perhaps copied, of an
    /// older format, or used up. After they are erased, the client prepares new ones.
    HintsUnusable => "hints-unusable",
    /// Single-use hints ended because a server answered falsely. Until they are erased, the client
    /// makes no query.
    HintsEnded => "hints-ended",
    /// The stored single-use hints are for a version that the servers do not serve.
    HintsOfAnotherVersion => "hints-of-another-version",
    /// The stored single-use hints were used with other servers.
    HintsOfOtherServers => "hints-of-other-servers",
    /// Another process uses a resource that is needed.
    UsedByAnotherProcess => "used-by-another-process",
    /// An eavesdropper on the line would see what must stay secret.
    NotEncrypted => "not-encrypted",
    /// No authority that this machine trusts has signed the server's certificate.
    CertificateNotTrusted => "certificate-not-trusted",
    /// Something in front of a server does not let this client in.
    NotAdmitted => "not-admitted",
    /// A proxy is set that cannot be used, or that does not lead to the server.
    ProxyUnusable => "proxy-unusable",
    /// An option was given that this scheme does not have.
    OptionOfAnotherScheme => "option-of-another-scheme",
    /// A scheme needs a reference string, and none was given, or the given file is not one.
    ReferenceStringNeeded => "reference-string-needed",
    /// Points must be computed: there are none, or they are incomplete or of another table.
    PointsNeeded => "points-needed",
    /// The points to be computed do not fit into memory.
    PointsExceedMemory => "points-exceed-memory",
    /// The points in a file do not fit into memory.
    PointsFileExceedsMemory => "points-file-exceeds-memory",
    /// There is no table file, or the file is not one.
    NoTableFile => "no-table-file",
    /// A table was built without a publisher, and is to be signed for the first time.
    HistoryNotBegun => "history-not-begun",
    /// A table is handed on without its next key, which has to sign that.
    NextKeyNeeded => "next-key-needed",
    /// An update was asked for that changes nothing.
    NothingToChange => "nothing-to-change",
    /// Whether an epoch is in the log is not known.
    EpochInDoubt => "epoch-in-doubt",
    /// An epoch was signed, and the table file could not be written anew.
    NotCompacted => "not-compacted",
    /// A file has the name of the output, and is replaced only by force.
    OutputExists => "output-exists",
    /// A file has the name of the output, and is never replaced.
    OutputKept => "output-kept",
    /// The log of a table's updates is gone.
    LogLost => "log-lost",
    /// There is no file with a publisher's secret key, or the file is not one.
    NoPublisherKey => "no-publisher-key",
    /// The given text is not the name of a publisher.
    NotAPublisher => "not-a-publisher",
    /// The given text is not a table's root.
    NotARoot => "not-a-root",
    /// A key has several rows, or values, but the table must have one for each key.
    KeyTwice => "key-twice",
    /// Something is said of keys, and the table is to have none.
    NoKeyColumn => "no-key-column",
    /// A row has no key, in a table that is to have keys.
    EmptyKey => "empty-key",
    /// A key is not written as the table's keys are: it is no address, say. Its lookup was made.
    MalformedKey => "malformed-key",
    /// The header of a CSV file is one column, and another delimiter than is usual stands in it.
    DelimiterUnclear => "delimiter-unclear",
    /// A quoted cell of a CSV file does not end as one: its quotation marks may be plain text.
    QuotesUnclear => "quotes-unclear",
    /// The first line of a CSV file seems to be a row, and not the names of columns.
    HeaderUnclear => "header-unclear",
    /// A line of a CSV file seems to be a comment.
    CommentUnclear => "comment-unclear",
    /// A value lacks columns that all values of the table have, or has others, or of other types.
    ColumnsDiffer => "columns-differ",
    /// Two ranges of keys overlap, in a table in which a key lies in one at most.
    RangesOverlap => "ranges-overlap",
    /// A row is to change alone, in a table whose ranges lie in one another.
    RangesNested => "ranges-nested",
    /// Neither the name of an input nor the caller says which format it has.
    FormatUnknown => "format-unknown",
    /// A table cannot take what it is to hold: it has no room, or another form. It has to be built
    /// anew.
    DoesNotFit => "does-not-fit",
    /// A key was given several values, in a table that has one for each key.
    OneValueForEachKey => "one-value-for-each-key",
    /// A generation of hints serves fewer queries than are to be measured.
    HintsServeFewer => "hints-serve-fewer",
    /// Clients make one query after the other, so that none come together.
    OneQueryAtATime => "one-query-at-a-time",
    /// A file does not describe a machine.
    NoMachine => "no-machine",
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_kebab_case_and_none_is_that_of_two() {
        let names: BTreeSet<_> = Reason::ALL.iter().map(|reason| reason.name()).collect();
        assert_eq!(names.len(), Reason::ALL.len());
        for reason in Reason::ALL {
            // A variant's identifier is the words of its name, each with a capital letter.
            let words = format!("{reason:?}").chars().fold(String::new(), |mut words, letter| {
                if letter.is_ascii_uppercase() && !words.is_empty() {
                    words.push('-');
                }
                words.push(letter.to_ascii_lowercase());
                words
            });
            assert_eq!(reason.name(), words);
        }
    }
}
