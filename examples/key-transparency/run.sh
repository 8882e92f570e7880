#!/usr/bin/env bash
# Key transparency: a directory of public keys on two servers, of which one may lie. The story has a
# publisher, two operators, friends who look keys up, an owner who watches a key, and attackers.
# Every claim is checked; the first that does not hold ends the script with an error. Run from
# anywhere, after `cargo build --release -p privet -p key-transparency`; `make key-transparency`
# does both.
set -euo pipefail
cd "$(dirname "$0")/../.."

programs=$PWD/${PRIVET_PROGRAMS:-target/release}
privet=$programs/privet
messenger=$programs/key-transparency
work=$(mktemp -d)
declare -A address process updates
processes=()
cleanup() {
    for id in "${processes[@]}"; do kill "$id" 2>/dev/null && wait "$id" || true; done
    rm -rf "$work"
}
trap cleanup EXIT

say() { printf '\n== %s\n' "$*"; }
fail() { echo "this claim does not hold: $*" >&2; exit 1; }

# until_said FILE WORDS COUNT PROCESS: waits until COUNT lines of FILE have WORDS.
until_said() {
    for _ in $(seq 600); do
        if [ "$(grep -c "$2" "$1")" -ge "$3" ]; then return; fi
        kill -0 "$4" 2>/dev/null || break
        sleep 0.05
    done
    cat "$1" >&2
    fail "\"$2\" is said $3 times"
}

# start NAME COMMAND...: starts what announces an address, and leaves it in ${address[NAME]}.
start() {
    # An operator who starts again must not be taken for ready by what was said the last time.
    : >"$work/$1.said"
    : >"$work/$1.log"
    "${@:2}" >"$work/$1.said" 2>"$work/$1.log" &
    process[$1]=$! updates[$1]=0
    processes+=($!)
    until_said "$work/$1.said" "listening at" 1 $!
    address[$1]=$(sed -n 's/.*listening at //p' "$work/$1.said")
}

# serve NAME FOLDER [PORT]: an operator serves the directory in a folder. In earnest the earlier
# epoch stays for ten minutes (--grace), for clients that come between one server and the other.
serve() {
    start "$1" "$privet" serve "$work/$2/directory.privet" --scheme tapir-mt \
        --listen "127.0.0.1:${3:-0}" --watch 0 --grace 0 --no-cache
}

# swap NAME FOLDER: the same operator, at the same address, now serves what is in another folder.
swap() {
    kill "${process[$1]}" && wait "${process[$1]}" || true
    serve "$1" "$2" "${address[$1]##*:}"
}

# publish FOLDER CHANGE...: the publisher signs the next epoch of the directory in a folder.
publish() {
    "$privet" update "$work/$1/directory.privet" --publisher-key "$work/publisher.key" "${@:2}"
}

# deliver NAME: the publisher's log goes to an operator, and the server follows it.
deliver() {
    cp "$work/publisher/directory.privet.updates" "$work/$1/new"
    mv "$work/$1/new" "$work/$1/directory.privet.updates"
    updates[$1]=$((updates[$1] + 1))
    kill -HUP "${process[$1]}"
    until_said "$work/$1.log" "table updated" "${updates[$1]}" "${process[$1]}"
}

# as CLIENT COMMAND...: runs the messenger of a client, with what the client has seen before.
as() {
    "$messenger" "${@:2}" --server "${address[one]}" --server "${address[two]}" \
        --publisher "$publisher" --state "$work/state-of-$1"
}

# expect CODE WORDS COMMAND...: runs a command, shows what it says, and checks its end and words.
expect() {
    local code=0
    "${@:3}" >"$work/said" 2>&1 || code=$?
    sed 's/^/    /' "$work/said"
    if [ "$code" != "$1" ]; then fail "the exit code is $1; it was $code"; fi
    grep -qF -- "$2" "$work/said" || fail "it says \"$2\""
}

# number NAME: the number before these words in what was said last.
number() { sed -n "s/.*[^0-9]\([0-9]\+\) $1.*/\1/p" "$work/said"; }

key() { "$messenger" key "$1" --rotations "${2:-0}"; }
mallorys=$(key mallory)

say "a publisher makes the directory of 10,000 users, and names itself in it"
mkdir "$work/publisher"
"$privet" keygen -o "$work/publisher.key" >"$work/said"
publisher=$(grep -oE '[0-9a-f]{64}' "$work/said")
"$messenger" people 10000 >"$work/people.csv"
"$privet" build "$work/people.csv" --key user --raw-value key --key-map cuckoo \
    --publisher-key "$work/publisher.key" -o "$work/publisher/directory.privet"
for operator in one two; do cp -r "$work/publisher" "$work/$operator"; done

say "two operators serve it"
for operator in one two; do
    serve "$operator" "$operator"
    cat "$work/$operator.said"
done

say "Alice looks Bob up; her first visit streams the directory, and makes secret hints from it"
expect 0 "$(key bob)" as alice look-up bob
first=$(number "bytes received first")

say "her later lookups are small; of a friend, of herself and of nobody, they look alike"
lookups=
for user in bob alice nobody; do
    code=0 && [ "$user" != nobody ] || code=1
    expect "$code" "$user" as alice look-up "$user"
    lookups+="$(number "bytes sent") $(number "received for each lookup")"$'\n'
done
if [ "$(sort -u <<<"$lookups" | grep -c .)" != 1 ]; then fail "all lookups have one length"; fi

