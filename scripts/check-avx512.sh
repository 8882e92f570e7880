#!/usr/bin/env bash
# Checks the AVX-512 arms of the kernels: the kernels' tests on a processor with AVX-512. Where the
# machine has none, on one that Bochs emulates, about a hundred times slower, below Debian's kernel.
#   check-avx512.sh [FILTER...]
# runs the tests whose names contain a FILTER; without any, all that compare arms and end in time.
# PRIVET_EMULATOR_MINUTES limits the run on the emulated processor, to 30 if not set.
set -euo pipefail
cd "$(dirname "$0")/.."

export PRIVET_BEST_ARM=avx512
asked_arm=the_arm_asked_for_is_the_best

# As /proc/cpuinfo calls what `Arm::Avx512` needs. Only to choose the machine: the test of the name
# above decides.
machine_has_avx512() {
    local flags flag
    flags=$(grep -m 1 '^flags' /proc/cpuinfo) || return 1
    for flag in avx512f avx512bw avx512vl avx512vbmi avx512_vnni bmi2 gfni vaes vpclmulqdq; do
        grep -qw "$flag" <<<"$flags" || return 1
    done
}

# judge OUTPUT: the tests passed, and the AVX-512 arm was there.
judge() {
    if ! grep -q "^test .*::$asked_arm \.\.\. ok" "$1"; then
        echo "check-avx512.sh: the tests did not run with the AVX-512 arm" >&2
        exit 1
    fi
    if [ "$(grep -c '^test result: ok\.' "$1")" != "${#programs[@]}" ]; then
        echo "check-avx512.sh: the kernels' tests fail with AVX-512, or did not end" >&2
        exit 1
    fi
}

