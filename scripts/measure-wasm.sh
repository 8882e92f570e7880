#!/usr/bin/env bash
# Prints how fast one core of this machine is in WebAssembly, under Node. `privet plan --client
# browser` has such a file: crates/measure/src/machine/browser.json.
set -euo pipefail
cd "$(dirname "$0")/.."

target=wasm32-wasip1
cargo build --quiet --release --locked --target "$target" --package privet-kernels --example rates
node --no-warnings scripts/run-wasm.mjs "target/$target/release/examples/rates.wasm"
