//! The median time of a lookup in microseconds: `latencies URL LOOKUPS`, for a table with the keys
//! `person 0` to `person 99`. `bindings/python/measure.py` compares it with Python's.

#![allow(clippy::print_stdout)]

use privet_client::{Client, ClientOptions, Target};
use privet_core::{Error, Result};
use std::time::Instant;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(url), Some(lookups)) =
        (arguments.next(), arguments.next().and_then(|typed| typed.parse::<u64>().ok()))
    else {
        return Err(Error::api_misuse("usage: latencies URL LOOKUPS"));
    };
    let client = Client::connect_blocking(ClientOptions::new([url]), |_| {})?;
    let mut taken = Vec::new();
    for row in 0..lookups {
        let number = row % 100;
        let start = Instant::now();
        let value = client.get_target_blocking(Target::key(format!("person {number}")))?;
        taken.push(start.elapsed());
        if value.as_deref() != Some(format!("{{\"number\":{number}}}").as_bytes()) {
            return Err(Error::integrity("a lookup gave another value"));
        }
    }
    taken.sort_unstable();
    let median = taken.get(taken.len() / 2).copied().unwrap_or_default();
    println!("{:.1}", median.as_secs_f64() * 1e6);
    client.finish_blocking()
}
