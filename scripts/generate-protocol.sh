#!/usr/bin/env bash
# Writes crates/wire/src/proto/privet.v1.rs anew, after a change of the protocol definition. With
# --check: fails if the file is not what the generator writes.
set -euo pipefail
cd "$(dirname "$0")/.."

generated=crates/wire/src/proto/privet.v1.rs
before=$(mktemp)
trap 'rm -f "$before"' EXIT
cp "$generated" "$before" 2>/dev/null || true
CARGO_TARGET_DIR=target/generate cargo run --quiet --locked \
    --manifest-path crates/wire/generate/Cargo.toml
if [ "${1:-}" = --check ] && ! cmp "$before" "$generated"; then
    echo "$generated was not what the protocol definition gives; it is now: commit it" >&2
    exit 1
fi
