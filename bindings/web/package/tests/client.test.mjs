/** How a client waits, fails and ends. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import http from "node:http";
import { after, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { inspect } from "node:util";
import * as privet from "@privet/client";
import { connect } from "@privet/client";
import { build, privet as command, serve, stop } from "./place.mjs";

const SECRET = "a key that nobody may hear of";
const rows = Array.from({ length: 100 }, (_, row) => ({ name: `person ${row}`, number: row }));
const table = build("people", rows, "--key", "name");
const urls = [await serve(table, "dpf"), await serve(table, "dpf")];
const alone = await serve(table, "simplepir-packed");

/** Checks that an error is of this class, and says nothing of a key. */
const fails =
    (name, pattern = /./) =>
    (error) => {
        assert.equal(error.name, name, inspect(error));
        assert.ok(error instanceof privet[name] && error instanceof privet.PrivetError);
        assert.match(error.message, pattern);
        assert.ok(!inspect(error).includes(SECRET));
        return true;
    };

/** A server of whatever `answer` says, which hears nothing of Privet. */
async function stranger(answer) {
    const server = http.createServer(answer);
    await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
    after(() => {
        server.close();
        server.closeAllConnections();
    });
    return `http://127.0.0.1:${server.address().port}`;
}

test("mistakes of the caller are found before anything is sent", async () => {
    await assert.rejects(connect([urls[0], urls[0]]), fails("UsageError", /named twice/));
    await assert.rejects(connect("ftp://example.org"), fails("UsageError", /http/));
    await assert.rejects(
        connect(["http://a.example", "http://b.example"]),
        fails("UsageError", /not encrypted/),
    );
    await assert.rejects(connect(urls, { schemes: ["no such scheme"] }), fails("UsageError"));
    await assert.rejects(connect(urls, { root: "no root" }), fails("UsageError"));
    const client = await connect(urls);
    const { lookups } = await client.stats();
    await assert.rejects(client.get(7), fails("UsageError", /text or bytes/));
    await assert.rejects(
        client.getMany([SECRET, "\ud800"]),
        fails("UsageError", /key 1, counted from 0/),
    );
    assert.equal((await client.stats()).lookups, lookups);
    client.close();
});

test("errors say who is at fault", async () => {
    const silent = "http://127.0.0.1:9";
    const unreachable = { timeout: 500 };
    await assert.rejects(connect(silent, unreachable), fails("UnavailableError", /127.0.0.1:9/));
    const other = await stranger((_, response) => response.writeHead(404).end("not here"));
    await assert.rejects(connect(other, unreachable), fails("PeerError", /404/));
    const page = await stranger((_, response) => response.end("<html>".repeat(1e5)));
    await assert.rejects(connect(page, unreachable), fails("PeerError", /gRPC-Web/));
    await assert.rejects(connect(urls, { digest: "00".repeat(32) }), fails("IntegrityError"));
    await assert.rejects(connect(urls, { verified: true }), fails("UsageError"));
});

test("a lookup whose caller waits no longer takes its course", async () => {
    const client = await connect(urls);
    const abort = new AbortController();
    const lookup = client.get(SECRET, { signal: abort.signal });
    abort.abort();
    await assert.rejects(lookup, { name: "AbortError" });
    await client.get("person 1");
    assert.equal((await client.stats()).lookups, 2);
    await assert.rejects(client.get("person 1", { signal: abort.signal }), { name: "AbortError" });
    client.close();
    await assert.rejects(connect(urls, { signal: abort.signal }), { name: "AbortError" });
});

test("answers come one after the other, and all of them begin at once", async () => {
    const client = await connect(urls);
    const seen = [];
    for await (const { key, found } of client.answers(["person 1", "nobody", "person 2"])) {
        seen.push([key, found]);
        if (seen.length === 2) {
            break;
        }
    }
    assert.deepEqual(seen, [
        ["person 1", true],
        ["nobody", false],
    ]);
    await client.get("person 3");
    assert.equal((await client.stats()).lookups, 4);
    client.close();
});

