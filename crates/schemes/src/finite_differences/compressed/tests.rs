//! Compressed answers against plain ones, sizes, malformed messages, and what a server sees.

mod views;

use super::*;
use crate::contract::{Answerer as _, Message, Role, StatelessClient as _};
use crate::finite_differences::costs::Setting;
use crate::finite_differences::{
    FiniteDifferencesClient, FiniteDifferencesParameters, FiniteDifferencesServer,
    FiniteDifferencesSetup,
};
use crate::test_tables::{identity, public_bytes};
use privet_core::ring::Form;
use privet_core::{Blame, RecordIndex, SecretRng, TableView};
use privet_kernels::Kernels;
use proptest::prelude::*;

/// Most tests work in a ring of low degree, which protects nothing.
const DEGREE: usize = 64;

struct World {
    parameters: CompressedParameters,
    table: Vec<u8>,
    client: CompressedClient,
    server: CompressedServer,
}

fn setting(variables: u32, degree: u32) -> Setting {
    Setting { servers: 2, field: 2, variables, degree }
}

impl World {
    fn new(records: u64, record_len: u64, setting: Setting, cut: Option<u32>, form: Form) -> Self {
        Self::with_bits(records, record_len, false, setting, cut, form)
    }

    fn with_bits(
        records: u64,
        record_len: u64,
        one_bit: bool,
        setting: Setting,
        cut: Option<u32>,
        form: Form,
    ) -> Self {
        let identity = identity(records, record_len);
        let mut table = public_bytes("compressed", (records * record_len) as usize);
        if one_bit {
            table.iter_mut().for_each(|byte| *byte &= 1);
        }
        let plain = FiniteDifferencesParameters::with(identity.shape, one_bit, setting).unwrap();
        let parameters =
            CompressedParameters::with_form(&identity, plain.clone(), cut, form).unwrap();
        let kernels = Kernels::detect();
        let view = TableView::new(identity, &table).unwrap();
        let points = FiniteDifferencesSetup::new(plain, view, kernels, 1).unwrap();
        let points = points.finish(&|_| {}).unwrap();
        let server = CompressedServer::new(parameters.clone(), points, kernels).unwrap();
        let client = CompressedClient::new(parameters.clone(), kernels);
        Self { parameters, table, client, server }
    }

    fn small() -> Self {
        Self::new(56, 1, setting(8, 3), Some(0), Form::insecure(DEGREE))
    }

    fn index(&self, of: u64) -> RecordIndex {
        RecordIndex::new(of, self.parameters.plain().shape()).unwrap()
    }

    fn record(&self, of: u64) -> &[u8] {
        let len = self.parameters.plain().shape().record_len() as usize;
        &self.table[of as usize * len..][..len]
    }

    /// Looks a record up, every message through its encoding, of exactly the predicted size.
    fn check(&self, of: u64, rng: &mut SecretRng) {
        let (queries, pending) = self.client.query(&self.index(of), rng);
        let answers = queries.map(|query| {
            let bytes = query.encode();
            assert_eq!(bytes.len() as u64, self.parameters.query_bytes());
            let query = CompressedQuery::decode(&self.parameters, &bytes).unwrap();
            let bytes = self.server.answer(&query).unwrap().encode();
            assert_eq!(bytes.len() as u64, self.parameters.answer_bytes());
            CompressedAnswer::decode(&self.parameters, &bytes).unwrap()
        });
        let record = self.client.recover(pending, &answers).unwrap();
        assert_eq!(&record[..], self.record(of), "record {of} of {:?}", self.parameters.plain());
    }
}

#[test]
fn all_records_come_back_with_every_cut() {
    let mut rng = SecretRng::from_fixed_seed([1; 32]);
    // All 252 words of weight 5; and all 56 of weight 3 of eight variables, as single bits too.
    for (records, one_bit, setting, radius) in [
        (252, false, setting(10, 5), 2),
        (56, false, setting(8, 3), 1),
        (56, true, setting(8, 3), 1),
    ] {
        for cut in (0..=radius).map(Some).chain([None]) {
            let form = Form::insecure(DEGREE);
            let world = World::with_bits(records, 1, one_bit, setting, cut, form);
            assert!(cut.is_none_or(|cut| cut == world.parameters.cut()));
            (0..records).for_each(|of| world.check(of, &mut rng));
        }
    }
}

