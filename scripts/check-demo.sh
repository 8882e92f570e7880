#!/usr/bin/env bash
# Builds the page of `privet demo --web` into target/web/demo, from where a program with the feature
# `page` takes it, and tests both. Needs what `check-web.sh` needs, and what that has built.
#   check-demo.sh                    builds and tests
#   check-demo.sh --build            builds the page only
#   check-demo.sh --pictures FOLDER  builds, and takes pictures of the page: docs/images/demo.png is
#                                    its demo-top-1280-light.png
set -euo pipefail
cd "$(dirname "$0")/.."

demo=$PWD/bindings/web/demo
package=$PWD/bindings/web/package
made=$PWD/target/web/demo
# Bytes of all files, as they lie in the program.
most_bytes=1500000

PATH="$package/node_modules/.bin:$PATH"
tsc -p "$demo"
rm -rf "$made"
mkdir -p "$made"
bundle() {
    esbuild --bundle --minify --format=esm --target=es2022 --log-level=error \
        --alias:@privet/client="$package/dist/index.js" "$@"
}
bundle "$demo/main.ts" --outfile="$made/page.js"
bundle "$package/dist/worker.js" --outfile="$made/worker.js"
bundle "$demo/style.css" --outfile="$made/style.css"
cp "$demo/index.html" "$demo/icon.svg" "$made"
cp "$package/dist/wasm/privet_bg.wasm" "$made/privet.wasm"
node -e '
    const { gzipSync } = require("node:zlib");
    const { readdirSync, readFileSync, rmSync, writeFileSync } = require("node:fs");
    const [, made, most] = process.argv;
    let all = 0;
    for (const name of readdirSync(made)) {
        const file = `${made}/${name}`;
        const packed = gzipSync(readFileSync(file), { level: 9 });
        all += packed.length;
        writeFileSync(`${file}.gz`, packed);
        rmSync(file);
    }
    console.log(`the page: ${all} bytes, at most ${most}`);
    process.exitCode = all > Number(most) ? 1 : 0;
' "$made" "$most_bytes"
if [ "${1:-}" = --build ]; then exit; fi

cargo build --quiet --locked --package privet --features page
export PRIVET="$PWD/target/debug/privet" PRIVET_PAGE=1
if [ "${1:-}" = --pictures ]; then
    pictures=$(realpath "${2:?name the folder of the pictures}")
    cd "$package"
    exec node tests/demo-pictures.mjs "$pictures"
fi
cd "$package"
node --test --test-reporter=spec tests/demo.test.mjs
