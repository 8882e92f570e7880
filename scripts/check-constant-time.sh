#!/usr/bin/env bash
# Checks, on the compiled program, that no branch and no address of the client depends on a secret
# before a query is sent: crates/table/examples/constant_time under valgrind.
set -euo pipefail
cd "$(dirname "$0")/.."

./scripts/install-tools.sh --valgrind

# Memcheck reports each such branch and address with the calls that led there; the program counts them.
memcheck=(
    valgrind --tool=memcheck --quiet --leak-check=no --error-limit=no --num-callers=24
    --expensive-definedness-checks=yes --read-inline-info=yes
)

# As compiled for users, with the lines that reports name; and without `files`, of which a client has
# no need.
CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="${memcheck[*]}" \
CARGO_PROFILE_RELEASE_DEBUG=line-tables-only cargo run --release --locked \
    --package privet-table --no-default-features --features taint --example constant_time
