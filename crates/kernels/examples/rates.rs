//! Prints how fast one core of this machine is, as `privet plan --machine` reads it. It is for
//! machines on which `privet` does not run, such as WebAssembly: scripts/measure-wasm.sh.

use privet_kernels::Kernels;
use privet_kernels::rates::{best, filled, step_rate};
use std::error::Error;
use std::hint::black_box;

/// Memory of these sizes is read.
const SIZES: [usize; 5] = [1 << 18, 1 << 22, 1 << 24, 1 << 26, 1 << 29];

fn main() -> Result<(), Box<dyn Error>> {
    let kernels = Kernels::detect();
    let memory = filled(SIZES[SIZES.len() - 1])?;
    let speeds = |rate: fn(Kernels, &[u8]) -> f64| {
        let speed = |size: usize| {
            format!("{{\"of_bytes\": {size}, \"per_s\": {:.0}}}", rate(kernels, &memory[..size]))
        };
        format!("[{}]", SIZES.map(speed).join(", "))
    };
    let hashed = best(1 << 24, || {
        black_box(blake3::hash(&memory[..1 << 24]));
    });
    // There is no curve in WebAssembly, and a scheme that needs one is refused there. Nor is there
    // a server that copies its table.
    let (point_products, copies) = (1, r#"[{"of_bytes": 1, "per_s": 1}]"#);
    println!("{{");
    println!("  \"kernel\": \"{}\",", kernels.arm());
    println!("  \"reads\": {},", speeds(Kernels::read_rate));
    println!("  \"random_reads\": {},", speeds(Kernels::random_read_rate));
    println!("  \"copies\": {copies},");
    println!("  \"aes_blocks_per_s\": {:.0},", kernels.aes_rate());
    println!("  \"byte_products_per_s\": {:.0},", kernels.byte_product_rate()?);
    println!("  \"xored_bytes_per_s\": {:.0},", kernels.xor_rate(&memory[..1 << 18]));
    println!("  \"hashed_bytes_per_s\": {hashed:.0},");
    println!("  \"short_hashes_per_s\": {:.0},", kernels.short_hash_rate(&memory[..1 << 20]));
    println!("  \"point_products_per_s\": {point_products},");
    println!("  \"steps_per_s\": {:.0}", step_rate());
    println!("}}");
    Ok(())
}
