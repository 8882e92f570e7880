#!/usr/bin/env bash
# The Debian package index as a privately readable table: convert, build, serve, look up from a second process, and compare every field.
# Run from anywhere, after `cargo build --release -p privet -p debian-packages`; `make example` does both. Needs Debian's apt.
set -euo pipefail
cd "$(dirname "$0")/../.."

privet=$PWD/target/release/privet
packages=$PWD/target/release/debian-packages
work=$(mktemp -d)
server=
cleanup() {
    if [ -n "$server" ]; then kill "$server" 2>/dev/null && wait "$server" || true; fi
    rm -rf "$work"
}
trap cleanup EXIT

echo "-- the index, as JSON Lines"
apt-cache dumpavail | "$packages" convert >"$work/packages.jsonl"
wc -l <"$work/packages.jsonl" | sed 's/$/ packages/'

echo "-- the table"
time "$privet" build "$work/packages.jsonl" --key Package -o "$work/packages.privet"
"$privet" inspect "$work/packages.privet" --verify

echo "-- the server"
"$privet" serve "$work/packages.privet" --listen 127.0.0.1:0 --cache "$work/cache" >"$work/server.out" 2>"$work/server.log" &
server=$!
for _ in $(seq 1200); do
    url=$(sed -n 's/.*\(http:\/\/[0-9.:]*\).*/\1/p' "$work/server.out" | head -n 1)
    if [ -n "$url" ]; then break; fi
    kill -0 "$server" 2>/dev/null || { cat "$work/server.log" >&2; exit 1; }
    sleep 0.1
done
echo "serving at $url"

echo "-- names that are there: the first, the last, those with the longest values, and others in between"
"$packages" choose 330 <"$work/packages.jsonl" >"$work/names"
time "$privet" get "$url" --state "$work/state" --keys-from "$work/names" --json >"$work/found.jsonl"
"$packages" compare "$work/packages.jsonl" "$work/names" <"$work/found.jsonl"

echo "-- names that are not"
for name in no-such-package openssl-- "" Ünïcode; do
    status=0
    "$privet" get "$url" --state "$work/state" --key "$name" >/dev/null 2>&1 || status=$?
    if [ "$status" != 1 ]; then echo "a miss must end with exit code 1, not $status: '$name'" >&2; exit 1; fi
done
echo "misses are misses"

echo "-- one lookup with the hint ready, in a new process"
time "$privet" get "$url" --state "$work/state" --key openssl
