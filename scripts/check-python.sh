#!/usr/bin/env bash
# Tests the package for Python. They need a Python with `venv`; 3.10 is the oldest that it supports.
#   check-python.sh                builds the wheel, tests it in the oldest and the newest Python of
#                                  this machine, and checks its types
#   check-python.sh --environment  only gets what the next needs
#   check-python.sh --debug        tests what `cargo build --workspace --lib` built, in one Python
set -euo pipefail
cd "$(dirname "$0")/.."

target="$PWD/target"
work="$target/python"
tests="$PWD/bindings/python/tests"
most_bytes=$((25 << 20))
tests_need=(pytest pandas polars pyarrow duckdb nbclient nbformat ipykernel)

# Prints the version of each Python that will do, with its path, the oldest first.
pythons() {
    local candidates=("${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3) version
    for version in "" 10 11 12 13 14 15; do
        candidates+=("$(command -v "python3${version:+.$version}" || true)")
    done
    for python in "${candidates[@]}"; do
        "$python" -c 'import ensurepip, sys
if sys.version_info >= (3, 10): print("%d.%d" % sys.version_info[:2], sys.executable)' \
            2>/dev/null || true
    done | sort -V -u
}

found=$(pythons)
if [ -z "$found" ]; then
    echo "The package for Python needs Python 3.10 or later with venv (on Debian: python3-venv)." >&2
    exit 1
fi
oldest=$(head -1 <<<"$found" | cut -d' ' -f2-)
newest=$(tail -1 <<<"$found" | cut -d' ' -f2-)

# environment NAME PYTHON PACKAGE…: a virtual environment with these packages.
environment() {
    local name=$1 python=$2
    shift 2
    "$python" -m venv --clear "$work/$name"
    "$work/$name/bin/pip" install --quiet --disable-pip-version-check "$@"
}

# run_tests NAME: runs them in the environment, outside the sources, so that what is installed is
# tested.
run_tests() {
    (cd "$work" && "$work/$1/bin/python" -m pytest -q -p no:cacheprovider "$tests")
}

case "${1:-}" in
    --environment)
        environment debug "$newest" --no-compile "${tests_need[@]}" 'maturin>=1.9,<2'
        exit
        ;;
    --debug)
        # What a wheel would install. Maturin itself would build all crates once more, for this
        # package alone.
        export PYTHONPATH=$work/installed
        rm -rf "$PYTHONPATH"
        cp -r bindings/python/python "$PYTHONPATH"
        cp "$target/debug/lib_privet.so" "$PYTHONPATH/privet/_privet.abi3.so"
        (cd bindings/python && "$work/debug/bin/maturin" pep517 write-dist-info \
            --metadata-directory "$PYTHONPATH" >/dev/null)
        run_tests debug
        exit
        ;;
esac

echo "tests of the package in: $oldest, $newest"
# What is downloaded comes while the compiler works.
(
    environment newest "$newest" "${tests_need[@]}" mypy pyright
    environment oldest "$oldest" "${tests_need[@]}"
) &
environments=$!

# What `pip wheel` would build, while its environment is made.
cargo build --quiet --release --locked --package privet-python
wait "$environments"
rm -rf "$work/wheels"
"$work/newest/bin/pip" wheel --quiet --disable-pip-version-check --no-deps \
    --wheel-dir "$work/wheels" bindings/python
wheel=$(ls "$work/wheels"/privet-*.whl)
bytes=$(stat -c %s "$wheel")
echo "$(basename "$wheel"): $bytes bytes"
if [ "$bytes" -gt "$most_bytes" ]; then
    echo "The wheel is larger than $most_bytes bytes." >&2
    exit 1
fi

for name in oldest newest; do
    "$work/$name/bin/pip" install --quiet --disable-pip-version-check "$wheel"
    run_tests "$name"
done
cd "$work"
export PATH="$work/newest/bin:$PATH"
python -m mypy.stubtest privet._privet
pyright --ignoreexternal --verifytypes privet
