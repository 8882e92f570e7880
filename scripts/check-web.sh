#!/usr/bin/env bash
# Builds the client for the web, and its npm package, and tests both. Needs Node 20 or later with
# npm. Tests in a browser need Chromium (on Debian: chromium-headless-shell).
#   check-web.sh          builds and tests
#   check-web.sh --build  builds only
# PRIVET_PROGRAMS says where the command is that serves; without it, one is built.
set -euo pipefail
cd "$(dirname "$0")/.."

target="$PWD/target"
package="$PWD/bindings/web/package"
wasm="$package/src/wasm"
# Bytes that a page receives, compressed by brotli.
most_bytes=380000
most_bytes_recommended=270000

npm ci --prefix "$package" --ignore-scripts --silent
PATH="$package/node_modules/.bin:$PATH"

# build NAME FEATURES: the program in WebAssembly and its glue, in target/web/NAME.
build() {
    cargo build --quiet --locked --profile web --package privet-web \
        --target wasm32-unknown-unknown --no-default-features --features "$2"
    cargo run --quiet --locked --release --target-dir "$target" \
        --manifest-path bindings/web/glue/Cargo.toml -- \
        "$target/wasm32-unknown-unknown/web/privet_web.wasm" "$target/web/$1"
    # What every browser of the last three years takes, and Node 20.
    wasm-opt -Os --enable-bulk-memory --enable-bulk-memory-opt --enable-mutable-globals \
        --enable-multivalue --enable-nontrapping-float-to-int --enable-reference-types \
        --enable-sign-ext "$target/web/$1/privet_bg.wasm" -o "$target/web/$1/privet_bg.wasm"
}

# fits NAME LIMIT: prints how large it is, and fails beyond the limit.
fits() {
    node -e '
        const { brotliCompressSync, constants } = require("node:zlib");
        const [name, file, most] = process.argv.slice(1);
        const bytes = require("node:fs").readFileSync(file);
        const { length } = brotliCompressSync(bytes, {
            params: { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length },
        });
        console.log(`${name}: ${bytes.length} bytes, ${length} by brotli, at most ${most}`);
        process.exit(length > Number(most) ? 1 : 0);
    ' "$1" "$target/web/$1/privet_bg.wasm" "$2"
}

build recommended ""
build all all-schemes
fits recommended "$most_bytes_recommended"
fits all "$most_bytes"

rm -rf "$wasm" "$package/dist"
cp -r "$target/web/all" "$wasm"
(cd "$package" && npm run --silent build)
if [ "${1:-}" = --build ]; then exit; fi

if [ -z "${PRIVET_PROGRAMS:-}" ]; then
    cargo build --quiet --locked --package privet
    PRIVET_PROGRAMS=target/debug
fi
export PRIVET="$PWD/$PRIVET_PROGRAMS/privet"
cd "$package"
npm run --silent check
npm test --silent
