#!/usr/bin/env bash
# Builds the client for the web, and its npm package, and tests both. Needs Node 20 or later with
# npm. Tests in a browser need Chromium (on Debian: chromium-headless-shell).
#   check-web.sh          builds and tests
#   check-web.sh --build  builds only
#   check-web.sh --debug  builds one program for both sizes, sooner, and tests that
#   check-web.sh --sizes  prints how large the programs are: with all schemes, and with few
# PRIVET_PROGRAMS says where the command is that serves; without it, one is built.
set -euo pipefail
cd "$(dirname "$0")/.."

target="$PWD/target"
package="$PWD/bindings/web/package"
wasm="$package/src/wasm"

if ! node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' 2>/dev/null; then
    echo "The package for the web needs Node 20 or later, with npm, from nodejs.org." >&2
    exit 1
fi
npm ci --prefix "$package" --ignore-scripts --silent
PATH="$package/node_modules/.bin:$PATH"

# Vectors are in what every browser of the last three years takes, and in Node 20. A program
# verifies few signatures, so small code for their hashes suffices.
export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS="-C target-feature=+simd128 \
    --cfg sha2_backend=\"soft\" --cfg sha2_backend_soft=\"compact\""

# compile NAME PROFILE FEATURES: the program in WebAssembly and its glue, in target/web/NAME.
compile() {
    cargo build --quiet --locked --profile "$2" --package privet-web \
        --target wasm32-unknown-unknown --no-default-features --features "$3"
    local folder=$2
    [ "$folder" != dev ] || folder=debug
    cargo run --quiet --locked --release --target-dir "$target" \
        --manifest-path bindings/web/glue/Cargo.toml -- \
        "$target/wasm32-unknown-unknown/$folder/privet_web.wasm" "$target/web/$1"
}

# build NAME FEATURES: the same as it is shipped.
build() {
    compile "$1" web "$2"
    wasm-opt -Os --enable-bulk-memory --enable-bulk-memory-opt --enable-mutable-globals \
        --enable-multivalue --enable-nontrapping-float-to-int --enable-reference-types \
        --enable-sign-ext --enable-simd "$target/web/$1/privet_bg.wasm" \
        -o "$target/web/$1/privet_bg.wasm"
}

# bytes NAME: how many a page receives.
bytes() {
    node -e '
        const { brotliCompressSync, constants } = require("node:zlib");
        const program = require("node:fs").readFileSync(process.argv[1]);
        const params = { [constants.BROTLI_PARAM_SIZE_HINT]: program.length };
        console.log(brotliCompressSync(program, { params }).length);
    ' "$target/web/$1/privet_bg.wasm"
}

# check NAME MOST: whether a page receives at most so many bytes.
check() {
    local received
    received=$(bytes "$1")
    echo "$1 schemes: $received bytes by brotli, at most $2"
    if [ "$received" -gt "$2" ]; then
        echo "The program in WebAssembly is larger than $2 bytes." >&2
        exit 1
    fi
}

# A program in which tests plant mistakes. It is nobody's to ship: it does not build by the profile of
# what is shipped.
plantable() {
    compile planted dev all-schemes,planted-leaks
}

if [ "${1:-}" = --debug ]; then
    plantable
    all=planted few=planted
else
    all=all few=few
    build all all-schemes
    check all 372500
    build few ""
    check few 308000
    if [ "${1:-}" = --sizes ]; then exit; fi
    # One glue serves both, and it has no mistakes to plant.
    cmp "$target/web/all/privet.js" "$target/web/few/privet.js"
    if grep -q plant "$target/web/all/privet.js"; then
        echo "The program that is shipped has mistakes to plant." >&2
        exit 1
    fi
fi

rm -rf "$wasm" "$package/dist"
cp -r "$target/web/$all" "$wasm"
cp "$target/web/$few/privet_bg.wasm" "$wasm/privet_few.wasm"
(cd "$package" && npm run --silent build)
if [ "${1:-}" = --build ]; then exit; fi

# The same package, but for the program.
[ "${1:-}" = --debug ] || plantable
rm -rf "$target/web/planted-package"
cp -r "$package/dist" "$target/web/planted-package"
cp "$target/web/planted/"* "$target/web/planted-package/wasm/"

if [ -z "${PRIVET_PROGRAMS:-}" ]; then
    cargo build --quiet --locked --package privet
    PRIVET_PROGRAMS=target/debug
fi
export PRIVET="$PWD/$PRIVET_PROGRAMS/privet"
cd "$package"
npm run --silent check
npm test --silent
if [ "${1:-}" = --debug ]; then exit; fi

# Measuring works, too.
node --test --test-reporter=spec measure/measure.test.mjs
