# The first half of run.sh: every scheme, on tables that stay as they are.

"$packages" choose 330 <"$work/packages.jsonl" >"$work/chosen.jsonl"
"$packages" names <"$work/chosen.jsonl" >"$work/names"

echo "-- the table"
time "$privet" build "$work/packages.jsonl" --key Package -o "$work/packages.privet"
"$privet" inspect "$work/packages.privet" --verify

echo "-- a reference string for tapir-pp; in earnest somebody makes it whom all clients trust"
time "$privet" setup pointproofs --size 2048 -o "$work/reference-string"

# All servers have the same table file, and all clients the same state directory.
for scheme in simplepir simplepir-packed dpf dummy-subsets dummy-subsets-two harmony piano piano-all-parities singlepass tapir-mt tapir-pp apir-dpf apir-matrix-mt download; do
    echo
    echo "== $scheme"
    serve packages "$scheme"
    urls=("$url")
    case "$scheme" in dpf | dummy-subsets-two | singlepass | tapir-* | apir-*)
        serve packages "$scheme" "$scheme-second"
        urls+=("$url")
        ;;
    esac

    echo "-- names that are there: the first, the last, those with the longest values, and others in between"
    time "$privet" get "${urls[@]}" --state "$work/state" --keys-from "$work/names" --json --verbose >"$work/found.jsonl"
    "$packages" compare "$work/chosen.jsonl" <"$work/found.jsonl"

    echo "-- names that are not"
    for name in no-such-package openssl-- "" Ünïcode; do
        status=0
        "$privet" get "${urls[@]}" --state "$work/state" --key "$name" >/dev/null 2>&1 || status=$?
        if [ "$status" != 1 ]; then echo "a miss must end with exit code 1, not $status: '$name'" >&2; exit 1; fi
    done
    echo "misses are misses"

    echo "-- one lookup with everything ready, in a new process"
    time "$privet" get "${urls[@]}" --state "$work/state" --key openssl
done

echo
echo "== a server that lies: it says that it has the same table, and the last byte of its copy is another"
cp "$work/packages.privet" "$work/wrong.privet"
last=$(tail -c 1 "$work/wrong.privet" | od -An -tu1)
printf "\\x$(printf %x $((last ^ 1)))" | dd of="$work/wrong.privet" bs=1 seek=$(($(stat -c %s "$work/wrong.privet") - 1)) conv=notrunc status=none
mkdir "$work/liar"
mv "$work/wrong.privet" "$work/liar/packages.privet"
serve packages apir-dpf honest
urls=("$url")
serve liar/packages apir-dpf liar --skip-verification
urls+=("$url")
status=0
"$privet" get "${urls[@]}" --state "$work/state" --key openssl 2>"$work/refusal" || status=$?
if [ "$status" != 4 ]; then echo "a lie must end with exit code 4, not $status" >&2; exit 1; fi
cat "$work/refusal"

echo
echo "== doublepir"
echo "-- its hint has 16 MiB for each byte of a record, so this table is refused"
status=0
timeout 60 "$privet" serve "$work/packages.privet" --scheme doublepir --listen 127.0.0.1:0 --no-cache >/dev/null 2>"$work/refusal" || status=$?
if [ "$status" != 2 ]; then echo "a refusal must end with exit code 2, not $status" >&2; exit 1; fi
grep "16 MiB for each byte of a record" "$work/refusal"

echo "-- one byte for each package: the first letter of its section, by the package's number"
sed -n 's/.*"Section":"\([a-z]\)[^"]*".*/{"section":"\1"}/; t found; s/.*/{"section":"-"}/; :found; p' "$work/packages.jsonl" >"$work/sections.jsonl"
"$privet" build "$work/sections.jsonl" --raw-value section -o "$work/sections.privet"
serve sections doublepir
rows=$(wc -l <"$work/sections.jsonl")
wanted=()
for part in 0 1 2 3 4 5 6 7; do wanted+=(--index $(((rows - 1) * part / 7))); done
time "$privet" get "$url" --state "$work/state" "${wanted[@]}" --raw >"$work/letters"
for part in 0 1 2 3 4 5 6 7; do
    sed -n "$(((rows - 1) * part / 7 + 1))s/{\"section\":\"\(.\)\"}/\1/p" "$work/sections.jsonl"
done | diff - "$work/letters"
echo "8 of $rows letters came back, and are right"

# Compares what the servers at all addresses in ${urls[@]} say about the chosen rows with the input: same_letters FILE.
same_letters() {
    time "$privet" get "${urls[@]}" --state "$work/state" "${wanted[@]}" --raw >"$work/letters"
    for part in 0 1 2 3 4 5 6 7; do
        sed -n "$(((rows - 1) * part / 7 + 1))s/{\"section\":\"\(.\)\"}/\1/p" "$1"
    done | diff - "$work/letters"
    echo "8 of $rows letters came back, and are right"
}

echo
echo "== finite-differences"
echo "-- the same letters, of two servers that read some thousand places of a larger table, which is computed once into a file for both"
"$privet" tradeoff --records "$rows" --record-len 1
"$privet" setup points "$work/sections.privet" --scheme finite-differences -o "$work/sections.points"
urls=()
for server in memory mapped; do
    points=(--points "$work/sections.points")
    if [ "$server" = mapped ]; then points+=(--mapped); fi
    serve sections auto "finite-differences-$server" "${points[@]}"
    urls+=("$url")
done
same_letters "$work/sections.jsonl"

echo "-- single bits: whether a package belongs to the libraries"
sed 's/{"section":"l"}/{"library":"1"}/; t; s/.*/{"library":"0"}/' "$work/sections.jsonl" >"$work/libraries.jsonl"
"$privet" build "$work/libraries.jsonl" --raw-value library -o "$work/libraries.privet"
urls=()
for server in first second; do
    serve libraries finite-differences "libraries-$server" --one-bit --digits
    urls+=("$url")
done
"$privet" get "${urls[@]}" --state "$work/state" "${wanted[@]}" --raw >"$work/bits"
for part in 0 1 2 3 4 5 6 7; do
    sed -n "$(((rows - 1) * part / 7 + 1))s/{\"library\":\"\(.\)\"}/\1/p" "$work/libraries.jsonl"
done | diff - "$work/bits"
echo "8 of $rows bits came back, and are right"

echo
echo "== finite-differences-many"
echo "-- four servers, for the first 400 packages: it is for small tables"
head -n 400 "$work/sections.jsonl" >"$work/few.jsonl"
"$privet" build "$work/few.jsonl" --raw-value section -o "$work/few.privet"
rows=400
wanted=()
for part in 0 1 2 3 4 5 6 7; do wanted+=(--index $(((rows - 1) * part / 7))); done
urls=()
for server in 1 2 3 4; do
    serve few finite-differences-many "many-$server" --servers 4
    urls+=("$url")
done
same_letters "$work/few.jsonl"