#[test]
fn records_come_back_in_the_standard_ring() {
    let mut rng = SecretRng::from_fixed_seed([2; 32]);
    // One block, which is not full, and two.
    for (record_len, cut) in [(1, None), (20, Some(1))] {
        let world = World::new(400, record_len, setting(14, 5), cut, Form::STANDARD);
        assert_eq!(world.parameters.blocks(), if record_len == 1 { 1 } else { 2 });
        [0, 399].iter().for_each(|of| world.check(*of, &mut rng));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// The plain scheme gives the same, from the same points.
    #[test]
    fn compressed_answers_are_plain_answers(
        (records, of) in (2u64..=2_000).prop_flat_map(|records| (Just(records), 0..records)),
        record_len in 1u64..=12,
        wide in any::<bool>(),
        cut in 0u32..=2,
        table in any::<u64>(),
        seed in any::<[u8; 32]>(),
    ) {
        let form = Form::insecure(DEGREE);
        let setting = if wide { setting(17, 5) } else { setting(14, 5) };
        let mut world = World::new(records, record_len, setting, Some(cut), form);
        // Another table under the same parameters.
        world.table = public_bytes(&table.to_string(), world.table.len());
        let points = world.points();
        let mut rng = SecretRng::from_fixed_seed(seed);
        let client = FiniteDifferencesClient::new(world.parameters.plain().clone());
        let (queries, pending) = client.query(&world.index(of), &mut rng).unwrap();
        let record = client.recover(pending, &points.answer(Role(0), &queries)).unwrap();
        prop_assert_eq!(&record[..], world.record(of));
        let kernels = Kernels::detect();
        world.server = CompressedServer::new(world.parameters.clone(), points, kernels).unwrap();
        world.check(of, &mut rng);
    }
}

impl World {
    fn points(&self) -> FiniteDifferencesServer {
        let plain = self.parameters.plain();
        let shape = plain.shape();
        let view = TableView::new(identity(shape.records(), shape.record_len()), &self.table);
        let setup = FiniteDifferencesSetup::new(plain.clone(), view.unwrap(), Kernels::detect(), 1);
        setup.unwrap().finish(&|_| {}).unwrap()
    }
}

/// Every difference in a plain answer counts in exactly one row.
#[test]
fn each_difference_is_cut_once() {
    for (variables, degree) in [(8, 3), (14, 5), (18, 9)] {
        let ball = World::ball(variables, degree);
        for cut in 0..=ball.radius() {
            let of = World::sizes(variables, degree, cut);
            let mut seen: Vec<u64> = of
                .lows()
                .flat_map(|low| of.differences(low).collect::<Vec<_>>())
                .map(|(_, difference)| difference)
                .collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(ball.words()), "{variables}, {degree}, {cut}");
        }
    }
}

impl World {
    fn ball(variables: u32, degree: u32) -> privet_core::combinations::Ball {
        Self::sizes(variables, degree, 0).plain().ball().clone()
    }

    /// Parameters for 50 records of a byte.
    fn sizes(variables: u32, degree: u32, cut: u32) -> CompressedParameters {
        let identity = identity(50, 1);
        let setting = setting(variables, degree);
        let plain = FiniteDifferencesParameters::with(identity.shape, false, setting).unwrap();
        CompressedParameters::with_cut(&identity, plain, cut).unwrap()
    }
}

