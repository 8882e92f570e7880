/** What leaves a client does not depend on what it looks up, nor on what it found. */

import assert from "node:assert/strict";
import test from "node:test";
import { connect } from "@privet/client";
import { build, serve } from "./place.mjs";
import { footprints, recorded } from "./recorder.mjs";

const rows = Array.from({ length: 300 }, (_, row) => ({ name: `person ${row}`, number: row }));
// By cuckoo, a key may lie in two records, and in a stash that clients have at hand.
const table = build("people", rows, "--key", "name", "--key-map", "cuckoo");
const LOOKUPS = ["person 1", "nobody", "person 1", "person 299", "", "nobody", "a".repeat(300)];

/** Whether all lookups leave the same, `get` being how one is made. */
async function looksAlike(urls, get) {
    const { urls: fronts, seen } = await recorded(urls);
    const client = await connect(fronts);
    try {
        const prints = await footprints(
            seen,
            LOOKUPS.map((key) => () => get(client, key)),
        );
        assert.notEqual(prints[0], "");
        return prints.every((print) => print === prints[0]);
    } finally {
        client.close();
    }
}

for (const [scheme, count] of Object.entries({
    "simplepir-packed": 1,
    dpf: 2,
    "apir-dpf": 2,
    singlepass: 2,
    "tapir-mt": 2,
})) {
    test(`${scheme} sends the same for a hit, a miss and a repeated key`, async () => {
        const urls = await Promise.all(Array.from({ length: count }, () => serve(table, scheme)));
        assert.ok(await looksAlike(urls, (client, key) => client.get(key)));
    });
}

test("a client that remembers what it found is caught, and one that asks again", async () => {
    const urls = [await serve(table, "dpf"), await serve(table, "dpf")];
    const known = new Map();
    const remembers = async (client, key) => {
        if (!known.has(key)) {
            known.set(key, await client.get(key));
        }
    };
    assert.ok(!(await looksAlike(urls, remembers)));
    const asksAgain = async (client, key) => (await client.get(key)) ?? client.get(key);
    assert.ok(!(await looksAlike(urls, asksAgain)));
});

test("lookups are as many as they are said to be", async () => {
    const { urls, seen } = await recorded([await serve(table, "dpf"), await serve(table, "dpf")]);
    const client = await connect(urls);
    const queries = async (keys, options) => {
        seen.length = 0;
        const answers = await client.getMany(keys, options);
        assert.equal(answers.length, keys.length);
        return seen
            .filter(({ method }) => method === "Answer")
            .reduce((sum, { bytes }) => sum + bytes, 0);
    };
    const padded = await queries(["person 1", "nobody"], { padTo: 5 });
    assert.equal(await queries(["person 1", "person 1", "a", "b", "c"]), padded);
    assert.equal(await queries([], { padTo: 5 }), padded);
    assert.notEqual(await queries(["person 1", "nobody"]), padded);
    client.close();
});

test("servers are asked what they serve before the program is there, and only once", async () => {
    const { urls, seen } = await recorded([await serve(table, "dpf"), await serve(table, "dpf")]);
    const client = await connect(urls);
    const asked = seen.filter(({ method }) => method === "Describe");
    assert.deepEqual(asked.map(({ server }) => server).sort(), [0, 1]);
    client.close();
});
