//! One scheme: lookups, and for each the queries that reached the servers.

use super::phone_book::PhoneBook;
use super::servers::Servers;
use crate::display::{self, Page};
use privet_client::{Client, Target};
use privet_core::{Error, Result};
use privet_schemes::contract::Role;
use privet_schemes::offline::OfflinePhase;
use std::time::{Duration, Instant};

/// Looks people up and shows what the servers saw.
pub(super) fn show(number: u32, servers: &Servers, book: &PhoneBook) -> Result<()> {
    let client = Client::connect_blocking(servers.client_options(), |_| {})?;
    let mut page = Page::default();
    page.line(format!(
        "\n{number}. {}: {}. Ready after {}.",
        client.table().scheme.plan.scheme,
        match servers.count() {
            1 => "one server".to_owned(),
            2 => "two servers that must not collude".to_owned(),
            count => format!("{count} servers of which no two must collude"),
        },
        display::duration(servers.elapsed())
    ));
    let received = client.stats().prepare.down;
    page.paragraph(format!(
        "The client received {} once, in {}: {}.",
        display::bytes(received),
        display::duration(client.stats().ready_after),
        what_is_received(&client)
    ));
    let lookups = look_up(&client, book)?;
    let seen = servers.take_seen();
    if client.table().scheme.plan.longest_query() == 0 && seen.iter().all(Vec::is_empty) {
        for lookup in &lookups {
            page.line(lookup.row());
        }
        page.line("   The server saw nothing of them: the client has the table and asks nobody.");
        return page.print();
    }
    for queries in &seen {
        let are_alike = queries.iter().all(|query| query.len() == queries[0].len());
        if queries.len() != lookups.len() || !are_alike {
            return Err(Error::integrity(format!(
                "{} lookups sent {} queries, or not all of the same length: this build of Privet must not be used",
                lookups.len(),
                queries.len()
            )));
        }
    }
    page.line(heading(servers.count()));
    let heads = Heads::of(&seen);
    for (row, lookup) in lookups.iter().enumerate() {
        let seen: String = seen.iter().map(|queries| heads.of_query(&queries[row])).collect();
        page.line(format!("{}{seen}", lookup.row()).trim_end());
    }
    what_it_shows(&client, &seen, &mut page);
    page.print()
}

fn what_is_received(client: &Client) -> &'static str {
    let plan = &client.table().scheme.plan;
    match plan.offline {
        OfflinePhase::Download { .. } => "a hint, the same for every client",
        OfflinePhase::StreamTable { .. } => "the table, of which it keeps secret hints only",
        OfflinePhase::StreamArranged { .. } if plan.scheme.about().commits => {
            "the table and commitments to it, of which it keeps secret hints and what verifies answers"
        }
        OfflinePhase::StreamArranged { .. } => {
            "the table in a public order, of which it keeps secret hints only"
        }
        OfflinePhase::Ask { .. } => {
            "hints that the first server computed, which are secret from the second"
        }
        OfflinePhase::KeepTable { .. } => "the table, which it keeps",
        _ => "how to read records, and nothing else",
    }
}

struct TimedLookup {
    key: String,
    value: Option<String>,
    elapsed: Duration,
}

impl TimedLookup {
    fn row(&self) -> String {
        let value = self.value.as_deref().unwrap_or("not found");
        format!("   {:<22}{:<37}{:>9}", self.key, value, display::duration(self.elapsed))
    }
}

fn heading(servers: usize) -> String {
    let seen = match servers {
        1 => "  the server saw".to_owned(),
        _ => (1..=servers).map(|server| format!("  {:<12}", format!("server {server}"))).collect(),
    };
    let (key, found, time) = ("looked up", "found", "time");
    format!("   {key:<22}{found:<37}{time:>9}{seen}").trim_end().to_owned()
}

/// Looks up one name twice, then another name, then one that is not in the table.
fn look_up(client: &Client, book: &PhoneBook) -> Result<Vec<TimedLookup>> {
    let (middle, last) = (book.entries() / 2, book.entries() - 1);
    let wanted = [
        (book.name(middle), Some(middle)),
        (book.name(middle), Some(middle)),
        (book.name(last), Some(last)),
        ("Eve Dropper 7".to_owned(), None),
    ];
    let look_up = |(key, entry): (String, Option<u64>)| {
        let start = Instant::now();
        let found = client.get_target_blocking(Target::key(&key))?;
        let elapsed = start.elapsed();
        let value = entry.map(|entry| book.value(entry));
        if found.as_deref() != value.as_ref().map(String::as_bytes) {
            return Err(Error::integrity(format!(
                "the lookup of {key:?} came back wrong: this build of Privet must not be used"
            )));
        }
        Ok(TimedLookup { key, value, elapsed })
    };
    wanted.into_iter().map(look_up).collect()
}

