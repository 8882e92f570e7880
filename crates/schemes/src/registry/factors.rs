//! By how much each scheme's code takes longer than the operations that its room counts, in the
//! order of the terms there: one line for each step of [`Costs`](super::Costs).
//!
//! `cargo run --release -p privet-measure --example fit_factors` measures each scheme and rewrites
//! the numbers, each line in proportion. Run it when the code of a scheme got faster or slower.

pub(crate) mod dpf {
    pub(crate) const SETUP: f64 = 1.0;
    pub(crate) const QUERY: f64 = 6500.0;
    pub(crate) const ANSWER: [f64; 4] = [1.15, 4.5, 0.6, 2000.0];
    pub(crate) const ANSWER_OF_EIGHT: [f64; 4] = [0.125, 2.925, 0.39, 1300.0];
    pub(crate) const RECOVER: f64 = 700.0;
}

pub(crate) mod simplepir {
    pub(crate) const SETUP: [f64; 2] = [1.2, 1.0];
    pub(crate) const PREPARE: f64 = 1.0;
    pub(crate) const QUERY: f64 = 1.4;
    pub(crate) const ANSWER: [f64; 2] = [1.4, 1.8];
    pub(crate) const ANSWER_OF_EIGHT: [f64; 2] = [0.125, 1.3];
    pub(crate) const RECOVER: [f64; 2] = [4.8, 15000.0];
}

pub(crate) mod simplepir_packed {
    pub(crate) const SETUP: [f64; 2] = [135000000.0, 8000.0];
    pub(crate) const PREPARE: f64 = 1200000.0;
    pub(crate) const QUERY: [f64; 2] = [135000.0, 24.0];
    pub(crate) const ANSWER: [f64; 2] = [1.5, 2.4];
    pub(crate) const ANSWER_OF_EIGHT: [f64; 2] = [0.125, 1.4];
    pub(crate) const RECOVER: [f64; 2] = [22000.0, 40.0];
}

pub(crate) mod doublepir {
    pub(crate) const SETUP: [f64; 3] = [1230.0, 34.0, 1.0];
    pub(crate) const PREPARE: f64 = 1.0;
    pub(crate) const QUERY: f64 = 1.4;
    pub(crate) const ANSWER: [f64; 3] = [1.3, 3.0, 180.0];
    pub(crate) const ANSWER_OF_EIGHT: [f64; 3] = [0.125, 1.4, 84.0];
    pub(crate) const RECOVER: f64 = 4.5;
}

pub(crate) mod apir_dpf {
    pub(crate) const SETUP: f64 = 1.0;
    pub(crate) const QUERY: f64 = 8000.0;
    pub(crate) const ANSWER: [f64; 3] = [3.6, 3.96, 1.2];
    pub(crate) const RECOVER: f64 = 7000.0;
}

pub(crate) mod apir_matrix_mt {
    pub(crate) const SETUP: [f64; 4] = [1.0, 1.4, 3.5, 5.0];
    pub(crate) const QUERY: [f64; 2] = [0.125, 2000.0];
    pub(crate) const ANSWER: [f64; 2] = [1.2, 0.55];
    pub(crate) const ANSWER_OF_EIGHT: [f64; 2] = [0.125, 0.35];
    pub(crate) const RECOVER: [f64; 4] = [2.0, 1.0, 6000.0, 150.0];
}

pub(crate) mod download {
    pub(crate) const SETUP: f64 = 1.0;
    pub(crate) const PREPARE: f64 = 1.0;
    pub(crate) const RECOVER: f64 = 300.0;
}

pub(crate) mod harmony {
    pub(crate) const SETUP: [f64; 2] = [1.0, 1.0];
    pub(crate) const PREPARE: [f64; 3] = [1.0, 14.0, 1.25];
    pub(crate) const QUERY: [f64; 2] = [3.0, 6000.0];
    pub(crate) const ANSWER: [f64; 4] = [1.0, 50.0, 300.0, 20.0];
    pub(crate) const RECOVER: [f64; 2] = [1000.0, 70.0];
}

pub(crate) mod singlepass {
    pub(crate) const SETUP: f64 = 1.0;
    pub(crate) const HINTS: [f64; 2] = [3.0, 6.0];
    pub(crate) const PREPARE: [f64; 2] = [7.0, 45.0];
    pub(crate) const QUERY: [f64; 3] = [2.2, 1200.0, 80.0];
    pub(crate) const ANSWER: [f64; 2] = [1.0, 60.0];
    pub(crate) const RECOVER: [f64; 3] = [2400.0, 40.0, 30.0];
}

pub(crate) mod dummy_subsets {
    pub(crate) const SETUP: [f64; 2] = [1.0, 1.0];
    pub(crate) const PREPARE: [f64; 4] = [1.0, 0.75, 2.55, 2.55];
    pub(crate) const QUERY: [f64; 2] = [2.3, 15000.0];
    pub(crate) const ANSWER: [f64; 4] = [1.7, 255.0, 1000.0, 8.0];
    pub(crate) const RECOVER: f64 = 1700.0;
}

pub(crate) mod dummy_subsets_two {
    pub(crate) const SETUP: f64 = 1.5;
    pub(crate) const HINTS: [f64; 2] = [3.0, 2.0];
    pub(crate) const PREPARE: [f64; 2] = [3.0, 35.0];
    pub(crate) const QUERY: f64 = 1.5;
    pub(crate) const RECOVER: f64 = 1700.0;
}

pub(crate) mod tapir_mt {
    pub(crate) const SETUP: f64 = 1.1;
    pub(crate) const PREPARE: [f64; 2] = [1.6, 3.0];
    pub(crate) const ANSWER: [f64; 2] = [1500.0, 90.0];
    pub(crate) const RECOVER: [f64; 3] = [1.0, 1.0, 3500.0];
}

pub(crate) mod piano {
    pub(crate) const SETUP: [f64; 2] = [35.0, 18.0];
    pub(crate) const PREPARE: [f64; 6] = [1.0, 0.125, 0.5, 1.2, 2.0, 0.45];
    pub(crate) const QUERY: [f64; 2] = [1.8, 14000.0];
    pub(crate) const ANSWER: [f64; 3] = [1.9, 100.0, 8.0];
    pub(crate) const RECOVER: [f64; 2] = [2500.0, 1.0];
}

pub(crate) mod piano_all_parities {
    pub(crate) const ANSWER: [f64; 4] = [3.0, 400.0, 18.0, 8.0];
}
