use super::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn micros(count: u64) -> Duration {
    Duration::from_micros(count)
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
    let lengths = Lengths::of_slowest(micros(400), micros(80), 10);
    assert_eq!(lengths.of(Work::Answer, 10), micros(100));
    assert_eq!(lengths.of(Work::Query, 10), micros(500));
    assert_eq!(lengths.of(Work::Query, 15), micros(750));
    // Less to search is no reason to be faster: what was measured holds.
    assert_eq!(lengths.of(Work::Query, 5), micros(500));
    let short = Lengths::of_slowest(Duration::ZERO, Duration::ZERO, 1);
    assert_eq!((short.query, short.answer), (SHORTEST, SHORTEST));
    // What was not measured is not multiplied.
    assert_eq!(Lengths::unmeasured().of(Work::Query, 10_000), micros(1250));
}

#[test]
fn slots_that_are_too_short_grow_and_shrink_again() {
    let (mut timetable, time) = timetable();
    let mut slot = |took| {
        timetable.ends = None;
        let now = timetable.at(Duration::ZERO);
        time.fetch_add(took, Ordering::Relaxed);
        timetable.end(Work::Query, 1, 1);
        timetable.ends().unwrap() - now
    };
    let lengths: Vec<u64> = (0..9).map(|_| slot(300).as_micros() as u64).collect();
    // Late by quarters of 100, 125, 156, 195 and 244 microseconds, and then in time for a while.
    assert_eq!(lengths, [300, 312, 312, 341, 305, 305, 304, 304, 304]);
    // In time, whatever that is: how much less it takes is not to be seen.
    let shorter: Vec<Duration> = (0..2000).map(|k| slot(k % 100)).collect();
    assert!(shorter.is_sorted_by(|a, b| a >= b));
    assert!(shorter[400] > micros(200), "slowly");
    assert_eq!(shorter[1999], micros(100));
    // Four times is the most, and what takes longer still ends at a quarter of that.
    for _ in 0..20 {
        slot(5000);
    }
    assert_eq!(slot(5050), micros(5100));
    assert_eq!(slot(1), micros(400));
}

fn timetable() -> (Timetable, Arc<AtomicU64>) {
    let time = Arc::new(AtomicU64::new(0));
    let shown = Arc::clone(&time);
    let clock = Clock::new(move || micros(shown.load(Ordering::Relaxed)));
    let mut timetable = Timetable::new(clock, Duration::ZERO, Measuring::brief());
    timetable.lengths = Some(Lengths::of_slowest(micros(80), micros(40), 1));
    (timetable, time)
}

#[test]
fn nothing_leaves_before_its_slot_ends() {
    let (mut timetable, time) = timetable();
    timetable.at(micros(1000));
    time.fetch_add(30, Ordering::Relaxed);
    timetable.end(Work::Query, 1, 1);
    assert_eq!(timetable.ends(), Some(micros(1100)));
    assert!(!timetable.lets_out(micros(1099)));
    // What comes during the slot counts as having come at its end.
    assert_eq!(timetable.at(micros(1031)), micros(1100));
    assert!(timetable.lets_out(micros(1100)));
    assert_eq!(timetable.ends(), None);
    // The next takes longer than it should.
    timetable.at(micros(2000));
    time.fetch_add(101, Ordering::Relaxed);
    timetable.end(Work::Query, 1, 1);
    assert_eq!(timetable.ends(), Some(micros(2125)));
}

#[test]
fn opening_ends_at_a_multiple_of_its_step() {
    let (mut timetable, time) = timetable();
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
    let (mut timetable, _) = timetable();
    let kind = |records| (SchemeId::Dpf, vec![1, 2, 3], TableShape::new(records, 32).unwrap(), 40);
    assert!(timetable.is_time_to_measure(&kind(100)));
    let (when, took) = (Duration::ZERO, OPENING_STEP);
    timetable.measured = Some(Measured { when, took, in_table: kind(100) });
    assert!(!timetable.is_time_to_measure(&kind(100)));
    assert!(timetable.is_time_to_measure(&kind(101)), "a server makes the table another one");
    timetable.at(OPENING_STEP * (PAUSES - 1));
    assert!(!timetable.is_time_to_measure(&kind(100)));
    timetable.at(OPENING_STEP * PAUSES);
    assert!(timetable.is_time_to_measure(&kind(100)));
}
