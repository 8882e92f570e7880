#!/usr/bin/env bash
# The Debian package index as a privately readable table: convert, build, serve under each scheme, look up from a second process, and compare every field.
# Run from anywhere, after `cargo build --release -p privet -p debian-packages`; `make example` does both. Needs Debian's apt.
set -euo pipefail
cd "$(dirname "$0")/../.."

privet=$PWD/target/release/privet
packages=$PWD/target/release/debian-packages
work=$(mktemp -d)
servers=()
cleanup() {
    for server in "${servers[@]}"; do kill "$server" 2>/dev/null && wait "$server" || true; done
    rm -rf "$work"
}
trap cleanup EXIT

# Serves the table under a scheme; leaves the address in $url.
serve() {
    "$privet" serve "$work/packages.privet" --scheme "$1" --listen 127.0.0.1:0 --cache "$work/cache" >"$work/$1.out" 2>"$work/$1.log" &
    servers+=($!)
    for _ in $(seq 1200); do
        url=$(sed -n 's/.*\(http:\/\/[0-9.:]*\).*/\1/p' "$work/$1.out" | head -n 1)
        if [ -n "$url" ]; then break; fi
        kill -0 "${servers[-1]}" 2>/dev/null || { cat "$work/$1.log" >&2; exit 1; }
        sleep 0.1
    done
    cat "$work/$1.out"
}

echo "-- the index, as JSON Lines"
apt-cache dumpavail | "$packages" convert >"$work/packages.jsonl"
wc -l <"$work/packages.jsonl" | sed 's/$/ packages/'
"$packages" choose 330 <"$work/packages.jsonl" >"$work/names"

echo "-- the table"
time "$privet" build "$work/packages.jsonl" --key Package -o "$work/packages.privet"
"$privet" inspect "$work/packages.privet" --verify

# Both servers have the same table file, and the clients of both the same state directory.
for scheme in simplepir dummy-subsets; do
    echo
    echo "== $scheme"
    serve "$scheme"

    echo "-- names that are there: the first, the last, those with the longest values, and others in between"
    time "$privet" get "$url" --state "$work/state" --keys-from "$work/names" --json --verbose >"$work/found.jsonl"
    "$packages" compare "$work/packages.jsonl" "$work/names" <"$work/found.jsonl"

    echo "-- names that are not"
    for name in no-such-package openssl-- "" Ünïcode; do
        status=0
        "$privet" get "$url" --state "$work/state" --key "$name" >/dev/null 2>&1 || status=$?
        if [ "$status" != 1 ]; then echo "a miss must end with exit code 1, not $status: '$name'" >&2; exit 1; fi
    done
    echo "misses are misses"

    echo "-- one lookup with the hints ready, in a new process"
    time "$privet" get "$url" --state "$work/state" --key openssl
done