say "Bob watches his own key"
"$messenger" own ask-for "$work/bob.json" bob "$(key bob)"
expect 0 "epoch 0: the key that bob asked for is published" as bob own check "$work/bob.json"

say "epoch 1: Bob rotates his key, Zoe registers, Carol leaves"
"$messenger" own ask-for "$work/bob.json" bob "$(key bob 1)"
expect 0 "is not published yet" as bob own check "$work/bob.json"
publish publisher --set "bob=$(key bob 1)" --set "zoe=$(key zoe)" --delete carol
for operator in one two; do deliver "$operator"; done
expect 0 "epoch 1: the key that bob asked for is published" as bob own check "$work/bob.json"
expect 1 "$(key zoe)" as alice look-up bob zoe carol
grep -qF "$(key bob 1)" "$work/said" || fail "Alice sees Bob's new key"
grep -q "carol.not found" "$work/said" || fail "Carol is gone"
grep -qF "followed from epoch 0 to 1" "$work/said" || fail "Alice's hints are patched"
if [ "$(($(number "bytes received first") * 10))" -gt "$first" ]; then
    fail "to follow takes less than a tenth of what it takes to begin"
fi

say "epoch 2: 500 users rotate their keys, and nobody else is troubled"
{
    echo "user,key"
    for number in $(seq 1000 1499); do echo "user-$number,$(key "user-$number" 1)"; done
} >"$work/rotated.csv"
publish publisher --from "$work/rotated.csv"
for operator in one two; do deliver "$operator"; done
expect 0 "epoch 2: the key of bob is what it was" as bob own check "$work/bob.json"
expect 0 "$(key user-1234 1)" as alice look-up bob user-1234

say "ATTACK: the second server holds epoch 3 back, in which another user rotates"
publish publisher --set "user-7=$(key user-7 1)" >"$work/said"
deliver one
expect 4 "the second server has version 2 of table directory, the first server has version 3" \
    as alice look-up bob
echo "-- it may have been late: nothing was asked, so Alice tries again when it has caught up"
deliver two
expect 0 "epoch 3" as alice look-up bob
expect 0 "epoch 3: the key of bob is what it was" as bob own check "$work/bob.json"

say "ATTACK: Mallory forges a directory with another key for Bob, and signs it herself"
mkdir "$work/forged"
cp "$work/two/directory.privet" "$work/forged"
"$privet" keygen -o "$work/mallory.key" >"$work/said"
"$privet" update "$work/forged/directory.privet" --publisher-key "$work/mallory.key" \
    --begin-history >"$work/said"
for epoch in 1 2 3 4; do
    "$privet" update "$work/forged/directory.privet" --publisher-key "$work/mallory.key" \
        --set "bob=$mallorys" --set "user-7=$(key user-7 "$epoch")" >"$work/said"
done
swap two forged
expect 4 "the second server says that table directory is published by" as alice look-up bob
echo "-- not even both servers together can show it, neither to Alice nor to somebody new"
swap one forged
expect 4 "the first server says that table directory is published by" as alice look-up bob
expect 4 "the first server says that table directory is published by" as dave look-up bob

say "ATTACK: the publisher signs two histories of epoch 4, and each server shows one of them"
cp -r "$work/publisher" "$work/fork"
publish fork --set "bob=$mallorys" >"$work/said"
publish publisher --set "user-7=$(key user-7 2)" >"$work/said"
swap one one
deliver one
swap two fork
expect 4 "the second server has other contents of table directory than the first server" \
    as alice look-up bob
grep -qF "under the same version, 4;" "$work/said" || fail "the error names the epoch"

say "ATTACK: they cover it up; in epoch 5 both histories have the same keys again"
publish fork --set "bob=$(key bob 1)" >"$work/said"
publish publisher --set "user-7=$(key user-7 1)" >"$work/said"
deliver one
swap two fork
expect 4 "the servers tell different updates of the same table" as alice look-up bob
grep -qF "differ first in version 4" "$work/said" || fail "the error names the epoch"
echo "-- that proves a lie, so it is the end of Alice's hints, whatever the servers say from now on"
swap two two
deliver two
expect 4 "the servers tell different updates of the same table" as alice look-up bob
echo "-- she asks the operators, and begins anew"
"$privet" state reset "$work/state-of-alice" --yes
expect 0 "$(key bob 1)" as alice look-up bob
expect 0 "epoch 5: the key of bob is what it was" as bob own check "$work/bob.json"

say "ATTACK: the second server changes one bit of its answers"
honest=${address[two]}
start liar "$messenger" lie "$honest"
address[two]=${address[liar]}
expect 4 "the second server's answer does not belong to the table" as dave look-up bob
echo "-- Dave asks nothing any more, so the liar has learnt nothing, and has no second try"
expect 4 "the second server's answer does not belong to the table" as dave look-up bob
address[two]=$honest

say "ATTACK: publisher and both servers agree on another key for Bob, in epoch 6"
publish publisher --set "bob=$mallorys" >"$work/said"
for operator in one two; do deliver "$operator"; done
expect 0 "$mallorys" as alice look-up bob
echo "-- Alice has Mallory's key, and cannot know. Bob can:"
expect 1 "ALARM: the key of bob was changed in epoch 6, and bob did not ask for that" \
    as bob own check "$work/bob.json"

say "all claims hold"
