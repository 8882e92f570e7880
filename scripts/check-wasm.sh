#!/usr/bin/env bash
# Checks that WebAssembly computes what every other machine computes: the known answers, which
# programs in vectors/ made independently, under Node. There a `usize` has 32 bits.
#
# The target is wasm32-wasip1: browsers' wasm32-unknown-unknown with an interface to print by, so
# that the tests are the same ones. Privet for browsers leaves out the laboratory, and uses vectors.
set -euo pipefail
cd "$(dirname "$0")/.."

target=wasm32-wasip1
export CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS="-C target-feature=+simd128"

packages=(privet-kernels privet-core privet-schemes privet-table privet-wire)

# What clients in browsers are made of: without the features that files and the network need.
programs=$(cargo test --locked --target "$target" --no-default-features --lib --no-run \
    "${packages[@]/#/--package=}" --message-format json-render-diagnostics \
    | sed -n 's/.*"executable":"\([^"]*\.wasm\)".*/\1/p')

# known_answers PACKAGE COUNT [TESTS]: runs them, and finds at least COUNT. Or other tests.
known_answers() {
    local package=$1 count=$2 tests=${3:-known_answers} program output
    program=$(grep "/${package//-/_}-[0-9a-f]*\.wasm$" <<<"$programs")
    # What the tests say counts, and not how Node ends: version 20 sometimes crashes while it shuts
    # down, after a program that ran for long.
    output=$(node --no-warnings scripts/run-wasm.mjs "$program" --nocapture "$tests") || true
    if ! grep -q '^test result: ok\.' <<<"$output"; then
        printf '%s\n%s: the known answers fail on WebAssembly\n' "$output" "$package" >&2
        exit 1
    fi
    if [ "$(grep -c ' \.\.\. ok$' <<<"$output")" -lt "$count" ]; then
        printf '%s\n%s: expected %s known answers or more\n' "$output" "$package" "$count" >&2
        exit 1
    fi
    printf '%s: %s\n' "$package" "$(grep '^test result' <<<"$output")"
}

known_answers privet-kernels 5 keystream
known_answers privet-core 3
known_answers privet-schemes 12
known_answers privet-table 5
known_answers privet-wire 9
