/** How much leaves a client. `browser.test.mjs` looks at what it depends on. */

import assert from "node:assert/strict";
import { Transform } from "node:stream";
import test from "node:test";
import { connect } from "@privet/client";
import { build, serve } from "./place.mjs";
import { queriesOf, recorded } from "./recorder.mjs";

const rows = Array.from({ length: 300 }, (_, row) => ({ name: `person ${row}`, number: row }));
const table = build("people", rows, "--key", "name", "--key-map", "cuckoo");

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
