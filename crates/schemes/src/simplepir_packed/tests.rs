//! Packed SimplePIR end to end without a network: the suite of schemes without state, known
//! answers, layouts, versions, views.

mod layouts;
mod versions;
mod views;

use super::*;
use crate::conformance::known::Known;
use crate::conformance::stateless::{self, Stateless, Table, by_default, stateless_suite};
use crate::contract::{Ahead, Answerer, Message, Parameters, Role, Setup, StatelessClient};
use crate::offline::LateHint;
use crate::test_tables::identity;
use privet_core::ring::Form;
use privet_core::{Blame, Result, SecretRng, TableIdentity, TableView};
use privet_kernels::Kernels;
use proptest::prelude::*;
use std::sync::Arc;

struct Tested;

stateless_suite!(Tested);

/// Most tests work in a ring of low degree, in which a block is packed in a moment. It protects
/// nothing.
const DEGREE: usize = 64;

/// The degree of the ring, how clients get masks, and the records of a column.
#[derive(Clone, Copy, Debug)]
struct Layout {
    degree: usize,
    masks: Masks,
    records_per_column: Option<u64>,
}

impl Default for Layout {
    fn default() -> Self {
        Self { degree: DEGREE, ..Self::STANDARD }
    }
}

impl Layout {
    const STANDARD: Self =
        Self { degree: 2048, masks: Masks::Downloaded, records_per_column: None };

    fn on_demand(self) -> Self {
        Self { masks: Masks::OnDemand, ..self }
    }

    fn of_column(self, records: u64) -> Self {
        Self { records_per_column: Some(records), ..self }
    }

    fn form(&self) -> Form {
        if self.degree == 2048 { Form::STANDARD } else { Form::insecure(self.degree) }
    }
}

impl Stateless for Tested {
    type Scheme = SimplePirPacked;
    type Server = SimplePirPackedServer;
    type Client = SimplePirPackedClient;
    type Form = Layout;

    const COPIES: usize = 1;
    const THREADS: &'static [usize] = &[1, 2, 3];
    /// Only the standard form may be announced.
    const FORM_IS_ANNOUNCED: bool = false;

    fn tables() -> BoxedStrategy<Table<Self>> {
        let layouts = (1u64..=300).prop_flat_map(|records| {
            let some = (1..=records).prop_map(|records| Layout::default().of_column(records));
            (Just(records), 1u64..=9, some)
        });
        let tables = prop_oneof![(1u64..=3_000, 1u64..=80, Just(Layout::default())), layouts];
        let both = (tables, any::<bool>()).prop_map(|((records, len, layout), on_demand)| {
            (records, len, if on_demand { layout.on_demand() } else { layout })
        });
        both.boxed()
    }

    fn small() -> Vec<Table<Self>> {
        let mut tables =
            by_default(&[(1, 1), (1, 300), (2, 1), (3, 7), (64, 1), (65, 3), (257, 2)]);
        // Columns on both sides of a polynomial's edge, rows on both sides of a block's.
        for (records, per_column) in [(63, 1), (65, 1), (128, 127), (193, 65), (130, 129)] {
            tables.push((records, 1, Layout::default().of_column(per_column)));
        }
        // The same with masks on demand; and units of a block and of several, full and not full.
        let on_demand = tables.iter().map(|(records, len, layout)| (*records, *len, *layout));
        let mut on_demand: Vec<_> = on_demand.collect();
        for (records, len, per_column) in
            [(9, 9, 9), (50, 9, 23), (20, 33, 7), (11, 64, 4), (11, 65, 4), (7, 130, 3)]
        {
            on_demand.push((records, len, Layout::default().of_column(per_column)));
        }
        let on_demand = on_demand.into_iter();
        tables.extend(on_demand.map(|(records, len, layout)| (records, len, layout.on_demand())));
        tables
    }

    fn kinds() -> Vec<Table<Self>> {
        vec![
            (1_001, 13, Layout::default()),
            (700, 5, Layout::STANDARD),
            (1_001, 13, Layout::default().on_demand()),
            (300, 100, Layout::default().on_demand()),
        ]
    }

