use super::rehearsal::Took;
use super::*;
use crate::session::planted::{Planted, SessionFlaw, plant};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn micros(count: u64) -> Duration {
    Duration::from_micros(count)
}

/// The slot lengths if the slowest dummies took so many microseconds.
fn slowest(query: u64, answer: u64, search_len: u64) -> Lengths {
    Lengths::of_slowest(micros(query), micros(answer), search_len, FINEST)
}

#[test]
fn what_takes_longer_ends_at_the_next_quarter() {
    let length = micros(100);
    for (took, ends) in [(0, 100), (99, 100), (100, 100), (101, 125), (125, 125), (126, 150)] {
        assert_eq!(slot_end(length, micros(took)), micros(ends), "{took}");
    }
    assert_eq!(slot_end(length, micros(1001)), micros(1025));
}

#[test]
fn slots_are_five_quarters_of_the_slowest_and_grow_with_the_search() {
    let lengths = slowest(400, 80, 10);
    let of = |work, search_len| lengths.of(work, search_len, Stretch::NONE);
    assert_eq!(of(Work::Answer, 10), micros(100));
    assert_eq!(of(Work::Query, 10), micros(500));
    assert_eq!(of(Work::Query, 15), micros(750));
    // Less to search does not shorten slots: the measured length stays.
    assert_eq!(of(Work::Query, 5), micros(500));
    let short = Lengths::of_slowest(Duration::ZERO, Duration::ZERO, 1, FINEST);
    assert_eq!((short.query, short.answer), (SHORTEST, SHORTEST));
    // If nothing was measured, nothing is multiplied.
    let unmeasured = Lengths::unmeasured().of(Work::Query, 10_000, Stretch::NONE);
    assert_eq!(unmeasured, micros(1250));
}

#[test]
fn slots_that_are_too_short_grow_and_shrink_again() {
    let (mut timetable, time, _planted) = timetable();
    let mut slot = |took| {
        timetable.ends = None;
        let now = timetable.at(Duration::ZERO);
        time.fetch_add(took, Ordering::Relaxed);
        timetable.end_query(1);
        timetable.ends().unwrap() - now
    };
    let lengths: Vec<u64> = (0..24).map(|_| slot(300).as_micros() as u64).collect();
    // Late by quarters of 100, 125, 156, 195 and 244 microseconds, four times each; then in time.
    assert_eq!(lengths[..8], [300, 300, 300, 300, 312, 312, 312, 312]);
    assert_eq!(lengths[8..16], [312, 312, 312, 312, 341, 341, 341, 341]);
    assert_eq!(lengths[16..], [305, 305, 305, 305, 305, 304, 304, 304]);
    // In time, by any margin: how much less it takes must not show.
    let shorter: Vec<Duration> = (0..2000).map(|k| slot(k % 100)).collect();
    assert!(shorter.is_sorted_by(|a, b| a >= b));
    assert!(shorter[400] > micros(200), "slowly");
    assert_eq!(shorter[1999], micros(100));
    // Three late ones of 64 change nothing.
    for _ in 0..3 {
        for _ in 0..3 {
            assert_eq!(slot(110), micros(125));
        }
        assert!((0..61).all(|_| slot(10) == micros(100)));
    }
    // Four times is the most, and longer work still ends at a quarter of that.
    for _ in 0..28 {
        slot(5000);
    }
    assert_eq!(slot(5050), micros(5100));
    assert_eq!(slot(1), micros(400));
}

fn timetable() -> (Timetable, Arc<AtomicU64>, Planted) {
    let time = Arc::new(AtomicU64::new(0));
    let shown = Arc::clone(&time);
    let clock = Clock::new(move || micros(shown.load(Ordering::Relaxed)));
    let mut timetable = Timetable::new(clock, Duration::ZERO, Measuring::brief());
    // These tests set the time themselves.
    let planted = plant(Some(SessionFlaw::BelievesWhatItIsTold));
    timetable.lengths = Some(slowest(80, 40, 1));
    (timetable, time, planted)
}

#[test]
fn nothing_leaves_before_its_slot_ends() {
    let (mut timetable, time, _planted) = timetable();
    timetable.at(micros(1000));
    time.fetch_add(30, Ordering::Relaxed);
    timetable.end_query(1);
    assert_eq!(timetable.ends(), Some(micros(1100)));
    assert!(!timetable.lets_out(micros(1099)));
    // What comes during the slot counts as having come at its end.
    assert_eq!(timetable.at(micros(1031)), micros(1100));
    assert!(timetable.lets_out(micros(1100)));
    assert_eq!(timetable.ends(), None);
    // The next query takes longer than its slot.
    timetable.at(micros(2000));
    time.fetch_add(101, Ordering::Relaxed);
    timetable.end_query(1);
    assert_eq!(timetable.ends(), Some(micros(2125)));
}

#[test]
fn answers_that_take_long_lengthen_no_later_slot() {
    let (mut timetable, time, _planted) = timetable();
    let mut slot = |work, took| {
        timetable.ends = None;
        let now = timetable.at(Duration::ZERO);
        time.fetch_add(took, Ordering::Relaxed);
        match work {
            Work::Query => timetable.end_query(1),
            Work::Answer => timetable.end_unseen(work, 1, 1),
        }
        timetable.ends().unwrap() - now
    };
    assert_eq!(slot(Work::Answer, 50), micros(50));
    assert_eq!(slot(Work::Answer, 70), micros(75));
    assert_eq!(slot(Work::Answer, 10), micros(50), "nobody may have seen that one was late");
    assert_eq!(slot(Work::Query, 10), micros(100));
    // Late queries are visible. All slots grow: the processor has other work.
    for _ in 0..4 {
        assert_eq!(slot(Work::Query, 110), micros(125));
    }
    assert_eq!(slot(Work::Query, 10), micros(125));
    assert!(slot(Work::Answer, 10) > micros(60));
}

