#!/usr/bin/env bash
# The Debian package index as a privately readable table: convert, build, serve under each scheme, look up from a second process, and compare every field.
# Run from anywhere, after `cargo build --release -p privet -p debian-packages`; `make example` does both. Needs Debian's apt.
# PRIVET_PROGRAMS names another folder of the two programs. `run.sh lookups` and `run.sh changes` run
# one half: tables that stay as they are, and one that changes.
set -euo pipefail
cd "$(dirname "$0")/../.."

programs=$PWD/${PRIVET_PROGRAMS:-target/release}
privet=$programs/privet
packages=$programs/debian-packages
work=$(mktemp -d)
servers=()
cleanup() {
    for server in "${servers[@]}"; do kill "$server" 2>/dev/null && wait "$server" || true; done
    rm -rf "$work"
}
trap cleanup EXIT

# Serves a table under a scheme: serve TABLE SCHEME [NAME [OPTION...]]. Leaves the address in $url.
serve() {
    local name=${3:-$2} more=("${@:4}")
    if [ "$2" = tapir-pp ]; then more+=(--reference-string "$work/reference-string"); fi
    : >"$work/$name.out"
    "$privet" serve "$work/$1.privet" --scheme "$2" "${more[@]}" --listen 127.0.0.1:0 --cache "$work/cache" >"$work/$name.out" 2>"$work/$name.log" &
    servers+=($!)
    url=
    for _ in $(seq 1200); do
        url=$(sed -n 's/.*\(http:\/\/[0-9.:]*\).*/\1/p' "$work/$name.out" | head -n 1)
        if [ -n "$url" ]; then break; fi
        kill -0 "${servers[-1]}" 2>/dev/null || { cat "$work/$name.log" >&2; exit 1; }
        sleep 0.1
    done
    if [ -z "$url" ]; then echo "the server does not get ready" >&2; cat "$work/$name.log" >&2; exit 1; fi
    cat "$work/$name.out"
}

echo "-- the index, as JSON Lines"
apt-cache dumpavail | "$packages" convert >"$work/packages.jsonl"
wc -l <"$work/packages.jsonl" | sed 's/$/ packages/'

for half in ${*:-lookups changes}; do
    . "examples/debian-packages/$half.sh"
done
