//! The schedule, and the steps that follow from it.

use super::*;

const SMALL: Pace = Pace {
    shortest_piece: 1,
    stride: 1 << 20,
    checkpoint_interval: 1 << 20,
    checkpoint_every: Duration::MAX,
    shortest_step: 1,
};

fn fetch(offset: u64, len: u64) -> PreparationStep {
    PreparationStep::Fetch { offset, len }
}

impl Preparing {
    fn next_now(&mut self) -> Option<PreparationStep> {
        self.next(Duration::ZERO)
    }
}

fn due_at(schedule: Schedule, total: u64) -> Vec<u64> {
    (0..=total).map(|used| schedule.due(Supply { used, total })).collect()
}

#[test]
fn preparation_begins_at_a_quarter_and_is_complete_at_three() {
    for (table_len, total) in [(1, 1), (1, 7), (100, 4), (1000, 64), (12_345, 401), (1 << 30, 9)] {
        let due = due_at(Schedule::new(table_len, 0, &SMALL), total);
        let (begin, end) = ((total / 4) as usize, (total - total / 4) as usize);
        assert!(due[..begin].iter().all(|due| *due == 0));
        assert!(due[begin] > 0, "{table_len} {total}");
        assert!(due[end..].iter().all(|due| *due == table_len), "{table_len} {total}");
        assert!(due.windows(2).all(|pair| pair[0] <= pair[1]));
    }
}

#[test]
fn pieces_are_spread_evenly() {
    let due = due_at(Schedule::new(6400, 0, &SMALL), 400);
    for (used, due) in due.iter().enumerate().take(300).skip(100) {
        // 64 pieces of 100 bytes over 200 queries.
        let exact = (used - 100) as f64 * 32.0;
        assert!((0.0..=132.0).contains(&(*due as f64 - exact)), "{used}: {due}");
        assert_eq!(due % 100, 0);
    }
}

#[test]
fn pieces_are_no_shorter_than_the_state_or_a_mebibyte() {
    let first = |schedule: Schedule| schedule.due(Supply { used: 25, total: 100 });
    assert_eq!(first(Schedule::new(1 << 30, 0, &Pace::default())), 1 << 24);
    assert_eq!(first(Schedule::new(1 << 30, 1 << 27, &Pace::default())), 1 << 27);
    assert_eq!(first(Schedule::new(1 << 22, 0, &Pace::default())), 1 << 20);
    assert_eq!(first(Schedule::new(1000, 0, &Pace::default())), 1000);
}

/// Everything that is asked for if each fetch and each step succeeds at once.
fn run(preparing: &mut Preparing) -> Vec<PreparationStep> {
    let mut steps = Vec::new();
    while let Some(step) = preparing.next_now() {
        steps.push(step);
        match step {
            PreparationStep::Begin => preparing.resumed(preparing.received),
            PreparationStep::Fetch { len, .. } => {
                preparing.received(len);
                preparing.fetched(false);
                preparing.absorbed(preparing.received);
            }
            PreparationStep::Ask => {
                assert!(preparing.requested(preparing.received));
                preparing.received(preparing.reply_len.unwrap());
                preparing.fetched(false);
                preparing.absorbed(preparing.received);
            }
            PreparationStep::Checkpoint => preparing.saved(),
            PreparationStep::Finish => preparing.ended(true),
        }
    }
    steps
}

#[test]
fn a_generation_is_prepared_by_the_piece() {
    let pace = Pace { shortest_piece: 10, stride: 4, ..SMALL };
    let schedule = Schedule::new(25, 0, &pace);
    let mut preparing = Preparing::next_generation(schedule, pace, 0);
    let mut steps = Vec::new();
    for used in 1..=8 {
        preparing.lookup_sent(Supply { used, total: 8 });
        steps.extend(run(&mut preparing));
    }
    let expected = [
        PreparationStep::Begin,
        fetch(0, 4),
        fetch(4, 4),
        fetch(8, 2),
        PreparationStep::Checkpoint,
        fetch(10, 4),
        fetch(14, 4),
        fetch(18, 2),
        PreparationStep::Checkpoint,
        fetch(20, 4),
        fetch(24, 1),
        PreparationStep::Finish,
    ];
    assert_eq!(steps, expected);
    assert!(preparing.is_complete());
}

