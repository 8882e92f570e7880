# The second half of run.sh: a table that changes while it is served.

echo
echo "== a table that changes"
echo "-- the release as it was published is the base; what the archive has published since is an update"
lists=(/var/lib/apt/lists/*_dists_*_main_binary-*_Packages*)
base=
for list in "${lists[@]}"; do
    case "$list" in *-security_* | *-updates_* | *-backports*) ;; *) base=$list ;; esac
done
# The archive lists some packages in two versions; the later one stands for both.
/usr/lib/apt/apt-helper cat-file "$base" | "$packages" convert | tac |
    awk '{ split($0, rest, "\"Package\":\""); split(rest[2], name, "\""); if (!seen[name[1]]++) print }' | tac >"$work/base.jsonl"
sort "$work/base.jsonl" >"$work/base.sorted"
sort "$work/packages.jsonl" | comm -13 "$work/base.sorted" - >"$work/changed.jsonl"
"$packages" names <"$work/packages.jsonl" | sort -u >"$work/now"
"$packages" names <"$work/base.jsonl" | sort -u | comm -23 - "$work/now" >"$work/gone"
echo "$(wc -l <"$work/base.jsonl") packages; $(wc -l <"$work/changed.jsonl") are new or have changed since, $(wc -l <"$work/gone") are gone"
if [ "$(wc -l <"$work/changed.jsonl")" -lt 60 ]; then echo "the archive has published too little since; nothing to show"; exit 0; fi
{
    "$packages" choose 30 <"$work/changed.jsonl"
    "$packages" choose 30 <"$work/packages.jsonl"
} | sort -u >"$work/living.jsonl"
"$packages" names <"$work/living.jsonl" >"$work/living.names"

"$privet" keygen -o "$work/publisher.key"
"$privet" build "$work/base.jsonl" --key Package --key-map cuckoo --parts 4 --publisher-key "$work/publisher.key" -o "$work/living.privet"
declare -A addresses
logs=()
for scheme in simplepir simplepir-packed dummy-subsets harmony piano singlepass tapir-mt download; do
    serve living "$scheme" "living-$scheme"
    addresses[$scheme]=$url
    logs+=("$work/living-$scheme.log")
    case "$scheme" in singlepass | tapir-mt)
        serve living "$scheme" "living-$scheme-second"
        addresses[$scheme]+=" $url"
        logs+=("$work/living-$scheme-second.log")
        ;;
    esac
    # The addresses are words on purpose.
    "$privet" get ${addresses[$scheme]} --state "$work/living-state" --key bash >/dev/null
done
echo "-- every client has prepared for the base. The update, while the servers are running:"
time "$privet" update "$work/living.privet" --publisher-key "$work/publisher.key" --from "$work/changed.jsonl" --delete-from "$work/gone"
for log in "${logs[@]}"; do
    for _ in $(seq 600); do
        if grep -q "table updated" "$log"; then break; fi
        sleep 0.1
    done
    grep "table updated" "$log" | tail -n 1
done
for scheme in "${!addresses[@]}"; do
    echo "-- $scheme: the client that has the base follows; another starts over"
    "$privet" get ${addresses[$scheme]} --state "$work/living-state" --keys-from "$work/living.names" --json --verbose >"$work/found.jsonl" 2>"$work/said"
    grep -E "was updated|ready after" "$work/said"
    "$packages" compare "$work/living.jsonl" <"$work/found.jsonl"
    "$privet" get ${addresses[$scheme]} --state "$work/fresh-state-$scheme" --key bash --verbose 2>&1 >/dev/null | grep "ready after"
done
