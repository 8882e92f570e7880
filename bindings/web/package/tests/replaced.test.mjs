/** How workers begin, and that one that has ended is replaced, but not for ever. */

import assert from "node:assert/strict";
import test from "node:test";
import { connect } from "@privet/client";
import { front } from "./front.mjs";
import { build, serve } from "./place.mjs";

const rows = Array.from({ length: 300 }, (_, row) => ({ name: `person ${row}`, number: row }));
const table = build("people", rows, "--key", "name");
const worker = new URL("./keyed-dying-worker.mjs", import.meta.url);
const END = "the key that ends it";

test("a description that comes after the program is there is taken", async () => {
    const server = await front(await serve(table, "simplepir-packed"));
    server.delay = 3000;
    const told = [];
    const client = await connect(server.address, { onProgress: (progress) => told.push(progress) });
    assert.deepEqual(told.filter(({ kind }) => kind === "notice"), []);
    assert.equal(server.described, 1);
    client.close();
});

test("lookups go on in a new worker, with new hints", async () => {
    const servers = [];
    for (let count = 0; count < 2; count += 1) {
        servers.push(await front(await serve(table, "singlepass")));
    }
    const client = await connect(
        servers.map(({ address }) => address),
        { worker },
    );
    const { prepareReceived } = await client.stats();
    for (let deaths = 0; deaths < 5; deaths += 1) {
        assert.equal((await client.get("person 7")).json().number, 7);
        const pending = [client.get("person 8"), client.get(END)];
        const stats = client.stats();
        for (const one of pending) {
            const message = /ended.*the next lookup.*do not repeat this/;
            await assert.rejects(one, { name: "SelectiveError", isFinal: true, message });
        }
        await assert.rejects(stats, { name: "InternalError", message: /ended.*the next lookup/ });
        assert.equal(servers[0].described, 1 + deaths);
        // The one that was under way is not sent again, and the next has other hints.
        assert.equal((await client.get("person 8")).json().number, 8);
        assert.equal((await client.stats()).prepareReceived, prepareReceived);
        assert.equal((await client.stats()).lookups, 1);
        assert.equal(servers[0].described, 2 + deaths);
    }
    client.close();
});

test("a new worker believes no other table than the one before it", async () => {
    const server = await front(await serve(table, "simplepir-packed"));
    const client = await connect(server.address, { worker });
    await assert.rejects(client.get(END), { name: "SelectiveError" });
    const other = build("others", rows.slice(1), "--key", "name");
    server.url = await serve({ file: `people=${other.file}` }, "simplepir-packed");
    await assert.rejects(client.get("person 7"), { name: "IntegrityError" });
    await assert.rejects(client.get("person 7"), { name: "IntegrityError" });
    assert.equal(server.described, 2);
});

test("accepting a new table counts once, and the table stays the chosen one", async () => {
    const server = await front(await serve(table, "simplepir-packed"));
    const client = await connect(server.address, { worker, acceptNewTable: true });
    await assert.rejects(client.get(END), { name: "SelectiveError" });
    const second = build("second", rows, "--key", "name");
    server.url = await serve([table, second], "simplepir-packed");
    assert.equal((await client.get("person 7")).json().number, 7);
    assert.equal(client.table.name, "people");
    await assert.rejects(client.get(END), { name: "SelectiveError" });
    const swapped = build("swapped", rows.slice(1), "--key", "name");
    server.url = await serve({ file: `people=${swapped.file}` }, "simplepir-packed");
    await assert.rejects(client.get("person 7"), { name: "IntegrityError" });
});

test("servers that are away for a while end nothing", async () => {
    const url = await serve(table, "simplepir-packed");
    const server = await front(url);
    const client = await connect(server.address, { worker, timeout: 20_000 });
    await assert.rejects(client.get(END), { name: "SelectiveError" });
    server.url = "http://127.0.0.1:9";
    await assert.rejects(client.get("person 7"), { name: "UnavailableError" });
    server.url = url;
    assert.equal((await client.get("person 7")).json().number, 7);
    client.close();
});

test("workers that answer nothing are not replaced for ever", async () => {
    const server = await front(await serve(table, "simplepir-packed"));
    const dying = new URL("./dying-worker.mjs", import.meta.url);
    const client = await connect(server.address, { worker: dying });
    for (const message of [/the next lookup/, /the next lookup/, /connect again/]) {
        await assert.rejects(client.get("person 7"), { name: "SelectiveError", message });
    }
    const message = /connect again/;
    await assert.rejects(client.get("person 7"), { name: "InternalError", message });
    assert.equal(server.described, 3);
    client.close();
});