/// Which bytes of the queries are shown: a few, from the first position at which the queries
/// differ. The bytes before it are public, or the same for all servers.
struct Heads {
    from: usize,
    bytes: usize,
}

impl Heads {
    fn of(seen: &[Vec<Vec<u8>>]) -> Self {
        let shortest = seen.iter().flatten().map(Vec::len).min().unwrap_or(0);
        let are_different = |queries: &mut dyn Iterator<Item = &Vec<u8>>, position: usize| {
            let mut bytes: Vec<u8> = queries.map(|query| query[position]).collect();
            bytes.sort_unstable();
            bytes.dedup();
            bytes.len() > 1
        };
        // At that position, the servers receive different bytes in every lookup, and the queries
        // are not all the same.
        let differs = |&position: &usize| {
            let lookups = seen.first().map_or(0, Vec::len);
            let mut of_lookups = 0..lookups;
            let between_servers = seen.len() == 1
                || of_lookups.all(|lookup| {
                    are_different(&mut seen.iter().map(|queries| &queries[lookup]), position)
                });
            between_servers && are_different(&mut seen.iter().flatten(), position)
        };
        let bytes = if seen.len() == 1 { 6 } else { 4 };
        let from = (0..shortest).find(differs).unwrap_or(0).min(shortest.saturating_sub(bytes));
        Self { from, bytes }
    }

    fn of_query(&self, query: &[u8]) -> String {
        let shown = query.iter().skip(self.from).take(self.bytes);
        let shown: String = shown.map(|byte| format!("{byte:02x}")).collect();
        format!("  {shown}…   ")
    }
}

/// Prints what the queries have in common and what they reveal.
fn what_it_shows(client: &Client, seen: &[Vec<Vec<u8>>], page: &mut Page) {
    let plan = &client.table().scheme.plan;
    let lengths: Vec<String> = seen.iter().map(|queries| queries[0].len().to_string()).collect();
    page.paragraph(match &lengths[..] {
        [length] => format!("Each query has {length} bytes, for the miss as well."),
        _ => format!("Each lookup sends {} bytes, the miss as well.", lengths.join(" + ")),
    });
    for (role, queries) in (0..).map(Role).zip(seen) {
        let (repeat, other) =
            (agreeing(&queries[0], &queries[1]), agreeing(&queries[0], &queries[2]));
        let coins = if plan.queries_look_random(role) { "; coins in 50 %" } else { "" };
        let queries = match seen.len() {
            1 => "Queries".to_owned(),
            _ => format!("At server {}, queries", role.0 + 1),
        };
        page.paragraph(format!(
            "{queries} for one name agree in {repeat:.1} % of bits, for two names in {other:.1} %{coins}."
        ));
        if let Some(meaning) = plan.queries_say(&client.table().identity, role) {
            page.paragraph(meaning);
        }
    }
}

/// Percent of places at which two queries hold the same bit.
fn agreeing(one: &[u8], other: &[u8]) -> f64 {
    let different: u32 = one.iter().zip(other).map(|(a, b)| (a ^ b).count_ones()).sum();
    100.0 - 100.0 * f64::from(different) / (8 * one.len().max(1)) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agreement_is_counted_in_bits() {
        assert_eq!(agreeing(&[0b1010, 0xff], &[0b1010, 0xff]), 100.0);
        assert_eq!(agreeing(&[0b1010, 0xff], &[0b0101, 0xf0]), 50.0);
        assert_eq!(agreeing(&[0, 0], &[255, 255]), 0.0);
    }

    #[test]
    fn what_all_queries_share_is_not_shown() {
        let seen = vec![
            vec![vec![1, 2, 3, 4, 5, 6, 7, 8], vec![1, 3, 3, 5, 5, 6, 7, 8]],
            vec![vec![1, 2, 9, 4, 5, 6, 7, 8], vec![1, 3, 8, 5, 5, 6, 7, 8]],
        ];
        let heads = Heads::of(&seen);
        assert_eq!(heads.of_query(&seen[0][0]).trim_end(), "  03040506…");
        assert_eq!(heads.of_query(&seen[1][0]).trim_end(), "  09040506…");
    }
}