test("a client that is closed answers nobody", async () => {
    const client = await connect(urls);
    const lookup = client.get(SECRET);
    client.close();
    await assert.rejects(lookup, fails("UsageError", /closed/));
    await assert.rejects(client.get(SECRET), fails("UsageError", /closed/));
    await assert.rejects(client.stats(), fails("UsageError", /closed/));
});

test("a client moves on to a new version when it is asked to", async () => {
    const key = ["--publisher-key", "people.key"];
    command("keygen", "-o", "people.key");
    const signed = build("signed", rows, "--key", "name", ...key);
    const url = await serve(signed, "simplepir-packed");
    const client = await connect(url, { timeout: 5000 });
    assert.equal(await client.refresh(), 0);
    command("update", signed.file, ...key, "--set", 'person 1={"number":1001}');
    // The server looks for updates every second.
    for (let tries = 0; (await client.refresh()) !== 1; tries += 1) {
        assert.ok(tries < 100, "the server does not have the update");
        await pause(200);
    }
    assert.equal((await client.get("person 1")).json().number, 1001);
    await stop(url);
    await assert.rejects(client.refresh(), fails("UnavailableError"));
    client.close();
    await assert.rejects(client.refresh(), fails("UsageError", /closed/));
});

test("what comes before lookups is told as it comes", async () => {
    const url = await serve(table, "download");
    const told = [];
    const client = await connect(url, { onProgress: (progress) => told.push(progress) });
    const last = told.filter(({ kind }) => kind === "part").at(-1);
    assert.equal(last.what, "table");
    assert.ok(last.done > 0 && last.done === last.total);
    client.close();
    await assert.rejects(connect(url, { maxDownload: 100 }), fails("UsageError"));
});

test("a value does not print its content", async () => {
    const client = await connect(urls);
    const value = await client.get("person 42");
    assert.deepEqual(value.json(), { number: 42 });
    for (const printed of [String(value), inspect(value, { depth: 9 }), JSON.stringify(value)]) {
        assert.ok(!printed.includes("42"), printed);
    }
    assert.throws(() => new privet.Value([Uint8Array.of(0xff)]).text, fails("UsageError", /UTF-8/));
    client.close();
});

test("a program that waits for nothing ends", { timeout: 300_000 }, () => {
    const program = `
        import { connect } from "@privet/client";
        const client = await connect(${JSON.stringify(urls)});
        console.log((await client.get("person 7")).json().number);`;
    const ended = spawnSync(process.execPath, ["--input-type=module", "-e", program], {
        encoding: "utf8",
    });
    assert.equal(ended.stdout, "7\n", ended.stderr);
});

test("if the program ends, nobody waits for ever", async () => {
    const client = await connect(urls, { worker: new URL("./dying-worker.mjs", import.meta.url) });
    const lookups = [client.get(SECRET), client.get("person 1")];
    for (const lookup of lookups) {
        await assert.rejects(lookup, fails("SelectiveError", /has ended.*next lookup/));
    }
    await assert.rejects(client.get("person 1"), fails("SelectiveError"));
    const missing = new URL("./no-such-worker.mjs", import.meta.url);
    await assert.rejects(connect(urls, { worker: missing }), fails("InternalError", /worker/));
});

test("a description that comes after the program is taken", async () => {
    const late = await stranger(async (request, response) => {
        await pause(request.url.endsWith("/Describe") ? 2000 : 0);
        const { host: _, ...headers } = request.headers;
        const onward = http.request(`${alone}${request.url}`, { method: "POST", headers });
        request.pipe(onward);
        onward.on("response", (came) => {
            response.writeHead(came.statusCode, came.headers);
            came.pipe(response);
        });
    });
    const notices = [];
    const onProgress = ({ kind, text }) => kind === "notice" && notices.push(text);
    const client = await connect(late, { onProgress });
    client.close();
    // Nothing was given up and tried again.
    assert.deepEqual(notices, []);
});
