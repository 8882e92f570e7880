#!/usr/bin/env bash
# Checks, on the compiled program, that no branch and no address of the client depends on a secret
# before a query is sent: crates/table/tests/constant_time under valgrind.
set -euo pipefail
cd "$(dirname "$0")/.."

./scripts/install-tools.sh --valgrind

# Memcheck reports each such branch and address with the calls that led there; the program counts them.
memcheck=(
    valgrind --tool=memcheck --quiet --leak-check=no --error-limit=no --num-callers=24
    --expensive-definedness-checks=yes --read-inline-info=yes
)

# As compiled for users; and without `files`, of which a client has no need.
CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="${memcheck[*]}" cargo test --release --locked \
    --package privet-table --no-default-features --features taint --test constant_time
