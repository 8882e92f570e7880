//! The lookup that is not private: the server learns which record is wanted. It is for comparison
//! only; no server offers it and no client asks for it.

use super::microseconds;
use super::online::compare;
use super::report::{Offline, Online, Run, ServerTime};
use super::table::BenchTable;
use super::{BenchOptions, median};
use crate::traffic;
use privet_core::{Error, Result};
use privet_kernels::Kernels;
use privet_kernels::memory::HugeBuffer;
use privet_schemes::contract::Role;
use privet_schemes::registry::Work;
use std::time::Instant;

/// Asks for records by number, eight bytes each, and reads them from a copy of the table.
pub(super) fn measure(options: &BenchOptions, table: &BenchTable, kernels: Kernels) -> Result<Run> {
    let record_len = table.shape().record_len() as usize;
    let no_memory = || Error::unavailable("no memory for the table");
    let len = usize::try_from(table.shape().bytes()).map_err(|_| no_memory())?;
    let mut records =
        HugeBuffer::<u8>::new_zeroed(len).map_err(|error| no_memory().caused_by(error))?;
    table.contents().fill(&mut records);

    let mut answer_us = Vec::new();
    let mut answers = vec![0; options.batch as usize * record_len];
    for batch in 0..options.batches() {
        let wanted = options.wanted(batch, table);
        // Written beforehand, so that no page is touched for the first time while the clock runs.
        answers.fill(1);
        let start = Instant::now();
        kernels
            .gather_records(&records, record_len, &wanted, &mut answers)
            .map_err(|error| Error::internal("a record outside the table").caused_by(error))?;
        answer_us.push(microseconds(start) / wanted.len() as f64);
        for (index, answer) in wanted.iter().zip(answers.chunks_exact(record_len)) {
            compare(table, *index, answer)?;
        }
    }

    let lookup = traffic::lookup(&table.identity(), [0; 32], Role(0), 8, record_len);
    Ok(Run {
        offline: Offline::default(),
        online: Online {
            servers: vec![ServerTime::new(0, median(answer_us), lookup)],
            up_bytes: lookup.query,
            down_bytes: lookup.answer,
            ..Online::default()
        },
        edit_us: None,
        edits: None,
        client_state_bytes: 0,
        server_extra_bytes: 0,
        work: Work::Records { records: 1, aes_blocks: 0 },
    })
}
