/** Which of the two programs a client fetches, and what it does when it is idle. */

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import http from "node:http";
import path from "node:path";
import { after, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { connect } from "@privet/client";
import { chromium } from "playwright-core";
import { DESCRIBE, describeEarly } from "../dist/messages.js";
import { program } from "../dist/programs.js";
import { build, native, serve } from "./place.mjs";

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium-headless-shell";
const DIST = new URL("../dist/", import.meta.url).pathname;
const TYPES = { ".js": "text/javascript", ".wasm": "application/wasm" };

const rows = Array.from({ length: 100 }, (_, row) => ({ name: `person ${row}`, number: row }));
const table = build("people", rows, "--key", "name");

/** The program that is chosen, and how often each was fetched. */
async function chosen(schemes, descriptions, few = async () => "few") {
    const fetched = { few: 0, all: 0 };
    const count = (name, load) => () => {
        fetched[name] += 1;
        return load();
    };
    const programs = { few: few && count("few", few), all: count("all", async () => "all") };
    const which = await program(programs, schemes, Promise.resolve(descriptions));
    return [which, fetched.few, fetched.all];
}

const FEW = { "simplepir-packed": 1, dpf: 2, "apir-dpf": 2, singlepass: 2, "tapir-mt": 2 };

test("the small program serves its schemes, and no others", async () => {
    for (const scheme of [...Object.keys(FEW), "simplepir", "download", "harmony"]) {
        const described = await describeEarly((await serve(table, scheme)) + DESCRIBE);
        const suffices = scheme in FEW;
        const expected = suffices ? ["few", 1, 0] : ["all", 1, 1];
        assert.deepEqual(await chosen([], [described]), expected, scheme);
        assert.deepEqual(await chosen([scheme], [described]), suffices ? expected : ["all", 0, 1]);
    }
});

test("whenever it is not known to suffice, the whole program is taken", async () => {
    const described = await describeEarly((await serve(table, "dpf")) + DESCRIBE);
    const other = await describeEarly((await serve(table, "apir-matrix-mt")) + DESCRIBE);
    assert.deepEqual(await chosen([], [described, described]), ["few", 1, 0]);
    for (const unknown of [other, undefined, new Uint8Array(), described.subarray(0, 40)]) {
        assert.deepEqual(await chosen([], [described, unknown]), ["all", 1, 1]);
    }
    assert.deepEqual(await chosen([], [described], null), ["all", 0, 1]);
    const missing = () => Promise.reject(new Error("404"));
    assert.deepEqual(await chosen([], [described], missing), ["all", 1, 1]);
});

test("what a description names is looked for to a depth of two tables", async () => {
    const field = (number, content) => [(number << 3) | 2, content.length, ...content];
    const scheme = field(8, field(1, [...new TextEncoder().encode("dpf")]));
    const described = (depth) =>
        depth === 0 ? scheme : field(depth % 2 ? 10 : 11, described(depth - 1));
    for (const [depth, expected] of [
        [0, ["few", 1, 0]],
        [1, ["few", 1, 0]],
        [2, ["all", 1, 1]],
        [9, ["all", 1, 1]],
    ]) {
        const message = field(3, described(depth));
        const body = Uint8Array.of(0, 0, 0, 0, message.length, ...message);
        assert.deepEqual(await chosen([], [body]), expected, `${depth}`);
    }
});

const skip = existsSync(CHROMIUM) ? false : `there is no ${CHROMIUM}`;

test("a page receives the small program alone, if that suffices", { skip }, async () => {
    let asked = [];
    const pages = http.createServer(async (request, response) => {
        const file = request.url === "/" ? undefined : path.join(DIST, request.url);
        if (file?.endsWith(".wasm")) {
            asked.push(path.basename(file));
        }
        response.setHeader("content-type", TYPES[path.extname(file ?? "")] ?? "text/html");
        response.end(file ? await readFile(file).catch(() => "") : "<!doctype html>");
    });
    await new Promise((listening) => pages.listen(0, "127.0.0.1", listening));
    const origin = `http://127.0.0.1:${pages.address().port}`;
    const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
    after(async () => {
        await browser.close();
        pages.close();
        pages.closeAllConnections();
    });
    for (const [scheme, count, all] of [
        ["simplepir-packed", 1, false],
        ["tapir-mt", 2, false],
        ["simplepir", 1, true],
    ]) {
        const servers = Array.from({ length: count }, () =>
            serve(table, scheme, "--web-origin", origin),
        );
        const page = await browser.newPage();
        await page.goto(origin);
        asked = [];
        const found = await page.evaluate(async (urls) => {
            const { connect } = await import("/index.js");
            return (await (await connect(urls)).get("person 7"))?.json().number;
        }, await Promise.all(servers));
        assert.equal(found, 7);
        assert.equal(asked.includes("privet_bg.wasm"), all, `${scheme}: ${asked}`);
        await page.close();
    }
});

test("queries are made ahead while a client is idle, and not kept for long", async () => {
    const client = await connect(await serve(table, "simplepir"));
    const madeAhead = async () => (await client.stats()).madeAhead;
    await client.get("person 1");
    assert.equal(await madeAhead(), 0, "nothing is made before the first lookup");
    // What is found has no part in it. A busy machine may miss some moments, not all.
    for (let tries = 0; (await madeAhead()) === 0; tries += 1) {
        assert.ok(tries < 100);
        await pause(20);
        await client.get(tries % 2 ? "person 1" : "nobody");
    }
    await pause(1500);
    const before = await madeAhead();
    await client.get("person 1");
    assert.equal(await madeAhead(), before, "it was kept for longer than a second");
    client.close();
});

test("the engine brings keys into the form that the table was built with", async () => {
    const composed = ["é", "한국", "Straße", "ﬁ", "nobody"];
    const written = [...composed, "e\u0301", "\u1112\u1161\u11ab국", "q\u0307\u0323"];
    for (const form of ["nfc", "nfc,fold", "nfc,alphanumeric"]) {
        const distinct = ["É", "한국", "STRASSE", "ﬁ", "q\u0323\u0307"];
        const words = build(
            `words-${form.replace(",", "-")}`,
            distinct.map((name, row) => ({ name, row })),
            "--key",
            "name",
            "--normalize",
            form,
        );
        const urls = [await serve(words, "simplepir-packed")];
        const client = await connect(urls);
        const answers = await client.getMany(written);
        const found = answers.map(({ key, found, value }) =>
            found ? { key, found, value: value.json() } : { key, found },
        );
        assert.deepEqual(found, native(urls, written), form);
        assert.ok(found.some((answer) => answer.found) && !found.every((answer) => answer.found));
        client.close();
    }
});