/// The default cut is the best of all, and precisions keep the bound.
#[test]
fn the_fewest_bytes_are_chosen_and_records_come_back_right() {
    for record_len in [1, 32, 1_000] {
        let identity = identity(1 << 24, record_len);
        let shape = identity.shape;
        let plain = FiniteDifferencesParameters::with(shape, false, setting(28, 11)).unwrap();
        let best = CompressedParameters::new(&identity, plain.clone()).unwrap();
        for cut in 0..=5 {
            let of_cut = CompressedParameters::with_cut(&identity, plain.clone(), cut).unwrap();
            assert!(of_cut.moved_bytes() >= best.moved_bytes(), "{record_len} B, cut {cut}");
            assert!(of_cut.failure_bound_log2() <= -40.0);
        }
        let refusal = CompressedParameters::with_cut(&identity, plain, 6).unwrap_err();
        assert_eq!(refusal.blame(), Blame::ApiMisuse);
    }
}

/// 2^24 records of a byte: the sizes in the documentation.
#[test]
fn sizes_are_as_documented() {
    let identity = identity(1 << 24, 1);
    let of = |variables, degree| {
        let setting = setting(variables, degree);
        let plain = FiniteDifferencesParameters::with(identity.shape, false, setting).unwrap();
        let found = CompressedParameters::new(&identity, plain).unwrap();
        [found.cut().into(), found.query_bytes(), found.answer_bytes(), found.moved_bytes()]
    };
    assert_eq!(of(28, 11), [2, 16_607, 6_748, 46_710]);
    assert_eq!(of(31, 9), [2, 13_551, 6_611, 40_324]);
}

#[test]
fn malformed_messages_are_refused() {
    let world = World::small();
    let mut rng = SecretRng::from_fixed_seed([4; 32]);
    let (queries, pending) = world.client.query(&world.index(7), &mut rng);
    let query = queries[0].encode();
    let answers = queries.map(|query| world.server.answer(&query).unwrap());
    let answer = answers[0].encode();
    let parameters = &world.parameters;
    let of_query = |bytes: &[u8]| CompressedQuery::decode(parameters, bytes).err();
    let of_answer = |bytes: &[u8]| CompressedAnswer::decode(parameters, bytes).err();
    let refused = |refusal: Option<privet_core::Error>| {
        assert_eq!(refusal.expect("is refused").blame(), Blame::InvalidMessage);
    };
    for len in 0..query.len() {
        refused(of_query(&query[..len]));
    }
    for len in 0..answer.len() {
        refused(of_answer(&answer[..len]));
    }
    refused(of_query(&[&query[..], &[0]].concat()));
    refused(of_answer(&[&answer[..], &[0]].concat()));
    // Any other bytes are an answer, and give some record.
    let garbage = [17u8, 93].map(|seed| {
        let mut bytes = vec![0; answer.len()];
        SecretRng::from_fixed_seed([seed; 32]).fill(&mut bytes);
        let spare = (8 * bytes.len() as u64 - parameters.answer_bits()) as u32;
        *bytes.last_mut().unwrap() >>= spare;
        CompressedAnswer::decode(parameters, &bytes).unwrap()
    });
    assert_eq!(world.client.recover(pending, &garbage).unwrap().len(), 1);
    // Answers of other parameters.
    let other = World::new(252, 1, setting(10, 5), Some(1), Form::insecure(DEGREE));
    let (queries, pending) = other.client.query(&other.index(7), &mut rng);
    drop(queries);
    let refusal = other.client.recover(pending, &answers).unwrap_err();
    assert_eq!(refusal.blame(), Blame::ApiMisuse);
    let (_, pending) = world.client.query(&world.index(7), &mut rng);
    let refusal = world.client.recover(pending, &answers[..1]).unwrap_err();
    assert_eq!(refusal.blame(), Blame::ApiMisuse);
}

/// A server of other points, which would answer something else.
#[test]
fn a_server_of_another_polynomial_is_refused() {
    let (world, other) = (World::small(), World::sizes(14, 5, 1));
    let refusal = CompressedServer::new(other, world.points(), Kernels::detect()).err();
    assert_eq!(refusal.expect("is refused").blame(), Blame::ApiMisuse);
}
