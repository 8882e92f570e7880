//! The numbers of hints against exact probabilities; and sizes as documented.

use super::*;

/// ln k! for all k up to a number.
struct Factorials(Vec<f64>);

impl Factorials {
    fn up_to(largest: u64) -> Self {
        let mut sum = 0.0;
        Self(
            (0..=largest)
                .map(|k| {
                    sum += (k.max(1) as f64).ln();
                    sum
                })
                .collect(),
        )
    }

    fn log_choose(&self, n: u64, k: u64) -> f64 {
        self.0[n as usize] - self.0[k as usize] - self.0[(n - k) as usize]
    }

    /// The probability that at least `count` of `drawn` different records out of `records` are
    /// among `marked` of them, summed term by term.
    fn tail(&self, count: u64, drawn: u64, records: u64, marked: u64) -> f64 {
        let most = drawn.min(marked);
        let least = count.max((drawn + marked).saturating_sub(records));
        let term = |k| {
            self.log_choose(marked, k) + self.log_choose(records - marked, drawn - k)
                - self.log_choose(records, drawn)
        };
        (least..=most).map(|k| term(k).exp()).sum()
    }
}

#[test]
fn windows_fail_less_often_than_once_in_2_to_the_40() {
    let allowed = 2f64.powi(-41);
    for records in [8, 9, 100, 700, 1 << 10, 5000, 1 << 14, 100_000, 1 << 20] {
        let parameters = PianoParameters::new(&identity(shape(records, 1))).unwrap();
        let (window, chunk) = (parameters.window(), u64::from(parameters.chunk_records()));
        assert!(window <= records);
        let no_hint =
            window as f64 * (1.0 - 1.0 / chunk as f64).powi(parameters.primaries() as i32);
        assert!(no_hint <= allowed, "{records}: {no_hint:e}");
        assert!(no_hint > allowed / 1e3 || parameters.primaries() == 64, "{records}: {no_hint:e}");

        let factorials = Factorials::up_to(records);
        let exact = |spares: u64| {
            let marked = chunk.min(records);
            f64::from(parameters.chunks()) * factorials.tail(spares + 1, window, records, marked)
        };
        let spares = u64::from(parameters.spares());
        assert!(exact(spares) <= allowed, "{records}: {:e}", exact(spares));
        assert!(parameters.failure_probability() <= 2.0 * allowed);
        assert!(parameters.failure_probability() * (1.0 + 1e-9) >= no_hint + exact(spares));
        // Not many more than needed: rounding to blocks of eight, and the slack of the bound.
        if spares > 24 && spares < chunk {
            assert!(exact(spares - 24) > allowed, "{records}: {spares} spares");
        }
    }
}

#[test]
fn tiny_tables_have_spares_for_every_query() {
    for records in 1..=200 {
        let parameters = PianoParameters::new(&identity(shape(records, 1))).unwrap();
        assert!(parameters.window() >= 8);
        let most = parameters.window().min(u64::from(parameters.chunk_records()));
        if records < 8 {
            assert!(u64::from(parameters.spares()) >= parameters.window());
        } else if records < 64 {
            assert!(u64::from(parameters.spares()) >= most, "{records}");
        }
    }
}

#[test]
fn sizes_are_as_promised_and_below_the_papers() {
    let mebibytes = |records, record_len| {
        let parameters = PianoParameters::new(&identity(shape(records, record_len))).unwrap();
        assert!(parameters.failure_probability() <= 2f64.powi(-40));
        parameters.state_bytes::<SingleParity>() as f64 / f64::from(1 << 20)
    };
    // Table 3 of "Simple and Practical Amortized Sublinear Private Information Retrieval using
    // Dummy Subsets" for Piano.
    assert!(mebibytes(1 << 20, 32) < 0.85 * 7.32, "{}", mebibytes(1 << 20, 32));
    assert!(mebibytes(1 << 24, 32) < 0.85 * 32.97, "{}", mebibytes(1 << 24, 32));
    assert!(mebibytes(1 << 28, 8) < 0.6 * 70.5, "{}", mebibytes(1 << 28, 8));

    let parameters = PianoParameters::new(&identity(shape(1 << 24, 32))).unwrap();
    assert_eq!((parameters.chunk_records(), parameters.chunks()), (8192, 2048));
    assert_eq!((parameters.window(), parameters.primaries()), (68_140, 323_968));
    assert_eq!(parameters.spares(), 96);
    assert_eq!(PianoQuery::<SingleParity>::encoded_len(&parameters), 2048 * 13 / 8);
    assert_eq!(PianoQuery::<AllParities>::encoded_len(&parameters), (2047 * 13usize).div_ceil(8));
    assert_eq!(PianoAnswer::<SingleParity>::encoded_len(&parameters), 32);
    assert_eq!(PianoAnswer::<AllParities>::encoded_len(&parameters), 65_536);
}