    fn parameters(identity: &TableIdentity, layout: &Layout) -> Result<SimplePirPackedParameters> {
        let Layout { masks, records_per_column, .. } = *layout;
        SimplePirPackedParameters::with_form(identity, layout.form(), masks, records_per_column)
    }

    fn setup(
        parameters: &SimplePirPackedParameters,
        _layout: &Layout,
        table: TableView<'_>,
        kernels: Kernels,
        threads: usize,
    ) -> Result<(SimplePirPackedServer, Vec<u8>)> {
        let setup = SimplePirPackedSetup::new(parameters.clone(), table, kernels, threads)?;
        let precomputed = setup.precompute(&|_| ())?;
        let server = setup.finish(&precomputed.kept.as_bytes())?;
        Ok((server, precomputed.hint.as_bytes().into_owned()))
    }

    fn client(
        parameters: &SimplePirPackedParameters,
        hint: &[u8],
        kernels: Kernels,
    ) -> Result<SimplePirPackedClient> {
        SimplePirPackedClient::new(parameters.clone(), Arc::new(hint.to_vec()), kernels)
    }

    fn spare_bits(parameters: &SimplePirPackedParameters) -> [Vec<usize>; 2] {
        let form = parameters.form();
        let of_keys = form.degree() as u64 * form.key_bits().map(u64::from).iter().sum::<u64>();
        let query = parameters.query_words() * u64::from(parameters.query_bits()) + of_keys;
        let answer = parameters.answer_symbols() * u64::from(form.answer_bits());
        [query, answer].map(|bits| (bits as usize..(bits as usize).next_multiple_of(8)).collect())
    }
}

type World = stateless::World<Tested>;

fn standard(records: u64, record_len: u64, records_per_column: u64) -> World {
    World::of(&(records, record_len, Layout::STANDARD.of_column(records_per_column)))
}

/// `vectors/simplepir_packed.json`: any other implementation must get the same masks, query, answer
/// and record.
#[test]
fn known_answers() {
    let file = Known::file(include_str!("../../../../vectors/simplepir_packed.json"));
    for (masks, name) in [(Masks::Downloaded, "lookups"), (Masks::OnDemand, "lookups_on_demand")] {
        for case in file.list(name) {
            let layout =
                Layout { masks, ..Layout::STANDARD }.of_column(case.number("records_per_column"));
            let world = World::of(&(case.number("records"), case.number("record_len"), layout));
            assert_eq!(u64::from(world.parameters().query_bits()), case.number("query_bits"));
            case.assert("hint_blake3", &world.hint);
            world.check_known(&case);
        }
    }
}

/// At the degree that protects: two blocks and the edge between them, long records, batches.
#[test]
fn records_come_back_from_blocks_of_2048_rows() {
    // 2100 rows: the record 20 of a column lies in both blocks.
    let world = standard(90, 100, 21);
    world.check(&[0, 19, 20, 21, 40, 41, 88, 89, 20]);
    // One record of several blocks alone in its column.
    standard(3, 5_000, 1).check(&[0, 1, 2]);
}

#[test]
fn a_client_asks_before_the_masks_have_come() {
    for layout in [Layout::default(), Layout::default().on_demand()] {
        check_late_masks(&World::of(&(500, 3, layout)));
    }
}

fn check_late_masks(world: &World) {
    let late = Arc::new(LateHint::new(world.hint.len() as u64));
    let parameters = world.parameters().clone();
    let client =
        SimplePirPackedClient::new(parameters, Arc::<LateHint>::clone(&late), Kernels::detect())
            .unwrap();
    let mut rng = SecretRng::from_os().unwrap();
    let mut ask = |of: u64| {
        let (queries, pending) = client.query(&world.index(of), &mut rng).unwrap();
        (world.servers[0].answer(Role(0), &queries), pending)
    };
    let ((early, lost), (answers, pending)) = (ask(7), ask(499));
    let refusal = client.recover(lost, &early).err().unwrap();
    assert_eq!(refusal.blame(), Blame::ApiMisuse);
    late.set(world.hint.clone()).unwrap();
    assert_eq!(*client.recover(pending, &answers).unwrap(), world.record(499));
}

