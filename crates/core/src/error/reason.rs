//! Which error it is, for whoever acts on it.

use std::fmt;

macro_rules! reasons {
    ($($(#[$doc:meta])* $reason:ident => $name:literal,)*) => {
        /// Which error it is, where somebody may act on that: a program branches on it, and a
        /// command says by which of its options the way out is taken. Most errors have none.
        ///
        /// Reasons do not travel: what a server refused has none at the client.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Reason {
            $($(#[$doc])* $reason,)*
        }

        impl Reason {
            /// All there are.
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
    /// The only table of a server has another name than the one that was used there last.
    TableRenamed => "table-renamed",
    /// What is served is not what was pinned.
    TableReplaced => "table-replaced",
    /// The table is served by another scheme than was pinned, perhaps because the caller asked for
    /// that.
    SchemeReplaced => "scheme-replaced",
    /// What is served contradicts what was pinned of the same table at another server.
    ContradictedElsewhere => "contradicted-elsewhere",
    /// Several servers have a table in different versions, perhaps because it is being updated.
    VersionsDiffer => "versions-differ",
    /// Several servers do not serve the same.
    ServersDisagree => "servers-disagree",
    /// No scheme that the caller allows is offered by all servers.
    SchemeNotOffered => "scheme-not-offered",
    /// The scheme takes another number of servers than were named.
    NumberOfServers => "number-of-servers",
    /// Only schemes that verify answers were allowed, and none is offered.
    NoSchemeVerifies => "no-scheme-verifies",
    /// The table has updates, and who publishes it was not known before.
    PublisherUnknown => "publisher-unknown",
    /// Somebody else publishes the table than was said or pinned.
    PublisherDiffers => "publisher-differs",
    /// A publisher was named, and the table has none.
    NotPublished => "not-published",
    /// A root was given, and the table is not authenticated.
    NotAuthenticated => "not-authenticated",
    /// The table has another root than the one that was given.
    RootDiffers => "root-differs",
    /// More would have to be received, or kept, than is allowed.
    TooMuchToDownload => "too-much-to-download",
    /// The updates since the version that is kept are more than may be received.
    TooManyUpdates => "too-many-updates",
    /// Streams were to be compared, and there are no two.
    NothingToCompare => "nothing-to-compare",
    /// What two servers streamed, a half each, is not the table that both announced.
    WrongHalf => "wrong-half",
    /// A key was looked up in a table that has none.
    NoKeys => "no-keys",
    /// A number was looked up in a table of keys.
    LookedUpByKey => "looked-up-by-key",
    /// A server did not answer, or send, for as long as that is waited for.
    NoAnswerInTime => "no-answer-in-time",
    /// A server sends more slowly than is put up with.
    TooSlow => "too-slow",
    /// Not everything was done within the time that was allowed.
    TimeIsUp => "time-is-up",
    /// As many tables of one server are remembered as can be.
    TooManyTablesRemembered => "too-many-tables-remembered",
    /// The single-use hints that are kept are of no use any more: damaged, perhaps copied, of an
    /// older format or used up. Erased, they are prepared anew.
    HintsUnusable => "hints-unusable",
    /// Single-use hints ended when a server did not answer truly. Until they are erased, nothing is
    /// asked.
    HintsEnded => "hints-ended",
    /// The single-use hints that are kept are for a version that is not one of what is served.
    HintsOfAnotherVersion => "hints-of-another-version",
    /// The single-use hints that are kept were used with other servers.
    HintsOfOtherServers => "hints-of-other-servers",
    /// Another process uses what is needed.
    UsedByAnotherProcess => "used-by-another-process",
    /// Whoever listens on the line would see what must not be seen.
    NotEncrypted => "not-encrypted",
    /// A server's certificate is not vouched for by anybody whom this machine trusts.
    CertificateNotTrusted => "certificate-not-trusted",
    /// Something was chosen about a scheme that this scheme has no such choice of.
    OptionOfAnotherScheme => "option-of-another-scheme",
    /// A scheme needs a reference string, and none is given, or what is given is none.
    ReferenceStringNeeded => "reference-string-needed",
    /// Points have to be computed: there are none, or none that are whole and of this table.
    PointsNeeded => "points-needed",
    /// The points to be computed are more than the memory holds.
    PointsExceedMemory => "points-exceed-memory",
    /// The points in a file are more than the memory holds.
    PointsFileExceedsMemory => "points-file-exceeds-memory",
    /// There is no table file, or the file is none.
    NoTableFile => "no-table-file",
    /// There is no file with a publisher's secret key, or the file is none.
    NoPublisherKey => "no-publisher-key",
    /// What was given is not the name of a publisher.
    NotAPublisher => "not-a-publisher",
    /// What was given is not a table's root.
    NotARoot => "not-a-root",
    /// A key has several rows, or values, and the table was to have one for each.
    KeyTwice => "key-twice",
    /// A row has no key, in a table that is to have keys.
    EmptyKey => "empty-key",
    /// The header of a CSV file is one column, and another delimiter than is usual stands in it.
    DelimiterUnclear => "delimiter-unclear",
    /// A key was given several values, in a table that has one for each key.
    OneValueForEachKey => "one-value-for-each-key",
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
            // A variant's name is its name's words, each with a capital letter.
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
