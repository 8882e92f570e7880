/** Each scheme finds what the command finds. */

import assert from "node:assert/strict";
import test from "node:test";
import { connect } from "@privet/client";
import { build, native, serve } from "./place.mjs";

const SCHEMES = {
    simplepir: 1,
    "simplepir-packed": 1,
    dpf: 2,
    "dummy-subsets": 1,
    "dummy-subsets-two": 2,
    harmony: 1,
    piano: 1,
    "piano-all-parities": 1,
    singlepass: 2,
    "tapir-mt": 2,
    "apir-dpf": 2,
    "apir-matrix-mt": 2,
    download: 1,
};

const ROWS = 300;
const rows = Array.from({ length: ROWS }, (_, row) => ({
    name: `person ${row}`,
    number: row,
    city: `city ${row % 7}`,
}));
const table = build("people", rows, "--key", "name");
const keys = ["person 0", "person 299", "nobody", "person 17", "", "person 17", "person 300"];

for (const [scheme, count] of Object.entries(SCHEMES)) {
    test(`${scheme} finds what the command finds`, { timeout: 300_000 }, async () => {
        const urls = await Promise.all(Array.from({ length: count }, () => serve(table, scheme)));
        const client = await connect(urls);
        try {
            assert.equal(client.scheme, scheme);
            assert.equal(client.table.servers, count);
            const answers = await client.getMany(keys);
            const found = answers.map(({ key, found, value }) =>
                found ? { key, found, value: value.json() } : { key, found },
            );
            assert.deepEqual(found, native(urls, keys));
            assert.deepEqual((await client.get("person 5")).values, { number: 5, city: "city 5" });
            assert.equal(await client.get("person 1000"), undefined);
        } finally {
            client.close();
        }
    });
}

// Its hint for a table of keys is longer than a page would wait for.
test("doublepir finds what is in a record", { timeout: 600_000 }, async () => {
    const numbered = build(
        "numbered",
        rows.map(({ number }) => ({ number })),
    );
    const client = await connect(await serve(numbered, "doublepir"));
    assert.equal(client.scheme, "doublepir");
    const answers = await client.getMany([0, 299, 17]);
    assert.deepEqual(
        answers.map(({ value }) => value.json()),
        [{ number: 0 }, { number: 299 }, { number: 17 }],
    );
    client.close();
});