# Static, because the emulated machine has no libraries.
built=$(RUSTFLAGS='-C target-feature=+crt-static' cargo test --locked \
    --target x86_64-unknown-linux-gnu --package privet-kernels --package privet-laboratory-kernels \
    --lib --no-run --message-format json-render-diagnostics \
    | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p')
mapfile -t programs <<<"$built"

list() { for program in "${programs[@]}"; do "$program" --list "$@"; done; }

tests=("$@")
if [ "$#" != 0 ]; then
    if ! grep -q ': test$' <<<"$(list "$@")"; then
        echo "check-avx512.sh: no test has a name with one of: $*" >&2
        exit 1
    fi
    tests+=("$asked_arm")
fi

folder=${CARGO_TARGET_DIR:-target}/avx512
mkdir -p "$folder"
# One machine for each run.
run=$(mktemp -d "$folder/run.XXXXXX")
machine=
trap '[ -z "$machine" ] || kill "$machine" 2>/dev/null || true; rm -rf "$run"' EXIT

if machine_has_avx512; then
    echo "This machine has AVX-512: the tests run on it."
    for program in "${programs[@]}"; do
        "$program" "${tests[@]}"
    done | tee "$run/output"
    judge "$run/output"
    exit
fi

echo "This machine has no AVX-512: the tests run on an emulated processor."
./scripts/install-tools.sh --emulator

# Without a filter, not what has no arms, and not what takes minutes each.
if [ "$#" = 0 ]; then
    tests=(
        --skip tests::bls12_381::
        --skip tests::memory::
        --skip tests::selected_xor::any_number_of_selections_on_any_number_of_threads
        --skip tests::selected_xor::sums_are_exact_for_any_record_length_and_number
        --skip tests::strassen::a_large_product_goes_in_parts_and_is_exact
        --skip tests::strassen::products_in_parts_are_exact_at_the_edges
        --skip tests::subset_hints::cutoffs_outside_the_first_window_are_found
        --skip tests::subset_sums::many_blocks_are_summed_alike
    )
fi

the_kernel() { find "$folder" -path "$folder/kernel/boot/vmlinuz-*" -print -quit; }
kernel=$(the_kernel)
if [ -z "$kernel" ]; then
    package=$(apt-cache depends linux-image-cloud-amd64 | sed -n '0,/Depends:/s/.*Depends: *//p')
    if [ -z "$package" ]; then
        echo "check-avx512.sh: no package linux-image-cloud-amd64; apt-get update may help" >&2
        exit 1
    fi
    (cd "$run" && apt-get -o APT::Sandbox::User=root download -qq "$package")
    dpkg-deb -x "$run"/linux-image-*.deb "$run/kernel"
    rm -rf "$folder/kernel"
    mv "$run/kernel" "$folder/kernel"
    kernel=$(the_kernel)
fi

# All of the machine's files are in memory.
mkdir -p "$run"/root/{bin,dev,proc,sys,tmp} "$run"/disc/isolinux
cp /bin/busybox "$run/root/bin"
for number in "${!programs[@]}"; do
    strip -o "$run/root/tests-$number" "${programs[$number]}"
done
cat >"$run/root/init" <<GUEST
#!/bin/busybox sh
busybox=/bin/busybox
\$busybox mount -t proc proc /proc
\$busybox mount -t sysfs sysfs /sys
\$busybox mount -t devtmpfs devtmpfs /dev
for program in /tests-*; do
    PRIVET_BEST_ARM=$PRIVET_BEST_ARM \$program --test-threads 1 ${tests[*]@Q}
done
# Time for the serial line to send what is written.
\$busybox sleep 2
\$busybox poweroff -f
GUEST
chmod +x "$run/root/init"
(cd "$run/root" && find . | cpio --create --format newc --owner 0:0 --quiet) >"$run/disc/initrd"
cp "$kernel" "$run/disc/vmlinuz"
cp /usr/lib/ISOLINUX/isolinux.bin /usr/lib/syslinux/modules/bios/ldlinux.c32 "$run/disc/isolinux"

# What Linux must not use of this processor. Bochs 2.7 gives wrong sizes for protection keys and the
# compact form of XSAVE, and then Linux turns AVX-512 off. And where short moves of memory are fast
# (fsrm) and long ones are not, Linux's memmove runs past the end. The other options save time.
options=(
    console=ttyS0,115200n8 loglevel=3 panic=-1
    clearcpuid=pku,ospke,xsaves,xsavec,fsrm
    nokaslr mitigations=off tsc=reliable lpj=40000
    cryptomgr.notests initcall_blacklist=load_system_certificate_list
)
cat >"$run/disc/isolinux/isolinux.cfg" <<BOOT
DEFAULT tests
PROMPT 0
LABEL tests
 KERNEL /vmlinuz
 INITRD /initrd
 APPEND ${options[*]}
BOOT
xorriso -as mkisofs -quiet -o "$run/disc.iso" -b isolinux/isolinux.bin -c isolinux/boot.cat \
    -no-emul-boot -boot-load-size 4 -boot-info-table "$run/disc" 2>"$run/log" \
    || { cat "$run/log" >&2; exit 1; }

# Few instructions a second, so that waiting costs few.
cat >"$run/machine" <<MACHINE
cpu: model=corei7_icelake_u, ips=10000000
memory: guest=256, host=256
clock: sync=none
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/vgabios/vgabios.bin
ata0-master: type=cdrom, path=$run/disc.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=$run/serial
display_library: term
log: $run/log
panic: action=fatal
error: action=ignore
MACHINE
echo continue >"$run/commands"

touch "$run/serial"
# Bochs ignores a request to end.
TERM=linux timeout --kill-after=1s "${PRIVET_EMULATOR_MINUTES:-30}m" \
    bochs-bin -q -f "$run/machine" -rc "$run/commands" </dev/null >"$run/screen" 2>&1 &
machine=$!
# Bochs draws its screen into a terminal that it makes, and stops when nobody reads what is in it.
{
    screen=
    while [ -z "$screen" ]; do
        kill -0 "$machine" || exit 0
        sleep 0.2
        screen=$(sed -n 's/^Bochs connected to screen "\(.*\)"$/\1/p' "$run/screen")
    done
    stty raw -echo <"$screen" && cat "$screen" >/dev/null
} 2>/dev/null &
tail --pid="$machine" -n +1 -f "$run/serial"
wait "$machine" && status=0 || status=$?
machine=
if [ "$status" = 124 ] || [ "$status" = 137 ]; then
    echo "check-avx512.sh: ended after ${PRIVET_EMULATOR_MINUTES:-30} minutes" >&2
    exit 1
fi
if [ ! -s "$run/serial" ]; then
    echo "check-avx512.sh: the emulated machine did not start:" >&2
    tail -n 5 "$run/screen" >&2
    exit 1
fi
tr -d '\r' <"$run/serial" >"$run/output"
judge "$run/output"
