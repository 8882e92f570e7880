/**
 * A client in Node finds what the command finds, and what leaves it is the same for all keys.
 * `browser.test.mjs` has the same for pages, with more tables.
 */

import assert from "node:assert/strict";
import { Transform } from "node:stream";
import test from "node:test";
import { connect } from "@privet/client";
import { build, native, SCHEMES, serve, serveAll } from "./place.mjs";
import { footprints, queriesOf, recorded } from "./recorder.mjs";

const rows = Array.from({ length: 300 }, (_, row) => ({ name: `person ${row}`, number: row }));
const table = build("people", rows, "--key", "name", "--key-map", "cuckoo");

/** Hits, misses, some of them twice, and a key of many bytes. */
const KEYS = ["person 0", "nobody", "person 0", "person 299", "", "nobody", "a".repeat(300)];

/** What left for each of the keys, `get` being how a client looks one up. */
async function printsOf(urls, get) {
    const { urls: fronts, seen } = await recorded(urls);
    const client = await connect(fronts);
    const [prints] = await footprints(
        [seen],
        KEYS.map((key) => () => get(client, key)),
    );
    client.close();
    return prints;
}

for (const [scheme, count] of Object.entries(SCHEMES)) {
    test(`${scheme} in Node finds, and leaves the same whatever it finds`, async () => {
        const urls = await serveAll(table, scheme);
        const found = [];
        const prints = await printsOf(urls, async (client, key) => {
            assert.equal(client.scheme, scheme);
            assert.equal(client.table.servers, count);
            const value = await client.get(key);
            found.push(value ? { key, found: true, value: value.json() } : { key, found: false });
        });
        assert.deepEqual(found, native(urls, KEYS));
        assert.equal(prints[0] === "", scheme === "download", "nothing was seen");
        assert.equal(new Set(prints).size, 1, prints.join("\n"));
    });
}

test("a client that remembers what it found is caught, and one that asks again", async () => {
    const urls = await serveAll(table, "dpf");
    const known = new Map();
    const remembers = async (client, key) => {
        if (!known.has(key)) {
            known.set(key, await client.get(key));
        }
    };
    const asksAgain = async (client, key) => (await client.get(key)) ?? client.get(key);
    for (const mistaken of [remembers, asksAgain]) {
        assert.notEqual(new Set(await printsOf(urls, mistaken)).size, 1);
    }
});

/** Brings what it gets later. */
function late(wait) {
    return new Transform({
        transform: (piece, _, done) => setTimeout(() => done(null, piece), wait),
    });
}

test("lookups are as many as they are said to be", async () => {
    const { urls, seen } = await recorded([await serve(table, "dpf"), await serve(table, "dpf")]);
    const client = await connect(urls);
    const queries = async (keys, options) => {
        seen.length = 0;
        const answers = await client.getMany(keys, options);
        assert.equal(answers.length, keys.length);
        return queriesOf(seen).reduce((sum, { bytes }) => sum + bytes, 0);
    };
    const padded = await queries(["person 1", "nobody"], { padTo: 5 });
    assert.equal(await queries(["person 1", "person 1", "a", "b", "c"]), padded);
    assert.equal(await queries([], { padTo: 5 }), padded);
    assert.notEqual(await queries(["person 1", "nobody"]), padded);
    client.close();
});

test("servers are asked what they serve once, before the program is there", async () => {
    const urls = [await serve(table, "dpf"), await serve(table, "dpf")];
    // Their answers come before the program is there, and after it.
    for (const wait of [0, 1000]) {
        const { urls: fronts, seen } = await recorded(urls, () => [late(wait)]);
        const client = await connect(fronts);
        const asked = seen.filter(({ method }) => method === "Describe");
        assert.deepEqual(asked.map(({ server }) => server).sort(), [0, 1]);
        // Nobody waited until the time for a description was over.
        assert.ok((await client.stats()).readyAfter < 8000 + 3 * wait);
        client.close();
    }
});
