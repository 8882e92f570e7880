#!/usr/bin/env bash
# Builds the package for Python, and tests it in the oldest and the newest Python of this machine.
# They need to have `venv`; 3.10 is the oldest that the package supports.
set -euo pipefail
cd "$(dirname "$0")/.."

export CARGO_TARGET_DIR="$PWD/target"
work="$CARGO_TARGET_DIR/python"
most_bytes=$((25 << 20))

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

echo "tests of the package in: $oldest, $newest"
tests_need=(pytest pandas polars pyarrow duckdb nbclient nbformat ipykernel)
# What is downloaded comes while the compiler works.
(
    environment newest "$newest" "${tests_need[@]}" mypy pyright
    environment oldest "$oldest" "${tests_need[@]}"
) &
environments=$!

manifest="$PWD/bindings/python/Cargo.toml"
# As `make test` builds it: for one package alone, much would be built once more.
PRIVET_MANIFEST=$manifest cargo test --quiet --locked --workspace --test house_rules \
    licences_are_allowed
# What `pip wheel` would build, while its environment is made.
cargo build --quiet --release --locked --features pyo3/extension-module --manifest-path "$manifest"
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
    # Outside the sources, so that the installed package is tested.
    (cd "$work" && "$work/$name/bin/python" -m pytest -q -p no:cacheprovider \
        "$OLDPWD/bindings/python/tests")
done
cd "$work"
export PATH="$work/newest/bin:$PATH"
python -m mypy.stubtest privet._privet
pyright --ignoreexternal --verifytypes privet
