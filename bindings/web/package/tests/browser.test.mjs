/** The page in Chromium: it finds what the command finds, and leaves the same whatever that is. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { connect, connected, find, get, opened, origin, watched } from "./page.mjs";
import { build, native, SCHEMES, serve, serveAll } from "./place.mjs";
import { footprints, recorded } from "./recorder.mjs";

const rows = Array.from({ length: 250 }, (_, row) => ({
    name: `person ${row}`,
    number: row,
    // A value that is longer than a record lies in the stash, which clients have at hand.
    note: row === 7 ? "long".repeat(100) : "",
}));
const STASHED = "person 7";
const many = [...rows, ...rows.slice(0, 20), ...rows.slice(0, 5)];
/** Of these values, some are longer than a record. */
const longer = rows.map((row, n) => ({ ...row, note: "x".repeat((n % 4) * 60) }));
const networks = rows.map((row, n) => ({ ...row, name: `10.0.${n}.0/25` }));

/** Tables of all kinds, and what is looked up there: hits, misses, and one of them twice. */
const NAMES = ["person 0", "nobody", STASHED, "person 249", "person 0", "", "nobody"];
const TABLES = {
    cuckoo: {
        keys: NAMES,
        table: build("cuckoo", rows, "--key", "name", "--key-map", "cuckoo"),
    },
    buckets: { keys: NAMES, table: build("buckets", rows, "--key", "name") },
    lists: { keys: NAMES, table: build("lists", many, "--key", "name", "--multi") },
    parts: {
        keys: [...NAMES.slice(2), "person 1", "person 2"],
        table: build("parts", longer, "--key", "name", "--parts", "3"),
    },
    ranges: {
        keys: ["10.0.0.0", "10.0.0.128", "10.0.7.9", "10.0.249.127", "10.0.0.0", "::1"],
        table: build("ranges", networks, "--range-from", "name"),
    },
    vouched: { keys: NAMES, table: build("vouched", rows, "--key", "name", "--authenticate") },
};
for (const name of ["cuckoo", "buckets", "vouched"]) {
    assert.equal(TABLES[name].table.report.stash_entries, 1, name);
}
assert.equal(TABLES.parts.table.report.parts, 3);
const tables = Object.values(TABLES).map(({ table }) => table);

for (const scheme of Object.keys(SCHEMES)) {
    test(`${scheme} in a page`, { timeout: 300_000 }, async (t) => {
        const urls = await serveAll(tables, scheme, "--web-origin", origin);
        const { urls: fronts, seen } = await recorded(urls);
        const page = await opened();
        const left = watched(page, fronts);
        for (const [name, { keys, table }] of Object.entries(TABLES)) {
            const root = table.report.root ?? undefined;
            await connect(page, fronts, { table: name, root });
            await t.test(`finds what the command finds in ${name}`, async () => {
                const args = ["--table", name, ...(root ? ["--root", root] : [])];
                assert.deepEqual(
                    await find(page, keys, name === "lists"),
                    native(urls, keys, ...args),
                );
            });
            await t.test(`leaves the same whatever it looks up in ${name}`, async () => {
                const lookups = keys.map((key) => () => get(page, key));
                for (const prints of await footprints([seen, left], lookups)) {
                    assert.equal(prints[0] === "", scheme === "download", "nothing was seen");
                    assert.equal(new Set(prints).size, 1, prints.join("\n"));
                }
            });
            await page.evaluate(() => window.client.close());
        }
        await page.close();
    });
}

test("a page of another origin may not use a server", async () => {
    const table = TABLES.buckets.table;
    const url = await serve(table, "simplepir-packed", "--web-origin", "https://page.example");
    await assert.rejects(connected([url]), /UnavailableError.*pages of this origin/s);
});

test("a page asks a server once whether it may ask", async () => {
    const url = await serve(TABLES.buckets.table, "simplepir-packed", "--web-origin", origin);
    const page = await connected([url]);
    const devtools = await page.context().newCDPSession(page);
    const methods = [];
    devtools.on("Network.requestWillBeSent", ({ request }) => methods.push(request.method));
    await devtools.send("Network.enable");
    for (const key of ["person 1", "person 2"]) {
        await get(page, key);
        assert.equal(methods.filter((method) => method === "OPTIONS").length, 1);
    }
    await page.close();
});

/** Mistakes in the program, and in what table they show. */
const MISTAKES = { StashNotAskedFor: "cuckoo", AsksAgainWhenNotFound: "parts" };
for (const [flaw, name] of Object.entries(MISTAKES)) {
    test(`a program that is mistaken is caught: ${flaw}`, async () => {
        const { table, keys } = TABLES[name];
        const { urls, seen } = await recorded(await serveAll(table, "dpf", "--web-origin", origin));
        const page = await opened();
        const left = watched(page, urls);
        await connect(page, urls, { planted: { flaw } });
        const lookups = keys.map((key) => () => get(page, key));
        for (const prints of await footprints([seen, left], lookups)) {
            assert.notEqual(new Set(prints).size, 1, prints[0]);
        }
        await page.close();
    });
}

test("a page that remembers what it found is caught", async () => {
    const servers = await serveAll(TABLES.buckets.table, "dpf", "--web-origin", origin);
    const { urls, seen } = await recorded(servers);
    const page = await connected(urls);
    await page.evaluate(() => {
        const { get } = window.privet.Client.prototype;
        const known = new Map();
        window.privet.Client.prototype.get = async function (key) {
            if (!known.has(key)) {
                known.set(key, await get.call(this, key));
            }
            return known.get(key);
        };
    });
    const lookup = () => get(page, "person 0");
    const [prints] = await footprints([seen], [lookup, lookup]);
    assert.notEqual(prints[0], prints[1]);
    await page.close();
});
