#!/usr/bin/env bash
# Measures how long lookups of pages in Chromium take over a line of 20 Mbit/s and 20 ms each way,
# checks every record, and writes a table in Markdown. Nothing else should run meanwhile.
#   measure-web.sh [--quick] [--rounds N] [--out FILE] [ROW…]
#   ROW       cold, warm, dpf, apir-dpf, singlepass, tapir-mt, simplepir or size; default: all
#   --rounds  how many lookups a median is of; default: 20
#   --out     where the table goes; default: target/measure-web.md
#   --quick   small tables and two rounds, to see that all this works
# Needs Linux, root and /dev/net/tun for the line, which are two namespaces of the network with real
# TCP between them; and Chromium, Caddy, OpenSSL and Python. Takes about 15 minutes, 3 GiB in TMPDIR
# and 4 GiB of memory. PRIVET says where the command `privet` is; without it, one is built.
set -euo pipefail
cd "$(dirname "$0")/.."

refuse() { echo "measure-web: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || refuse "namespaces of the network need root"
[ -c /dev/net/tun ] || refuse "there is no /dev/net/tun (modprobe tun)"
for program in ip python3 openssl caddy node; do
    command -v "$program" >/dev/null || refuse "needs the program $program"
done
CHROMIUM=${CHROMIUM:-/usr/bin/chromium-headless-shell}
[ -x "$CHROMIUM" ] || refuse "there is no $CHROMIUM; CHROMIUM says where one is"

if [ ! -d bindings/web/package/dist ]; then ./scripts/check-web.sh --build; fi
if [ -z "${PRIVET:-}" ]; then
    cargo build --quiet --release --locked --package privet
    PRIVET=target/release/privet
fi

PRIVET=$(realpath "$PRIVET")
NEAR=privet-near-$$ FAR=privet-far-$$
FOLDER=$(mktemp -d -t privet-measure-web-XXXXXX)
export PRIVET FAR FOLDER

line='' run=''
leave() {
    # Also what runs in the namespaces was started here.
    kill $run $line $(ip netns pids "$NEAR") $(ip netns pids "$FAR") || true
    ip netns del "$NEAR" || true
    ip netns del "$FAR" || true
    wait
    rm -rf "$FOLDER"
}
trap 'leave 2>/dev/null' EXIT
trap 'exit 1' INT TERM

ip netns add "$NEAR" && ip netns add "$FAR" && ip netns exec "$NEAR" true ||
    refuse "here, root may make no namespaces of the network; in a container, it needs SYS_ADMIN"
exec {said}< <(exec python3 bindings/web/package/measure/line.py "$NEAR" "$FAR" 20 20)
line=$!
read -r -u "$said" || refuse "the line cannot be made"
printf '#!/bin/sh\nexec ip netns exec %s %s "$@"\n' "$NEAR" "$CHROMIUM" >"$FOLDER/browser"
chmod +x "$FOLDER/browser"

node bindings/web/package/measure/run.mjs "$@" &
run=$!
wait "$run"