#[test]
fn a_late_start_catches_up_by_two_pieces_a_lookup_until_the_hints_are_used_up() {
    let pace = Pace { shortest_piece: 10, stride: 100, ..SMALL };
    let schedule = Schedule::new(100, 0, &pace);
    let mut preparing = Preparing::next_generation(schedule, pace, 30);
    let fetched = |steps: Vec<PreparationStep>| -> Vec<(u64, u64)> {
        let fetched = steps.into_iter().filter_map(|step| match step {
            PreparationStep::Fetch { offset, len } => Some((offset, len)),
            _ => None,
        });
        fetched.collect()
    };
    preparing.lookup_sent(Supply { used: 38, total: 40 });
    assert_eq!(fetched(run(&mut preparing)), [(30, 20)]);
    preparing.lookup_sent(Supply { used: 39, total: 40 });
    assert_eq!(fetched(run(&mut preparing)), [(50, 20)]);
    preparing.lookup_sent(Supply { used: 40, total: 40 });
    assert_eq!(fetched(run(&mut preparing)), [(70, 30)]);
}

#[test]
fn no_more_than_a_stride_waits_for_the_worker_when_another_is_asked_for() {
    let pace = Pace { shortest_piece: 10, stride: 10, ..SMALL };
    let mut preparing = Preparing::foreground(100, pace);
    assert_eq!(preparing.next_now(), Some(PreparationStep::Begin));
    assert_eq!(preparing.next_now(), None, "the worker has not said where to go on");
    preparing.resumed(0);
    assert_eq!(preparing.next_now(), Some(fetch(0, 10)));
    assert_eq!(preparing.next_now(), None, "one fetch at a time");
    preparing.received(10);
    preparing.fetched(false);
    assert_eq!(preparing.next_now(), None, "a whole stride waits for the worker");
    preparing.absorbed(1);
    assert_eq!(preparing.next_now(), Some(fetch(10, 10)));
}

#[test]
fn a_first_generation_is_saved_every_so_often_even_in_the_midst_of_a_fetch() {
    let pace = Pace { stride: 100, checkpoint_every: Duration::from_secs(5), ..SMALL };
    let mut preparing = Preparing::foreground(100, pace);
    let at = Duration::from_secs;
    assert_eq!(preparing.next(at(0)), Some(PreparationStep::Begin));
    preparing.resumed(0);
    assert_eq!(preparing.next(at(1)), Some(fetch(0, 100)));
    assert_eq!(preparing.next(at(9)), None, "there is nothing to save");
    preparing.received(10);
    assert_eq!(preparing.next(at(10)), None);
    assert_eq!(preparing.next(at(14)), None);
    assert_eq!(preparing.next(at(15)), Some(PreparationStep::Checkpoint));
    preparing.received(10);
    assert_eq!(preparing.next(at(30)), None, "the last one is still being saved");
    preparing.saved();
    assert_eq!(preparing.next(at(31)), Some(PreparationStep::Checkpoint));
    preparing.saved();
    preparing.received(80);
    assert_eq!(preparing.next(at(60)), None, "the fetch is not over");
    preparing.fetched(false);
    assert_eq!(preparing.next(at(60)), Some(PreparationStep::Finish));
}

#[test]
fn a_worker_that_failed_is_tried_again_when_more_is_due_or_the_hints_are_used_up() {
    let mut preparing = Preparing::next_generation(Schedule::new(100, 0, &SMALL), SMALL, 0);
    let lookup = |used| Supply { used, total: 400 };
    let began = |preparing: &mut Preparing| preparing.next_now() == Some(PreparationStep::Begin);
    preparing.lookup_sent(lookup(100));
    assert!(began(&mut preparing));
    preparing.ended(false);
    preparing.lookup_sent(lookup(101));
    assert!(!began(&mut preparing), "nothing more is due");
    preparing.lookup_sent(lookup(110));
    assert!(began(&mut preparing));
    preparing.ended(false);
    preparing.lookup_sent(lookup(399));
    assert!(began(&mut preparing));
    preparing.ended(false);
    assert!(preparing.demand_all());
    assert!(began(&mut preparing));
    preparing.resumed(40);
    assert_eq!(preparing.next_now(), Some(fetch(40, 60)));
    preparing.fetched(true);
    assert_eq!(preparing.next_now(), None, "given up");
    assert!(!preparing.demand_all(), "the lookup that waited fails");
    assert!(preparing.demand_all(), "the next one has it tried again");
    assert_eq!(preparing.next_now(), Some(fetch(40, 60)));
}

