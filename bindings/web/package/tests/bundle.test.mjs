/** The package as a bundler sees it. */

import assert from "node:assert/strict";
import { copyFileSync, readFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build as bundle } from "esbuild";
import { build, folder, serve } from "./place.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const resolved = (name) => fileURLToPath(import.meta.resolve(name));

test("a bundle for Node looks up", async () => {
    const rows = [
        { name: "a", row: 1 },
        { name: "b", row: 2 },
    ];
    const table = build("bundled", rows, "--key", "name");
    const url = await serve(table, "simplepir-packed");
    await bundle({
        stdin: { contents: 'export * from "@privet/client";', resolveDir: here },
        outfile: path.join(folder, "bundle.mjs"),
        bundle: true,
        format: "esm",
        platform: "node",
    });
    await bundle({
        entryPoints: [resolved("@privet/client/worker")],
        outfile: path.join(folder, "worker.mjs"),
        bundle: true,
        format: "esm",
        platform: "node",
    });
    copyFileSync(resolved("@privet/client/privet.wasm"), path.join(folder, "privet.wasm"));
    const { connect } = await import(pathToFileURL(path.join(folder, "bundle.mjs")).href);
    const client = await connect(url, { worker: "./worker.mjs", wasm: "./privet.wasm" });
    assert.equal((await client.get("b")).json().row, 2);
    client.close();
    copyFileSync(resolved("@privet/client/privet-few.wasm"), path.join(folder, "few.wasm"));
    const other = { worker: "./worker.mjs", wasm: "./nothing.wasm", wasmFew: "./few.wasm" };
    const smaller = await connect(url, other);
    assert.equal((await smaller.get("a")).json().row, 1);
    smaller.close();
});

test("a bundle for a browser has nothing of Node in it", async () => {
    const { outputFiles } = await bundle({
        stdin: { contents: 'export * from "@privet/client";', resolveDir: here },
        bundle: true,
        format: "esm",
        platform: "browser",
        write: false,
        logLevel: "error",
    });
    const [{ text }] = outputFiles;
    assert.ok(!text.includes("node:") && text.includes("new Worker("));
    assert.equal(
        JSON.parse(readFileSync(path.join(here, "../package.json"), "utf8")).dependencies,
        undefined,
    );
});