/// A driver that reads its clock, does something else for a while, and then asks what to do.
#[test]
fn a_time_that_is_old_shortens_no_slot() {
    let (mut timetable, time, planted) = timetable();
    drop(planted);
    let mut slot = |told| {
        timetable.ends = None;
        timetable.at(told);
        time.fetch_add(30, Ordering::Relaxed);
        timetable.end_query(1);
        timetable.ends().unwrap()
    };
    assert_eq!(slot(micros(0)), micros(100));
    time.fetch_add(500, Ordering::Relaxed);
    // 530 microseconds have passed. That it says 400 changes nothing.
    let mut slot = |told| {
        timetable.ends = None;
        let began = timetable.at(told);
        time.fetch_add(30, Ordering::Relaxed);
        timetable.end_query(1);
        (began, timetable.ends().unwrap())
    };
    assert_eq!(slot(micros(400)), (micros(530), micros(630)));
    // A time later than the clock's is believed.
    assert_eq!(slot(micros(5000)), (micros(5000), micros(5100)));
    // Nor does an old time keep back what may leave, or let out what may not.
    assert!(!timetable.lets_out(micros(5099)));
    time.fetch_add(4510, Ordering::Relaxed);
    assert!(timetable.lets_out(micros(5000)), "the clock shows 5100");
}

#[test]
fn a_coarse_clock_makes_slots_of_whole_steps() {
    let step = Duration::from_millis(1);
    let lengths = Lengths::of_slowest(Duration::ZERO, 3 * step, 1, step);
    // Something took less than a step, or less than four.
    assert_eq!((lengths.query, lengths.answer), (4 * step, 8 * step));
    let (mut timetable, time, _planted) = timetable();
    timetable.lengths = Some(lengths);
    let mut slot = |steps: u64| {
        timetable.ends = None;
        let now = timetable.at(Duration::ZERO);
        time.fetch_add(1000 * steps, Ordering::Relaxed);
        timetable.end_unseen(Work::Answer, 1, 1);
        timetable.ends().unwrap() - now
    };
    assert_eq!(slot(7), 8 * step);
    // It may end anywhere within the ninth step, and would be told right then.
    assert_eq!(slot(8), 10 * step);
    assert_eq!(slot(9), 10 * step);
}

#[test]
fn the_steps_of_a_clock_are_found() {
    let looks = AtomicU64::new(17);
    let clock = Clock::new(move || micros(looks.fetch_add(1, Ordering::Relaxed) / 100 * 5));
    assert_eq!(clock.step(1000), Some(micros(5)));
    assert_eq!(Clock::new(|| micros(5)).step(1000), None);
    let started = std::time::Instant::now();
    let step = Clock::new(move || started.elapsed()).step(1 << 24).unwrap();
    assert!(step < Duration::from_millis(100), "{step:?}");
}

#[test]
fn one_dummy_in_many_may_have_been_interrupted() {
    let took = |query| Took { query: micros(query), answer: micros(1) };
    let slowest = |times: &[u64]| {
        let times: Vec<Took> = times.iter().map(|query| took(*query)).collect();
        super::rehearsal::slowest(&times, |took| took.query)
    };
    assert_eq!(slowest(&[]), None);
    assert_eq!(slowest(&[7]), Some(micros(7)));
    let few: Vec<u64> = (1..=31).collect();
    assert_eq!(slowest(&few), Some(micros(31)));
    let many: Vec<u64> = (1..=96).collect();
    assert_eq!(slowest(&many), Some(micros(93)));
}

#[test]
fn opening_ends_at_a_multiple_of_its_step() {
    let (mut timetable, time, _planted) = timetable();
    for (took, ends) in [(0, None), (1, Some(OPENING_STEP)), (4001, Some(2 * OPENING_STEP))] {
        timetable.ends = None;
        timetable.at(Duration::ZERO);
        time.fetch_add(took, Ordering::Relaxed);
        timetable.end_opening();
        assert_eq!(timetable.ends(), ends, "{took}");
    }
}

#[test]
fn it_is_not_measured_again_too_soon_unless_the_table_is_another() {
    let (mut timetable, _, _planted) = timetable();
    let kind = |records| {
        (SchemeId::Dpf, vec![1, 2, 3], TableShape::new(records, 32).unwrap(), [records as u8; 32])
    };
    assert!(timetable.is_time_to_measure(&kind(100)));
    let (when, took) = (Duration::ZERO, OPENING_STEP);
    timetable.measured = Some(SlotMeasurement { when, took, in_table: kind(100) });
    assert!(!timetable.is_time_to_measure(&kind(100)));
    assert!(timetable.is_time_to_measure(&kind(101)), "a server makes the table another one");
    timetable.at(OPENING_STEP * (PAUSES - 1));
    assert!(!timetable.is_time_to_measure(&kind(100)));
    timetable.at(OPENING_STEP * PAUSES);
    assert!(timetable.is_time_to_measure(&kind(100)));
}
