//! The rule that chooses a scheme.
//!
//! It is a tree of questions, and there is no other rule: `docs/schemes.md` prints it, `privet
//! plan` recommends by it, and a server without a named scheme takes what it says for a
//! [`Situation`] that nobody described. What each scheme costs is another matter, which `privet
//! plan` ranks.
//!
//! Bytes decide, because they follow from the table alone and are the same on every machine. A
//! download pays if it has no more bytes than a client would otherwise move within [`DAYS`] days.
//! So do single-use hints, for which the table is streamed.

use super::{SchemePlan, Tuning, plan};
use crate::SchemeId;
use privet_core::TableIdentity;

/// The days within which what a client fetches first has to pay.
pub const DAYS: u64 = 10;

/// Lookups of a client in a day, where nobody says how many there are.
pub const LOOKUPS_PER_DAY: u64 = 10;

/// Who serves a table and how it is used, as far as the [choice](choose_for) of a scheme depends on
/// that.
#[derive(Clone, Copy)]
pub struct Situation<'a> {
    /// Operators who do not collude, each with a server.
    pub operators: u32,
    /// Whether a wrong answer must be noticed, and the table cannot vouch for its records.
    pub must_verify: bool,
    /// Whether clients can keep single-use hints: secrets that must never be copied or rolled back.
    pub keeps_hints: bool,
    /// Records that a client looks up within [`DAYS`] days.
    pub lookups: u64,
    /// Bytes by which a client that has the table follows its updates, within [`DAYS`] days.
    pub update_bytes: u64,
    /// The most bytes that a client can keep.
    pub client_storage: u64,
    /// Whether a scheme is available at all.
    pub allows: &'a dyn Fn(SchemeId) -> bool,
}

/// What a server assumes that knows the table alone.
impl Default for Situation<'_> {
    fn default() -> Self {
        Self {
            operators: 1,
            must_verify: false,
            keeps_hints: false,
            lookups: DAYS * LOOKUPS_PER_DAY,
            update_bytes: 0,
            client_storage: u64::MAX,
            allows: &|_| true,
        }
    }
}