#[test]
fn a_given_up_fetch_waits_for_the_next_lookup_and_keeps_what_came() {
    let pace = Pace { shortest_piece: 10, stride: 10, ..SMALL };
    let mut preparing = Preparing::next_generation(Schedule::new(100, 0, &pace), pace, 0);
    preparing.lookup_sent(Supply { used: 20, total: 40 });
    assert_eq!(preparing.next_now(), Some(PreparationStep::Begin));
    preparing.resumed(0);
    assert_eq!(preparing.next_now(), Some(fetch(0, 10)));
    preparing.received(3);
    preparing.fetched(true);
    assert_eq!(preparing.next_now(), Some(PreparationStep::Checkpoint));
    assert_eq!(preparing.next_now(), None);
    preparing.lookup_sent(Supply { used: 21, total: 40 });
    assert_eq!(preparing.next_now(), Some(fetch(3, 10)));
}

#[test]
fn a_stream_that_a_process_did_not_live_to_finish_is_finished_by_the_next() {
    let pace = Pace { shortest_piece: 10, stride: 10, ..SMALL };
    let mut preparing = Preparing::next_generation(Schedule::new(100, 0, &pace), pace, 100);
    preparing.lookup_sent(Supply { used: 20, total: 40 });
    assert_eq!(preparing.next_now(), None, "not all of it is due");
    preparing.lookup_sent(Supply { used: 30, total: 40 });
    assert_eq!(run(&mut preparing), [PreparationStep::Begin, PreparationStep::Finish]);
}

#[test]
fn replies_are_asked_for_one_at_a_time_and_whole() {
    let pace = Pace { shortest_piece: 10, stride: 1000, ..SMALL };
    // Five replies of seven bytes; pieces of ten.
    let schedule = Schedule::new(35, 0, &pace);
    let mut preparing = Preparing::next_generation(schedule, pace, 0).of_replies(Some(7));
    let steps: Vec<Vec<PreparationStep>> = (1..=8)
        .map(|used| {
            preparing.lookup_sent(Supply { used, total: 8 });
            run(&mut preparing)
        })
        .collect();
    let [none, first, second, third, fourth, rest @ ..] = &steps[..] else { panic!("eight") };
    assert!(none.is_empty() && rest.iter().all(Vec::is_empty));
    assert_eq!(
        *first,
        [
            PreparationStep::Begin,
            PreparationStep::Ask,
            PreparationStep::Ask,
            PreparationStep::Checkpoint
        ],
        "14 of 10 bytes"
    );
    assert_eq!(*second, [PreparationStep::Ask, PreparationStep::Checkpoint], "21 of 20");
    assert_eq!(
        *third,
        [PreparationStep::Ask, PreparationStep::Ask, PreparationStep::Finish],
        "35 of 30"
    );
    assert!(fourth.is_empty() && preparing.is_complete());
}

#[test]
fn a_request_is_awaited_and_one_that_was_given_up_is_made_again() {
    let mut preparing = Preparing::foreground(14, SMALL).of_replies(Some(7));
    assert_eq!(preparing.next_now(), Some(PreparationStep::Begin));
    preparing.resumed(7);
    assert_eq!(preparing.next_now(), Some(PreparationStep::Ask));
    assert!(preparing.is_at_work(), "the worker makes the request");
    assert_eq!(preparing.next_now(), None);
    assert!(preparing.requested(7));
    assert!(!preparing.requested(7), "it is sent once");
    assert!(!preparing.is_at_work());
    assert_eq!(preparing.next_now(), None, "one at a time");
    preparing.fetched(true);
    assert!(preparing.demand_all());
    assert_eq!(preparing.next_now(), Some(PreparationStep::Ask));
    assert!(!preparing.requested(0), "not one that belongs elsewhere");
}
