/** Tables of all kinds. */

import assert from "node:assert/strict";
import test from "node:test";
import { connect } from "@privet/client";
import { build, native, privet, serve } from "./place.mjs";

/** Clients of a table that two servers serve. */
async function opened(table, options) {
    const urls = [await serve(table, "dpf"), await serve(table, "dpf")];
    return { urls, client: await connect(urls, options) };
}

test("a key can have several values", async () => {
    const rows = ["a", "b", "a", "c", "a"].map((name, row) => ({ name, row }));
    const { urls, client } = await opened(build("lists", rows, "--key", "name", "--multi"));
    const keys = ["a", "b", "nobody"];
    const answers = await client.getMany(keys);
    assert.deepEqual(
        answers.map(({ value }) => value?.all.map((one) => one.json().row)),
        [[0, 2, 4], [1], undefined],
    );
    const found = answers.map(({ key, found, value }) =>
        found ? { key, found, values: value.all.map((one) => one.json()) } : { key, found },
    );
    assert.deepEqual(found, native(urls, keys));
    client.close();
});

test("a key can lie in a range", async () => {
    const rows = [
        { network: "1.0.0.0/24", country: "Australia" },
        { network: "2001:4860::/32", country: "Peru" },
    ];
    const { urls, client } = await opened(build("ranges", rows, "--range-from", "network"));
    const keys = ["1.0.0.77", "1.0.1.0", "2001:4860::1"];
    const answers = await client.getMany([...keys, "no address"]);
    const wrong = answers.pop();
    assert.equal(wrong.error.name, "UsageError");
    assert.throws(() => wrong.value, wrong.error);
    assert.deepEqual(
        answers.map(({ value }) => value?.json().country),
        ["Australia", undefined, "Peru"],
    );
    const found = answers.map(({ key, found, value }) =>
        found ? { key, found, value: value.json() } : { key, found },
    );
    assert.deepEqual(found, native(urls, keys));
    client.close();
});

test("records can be looked up by their numbers", async () => {
    const rows = Array.from({ length: 50 }, (_, row) => ({ row }));
    const { client } = await opened(build("numbered", rows));
    assert.ok(!client.table.isByKey);
    assert.equal(client.table.records, 50);
    assert.deepEqual(
        (await client.getMany([0, 49])).map(({ value }) => value.json().row),
        [0, 49],
    );
    for (const key of [-1, 50, 0.5, NaN, "7"]) {
        await assert.rejects(client.get(key), { name: "UsageError" });
    }
    client.close();
});

// Its hint for a table of keys is longer than a page would wait for.
test("doublepir finds what is in a record", { timeout: 600_000 }, async () => {
    const rows = Array.from({ length: 300 }, (_, number) => ({ number }));
    const client = await connect(await serve(build("many", rows), "doublepir"));
    assert.equal(client.scheme, "doublepir");
    const answers = await client.getMany([0, 299, 17]);
    assert.deepEqual(
        answers.map(({ value }) => value.json()),
        [{ number: 0 }, { number: 299 }, { number: 17 }],
    );
    client.close();
});

test("records are verified against the root", async () => {
    const rows = [
        { name: "a", row: 1 },
        { name: "b", row: 2 },
    ];
    const table = build("vouched", rows, "--key", "name", "--authenticate");
    const { urls, client } = await opened(table, { root: table.report.root });
    assert.deepEqual((await client.get("b")).json(), { row: 2 });
    client.close();
    await assert.rejects(connect(urls, { root: "77".repeat(32) }), { name: "IntegrityError" });
});

test("values have the types of their columns", async () => {
    const csv = "id,count,text,yes\na,12,x,true\nb,9007199254740993,1,false\n";
    const { writeFileSync } = await import("node:fs");
    const { folder } = await import("./place.mjs");
    writeFileSync(`${folder}/typed.csv`, csv);
    privet(
        "build",
        "typed.csv",
        "--key",
        "id",
        "--types",
        "count=number,yes=boolean",
        "-o",
        "typed.privet",
    );
    const { client } = await opened({ file: "typed.privet" });
    assert.ok(client.table.values);
    assert.deepEqual((await client.get("a")).values, { count: 12, text: "x", yes: true });
    assert.deepEqual((await client.get("b")).values, {
        count: 9007199254740993n,
        text: "1",
        yes: false,
    });
    client.close();
});
