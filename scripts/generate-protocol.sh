#!/usr/bin/env bash
# Writes crates/wire/src/proto/privet.v1.rs anew, after a change of the protocol definition or of its
# generator. A test of crates/wire fails until then.
set -euo pipefail
cd "$(dirname "$0")/.."

CARGO_TARGET_DIR=target/generate cargo run --quiet --locked \
    --manifest-path crates/wire/generate/Cargo.toml