/// A question of the tree, with its answers.
struct Question {
    words: &'static str,
    holds: fn(&TableIdentity, &Situation<'_>) -> bool,
    yes: Node,
    no: Node,
}

/// A place in the tree.
enum Node {
    Ask(&'static Question),
    /// The first of these that is available.
    Take(&'static [SchemeId]),
    /// No scheme does it, but another table does.
    Authenticate,
}

/// Where the tree begins.
const ROOT: Node = Node::Ask(&Question {
    words: "Must a wrong answer be noticed, and can the table not vouch for its records?",
    holds: |_, situation| situation.must_verify,
    yes: Node::Ask(&Question {
        words: "Are there two operators who do not collude?",
        holds: |_, situation| situation.operators >= 2,
        yes: Node::Take(&[SchemeId::ApirMatrix, SchemeId::ApirDpf]),
        no: Node::Authenticate,
    }),
    no: Node::Ask(&Question {
        words: "Can clients keep the table, and does it have no more bytes than ten days of lookups?",
        holds: is_small,
        yes: Node::Take(&[SchemeId::Download]),
        no: Node::Ask(&Question {
            words: "Are there two operators who do not collude?",
            holds: |_, situation| situation.operators >= 2,
            yes: Node::Take(&[SchemeId::Dpf]),
            no: Node::Ask(&Question {
                words: "Can clients keep single-use hints, and do these pay within ten days?",
                holds: hints_pay,
                yes: Node::Take(&[SchemeId::DummySubsets]),
                no: Node::Take(&[SchemeId::SimplePirPacked, SchemeId::SimplePir]),
            }),
        }),
    }),
});

/// What the tree says.
pub struct Choice {
    /// The scheme; `None` if none that the tree names is available.
    pub scheme: Option<SchemeId>,
    /// Whether the table should rather be built so that it vouches for its records. Then every
    /// scheme notices a wrong answer, and there is another choice.
    pub authenticate: bool,
    /// The questions on the way, with their answers.
    pub answers: Vec<(&'static str, bool)>,
}

/// The scheme that suits a table and its use, by the tree of questions.
pub fn choose_for(identity: &TableIdentity, situation: &Situation<'_>) -> Choice {
    let mut choice = Choice { scheme: None, authenticate: false, answers: Vec::new() };
    let mut node = &ROOT;
    loop {
        match node {
            Node::Ask(question) => {
                let holds = (question.holds)(identity, situation);
                choice.answers.push((question.words, holds));
                node = if holds { &question.yes } else { &question.no };
            }
            Node::Take(schemes) => {
                let mut schemes = schemes.iter().copied();
                choice.scheme = schemes.find(|scheme| is_to_be_had(*scheme, identity, situation));
                return choice;
            }
            Node::Authenticate => {
                choice.authenticate = true;
                return choice;
            }
        }
    }
}

/// The scheme that suits a table of whose use nothing is known: the tree's for one operator,
/// clients without single-use hints, and [`LOOKUPS_PER_DAY`] lookups of each.
pub fn choose(identity: &TableIdentity) -> SchemeId {
    // The table may be too large for all. The user gets an error, not a download of all of it.
    choose_for(identity, &Situation::default()).scheme.unwrap_or(SchemeId::SimplePir)
}

/// The tree, as text of the width of a page.
pub fn tree() -> String {
    let mut text = String::new();
    draw(&ROOT, "", "", &mut text);
    text
}

/// All schemes that the tree takes first at one of its ends.
pub fn chosen() -> Vec<SchemeId> {
    fn below(node: &Node, schemes: &mut Vec<SchemeId>) {
        match node {
            Node::Ask(question) => {
                below(&question.yes, schemes);
                below(&question.no, schemes);
            }
            Node::Take(first) => schemes.extend(first.first()),
            Node::Authenticate => {}
        }
    }
    let mut schemes = Vec::new();
    below(&ROOT, &mut schemes);
    schemes
}

fn draw(node: &Node, branch: &str, indent: &str, text: &mut String) {
    match node {
        Node::Ask(question) => {
            text.push_str(&format!("{branch}{}\n", question.words));
            let (yes, no) = (format!("{indent}├─ yes ── "), format!("{indent}└─ no ─── "));
            draw(&question.yes, &yes, &format!("{indent}│         "), text);
            draw(&question.no, &no, &format!("{indent}          "), text);
        }
        Node::Take([scheme, others @ ..]) => {
            text.push_str(&format!("{branch}{scheme}"));
            others
                .iter()
                .for_each(|other| text.push_str(&format!(", or {other} where that is refused")));
            text.push('\n');
        }
        Node::Take([]) => {}
        Node::Authenticate => {
            text.push_str(&format!(
                "{branch}build a table that vouches for its records, and begin again\n"
            ));
        }
    }
}

fn is_to_be_had(scheme: SchemeId, identity: &TableIdentity, situation: &Situation<'_>) -> bool {
    (situation.allows)(scheme) && planned(scheme, identity).is_some()
}

fn planned(scheme: SchemeId, identity: &TableIdentity) -> Option<SchemePlan> {
    plan(scheme, identity, &Tuning::default()).ok()
}

/// What a client moves within [`DAYS`] days by a scheme, what it fetches first included.
fn moved(scheme: SchemeId, identity: &TableIdentity, situation: &Situation<'_>) -> Option<u64> {
    let plan = planned(scheme, identity)?;
    let lookup = plan.query_lens.iter().sum::<usize>() + plan.answer_len;
    let lookups = situation.lookups.saturating_mul(lookup as u64);
    let supply = plan.supply(identity).unwrap_or(u64::MAX).max(1);
    let generations = situation.lookups.div_ceil(supply).max(1);
    Some(plan.offline.len().saturating_mul(generations).saturating_add(lookups))
}

/// What a client moves that asks one server and keeps no secrets. `None` if the table is too large
/// for that.
fn moved_by_asking(identity: &TableIdentity, situation: &Situation<'_>) -> Option<u64> {
    let asking = [SchemeId::SimplePirPacked, SchemeId::SimplePir];
    asking.into_iter().filter_map(|scheme| moved(scheme, identity, situation)).min()
}

fn is_small(identity: &TableIdentity, situation: &Situation<'_>) -> bool {
    let bytes = identity.shape.bytes();
    let fetched = bytes.saturating_add(situation.update_bytes);
    bytes <= situation.client_storage
        && (situation.allows)(SchemeId::Download)
        && moved_by_asking(identity, situation).is_some_and(|asking| fetched <= asking)
}

fn hints_pay(identity: &TableIdentity, situation: &Situation<'_>) -> bool {
    situation.keeps_hints
        && is_to_be_had(SchemeId::DummySubsets, identity, situation)
        && moved(SchemeId::DummySubsets, identity, situation)
            .map(|bytes| bytes.saturating_add(situation.update_bytes))
            .zip(moved_by_asking(identity, situation))
            .is_some_and(|(hints, asking)| hints <= asking)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tables::identity;

    fn chosen_for(records: u64, record_len: u64, situation: &Situation<'_>) -> Option<SchemeId> {
        choose_for(&identity(records, record_len), situation).scheme
    }

    #[test]
    fn a_server_that_knows_nothing_takes_what_it_always_took() {
        let chosen = |records: u64, record_len: u64| choose(&identity(records, record_len));
        // A hundred lookups in a table of 2 MiB would take 2.5 MiB, and in one of 4 MiB 2.9 MiB.
        assert_eq!(chosen(1, 1), SchemeId::Download);
        assert_eq!(chosen(1 << 16, 32), SchemeId::Download);
        assert_eq!(chosen(1 << 21, 1), SchemeId::Download);
        assert_eq!(chosen(1 << 17, 32), SchemeId::SimplePirPacked);
        assert_eq!(chosen(1 << 22, 1), SchemeId::SimplePirPacked);
        assert_eq!(chosen(1 << 30, 1), SchemeId::SimplePirPacked);
        // Each answer would be longer than a record, and hints longer than the table.
        assert_eq!(chosen(3, 1 << 24), SchemeId::Download);
        // A table that SimplePIR refuses is not offered for download instead.
        assert_eq!(chosen(1 << 40, 256), SchemeId::SimplePir);
    }

    #[test]
    fn each_question_has_its_say() {
        let alone = Situation::default();
        let (records, record_len) = (154_321, 3_744);
        assert_eq!(chosen_for(records, record_len, &alone), Some(SchemeId::SimplePirPacked));
        // Ten thousand clients with 50 lookups a day: 500 in ten days do not pay for the table.
        let busier = Situation { lookups: 500, ..alone };
        assert_eq!(chosen_for(records, record_len, &busier), Some(SchemeId::SimplePirPacked));
        let two = Situation { operators: 2, ..busier };
        assert_eq!(chosen_for(records, record_len, &two), Some(SchemeId::Dpf));
        let lying = Situation { must_verify: true, ..two };
        assert_eq!(chosen_for(records, record_len, &lying), Some(SchemeId::ApirMatrix));
        let one_liar =
            choose_for(&identity(records, record_len), &Situation { must_verify: true, ..alone });
        assert!(one_liar.scheme.is_none() && one_liar.authenticate);
        let heavy = Situation { lookups: 20_000, ..alone };
        assert_eq!(chosen_for(records, record_len, &heavy), Some(SchemeId::Download));
        let cramped = Situation { client_storage: 100 << 20, ..heavy };
        assert_eq!(chosen_for(records, record_len, &cramped), Some(SchemeId::SimplePirPacked));
        let hints = Situation { keeps_hints: true, ..cramped };
        assert_eq!(chosen_for(records, record_len, &hints), Some(SchemeId::DummySubsets));
        let rarely = Situation { lookups: 100, ..hints };
        assert_eq!(chosen_for(records, record_len, &rarely), Some(SchemeId::SimplePirPacked));
        let changing = Situation { update_bytes: 1 << 40, ..heavy };
        assert_eq!(chosen_for(records, record_len, &changing), Some(SchemeId::SimplePirPacked));
        let no_rings = |scheme| scheme != SchemeId::SimplePirPacked;
        let without = Situation { allows: &no_rings, ..alone };
        assert_eq!(chosen_for(records, record_len, &without), Some(SchemeId::SimplePir));
    }

    #[test]
    fn the_tree_is_drawn_on_a_page() {
        let tree = tree();
        assert!(tree.lines().all(|line| line.chars().count() <= 100), "\n{tree}");
        for scheme in chosen() {
            assert!(tree.contains(scheme.name()), "{scheme}\n{tree}");
        }
        assert_eq!(chosen().len(), 5);
    }
}