/// The masks of another version give other bytes. A session binds the masks to the version by their
/// digest.
#[test]
fn the_masks_of_another_table_read_nothing() {
    for layout in [Layout::default(), Layout::default().on_demand()] {
        let world = World::of(&(800, 9, layout));
        let other = vec![0; world.table.len()];
        let other = World::with_table(world.identity, &layout, other);
        let client = Tested::client(world.parameters(), &other.hint, Kernels::detect()).unwrap();
        let mut rng = SecretRng::from_os().unwrap();
        let (queries, pending) = client.query(&world.index(5), &mut rng).unwrap();
        let answers = world.servers[0].answer(Role(0), &queries);
        assert_ne!(*client.recover(pending, &answers).unwrap(), world.record(5));
    }
}

/// A record is read with the masks that came with it, and with no others.
#[test]
fn both_parts_of_an_answer_are_needed() {
    let world = World::of(&(800, 9, Layout::default().on_demand()));
    let rows = world.parameters().rows() as usize;
    let mut rng = SecretRng::from_os().unwrap();
    let mut asked = |of: u64| {
        let (queries, pending) = world.client.query(&world.index(of), &mut rng).unwrap();
        (world.servers[0].answer(Role(0), &queries).remove(0), pending)
    };
    for part in [0..rows, rows..world.parameters().answer_symbols() as usize] {
        let ((mut answer, pending), (other, _)) = (asked(5), asked(5));
        answer.symbols[part.clone()].copy_from_slice(&other.symbols[part]);
        assert_ne!(*world.client.recover(pending, &[answer]).unwrap(), world.record(5));
    }
    let (answer, pending) = asked(5);
    assert_eq!(*world.client.recover(pending, &[answer]).unwrap(), world.record(5));
}

#[test]
fn a_blank_of_another_table_is_refused() {
    let (one, other) = (World::new(800, 9), World::new(801, 90));
    let mut rng = SecretRng::from_os().unwrap();
    let blank = one.client.blank_maker()(&mut rng);
    let refusal = other.client.fill(blank, &other.index(3)).err().unwrap();
    assert_eq!(refusal.blame(), Blame::ApiMisuse);
    // Nor is one without words for the masks.
    let with_masks = World::of(&(800, 9, Layout::default().on_demand()));
    let per_column = with_masks.parameters().records_per_column();
    let without = World::of(&(800, 9, Layout::default().of_column(per_column)));
    for (from, to) in [(&without, &with_masks), (&with_masks, &without)] {
        let blank = from.client.blank_maker()(&mut rng);
        let refusal = to.client.fill(blank, &to.index(3)).err().unwrap();
        assert_eq!(refusal.blame(), Blame::ApiMisuse);
    }
}

#[test]
fn what_was_kept_has_one_length() {
    for layout in [Layout::default(), Layout::default().on_demand()] {
        check_what_was_kept(&World::of(&(50, 1, layout)));
    }
}

fn check_what_was_kept(world: &World) {
    let view = TableView::new(world.identity, &world.table).unwrap();
    let setup = || {
        let parameters = world.parameters().clone();
        SimplePirPackedSetup::new(parameters, view, Kernels::detect(), 1).unwrap()
    };
    let kept = setup().precompute(&|_| ()).unwrap().kept.as_bytes().into_owned();
    assert_eq!(kept.len() as u64, setup().kept_len());
    setup().finish(&kept).unwrap();
    for wrong in [&kept[1..], &[&kept[..], &[0]].concat(), &[]] {
        assert_eq!(setup().finish(wrong).err().unwrap().blame(), Blame::Corrupted);
    }
}

/// Every byte that is held has a part in answers, or in what is announced: damage shows.
#[test]
fn all_that_answers_come_from_is_held() {
    for layout in [Layout::default(), Layout::default().on_demand()] {
        let world = World::of(&(300, 2, layout));
        let (parameters, server) = (world.parameters(), &world.servers[0]);
        let held: usize = server.held().iter().map(|bytes| bytes.len()).sum();
        assert_eq!(held as u64, server.resident_bytes());
        let digits = 4 * DEGREE as u64 * parameters.blocks();
        assert!(held as u64 >= parameters.pass_bytes() + digits + parameters.hint_bytes());
    }
}
