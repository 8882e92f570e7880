/** The page in Chromium: it finds records, and what leaves it does not depend on them. */

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { build, serve } from "./place.mjs";
import { footprints, recorded } from "./recorder.mjs";

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium-headless-shell";
const DIST = new URL("../dist/", import.meta.url).pathname;
const TYPES = { ".js": "text/javascript", ".wasm": "application/wasm", ".html": "text/html" };
const PAGE = `<!doctype html><meta charset=utf-8><title>Privet</title>
<script type=module>
import * as privet from "/privet/index.js";
window.privet = privet;
</script>`;
/** As docs/web.md has it. */
const POLICY =
    "default-src 'none'; connect-src 'self' http://127.0.0.1:*; worker-src 'self'; " +
    "script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'";

const skip = existsSync(CHROMIUM) ? false : `there is no ${CHROMIUM}`;
const rows = Array.from({ length: 300 }, (_, row) => ({ name: `person ${row}`, number: row }));
const table = build("people", rows, "--key", "name", "--key-map", "cuckoo");

const pages = http.createServer((request, response) => {
    const file = path.join(DIST, request.url.replace("/privet/", "/"));
    const isPage = request.url === "/";
    response.writeHead(isPage || existsSync(file) ? 200 : 404, {
        "content-type": isPage ? "text/html" : (TYPES[path.extname(file)] ?? "text/plain"),
        "content-security-policy": POLICY,
    });
    response.end(isPage ? PAGE : existsSync(file) ? readFileSync(file) : "");
});
let browser, origin;

before(async () => {
    await new Promise((listening) => pages.listen(0, "127.0.0.1", listening));
    origin = `http://127.0.0.1:${pages.address().port}`;
    if (!skip) {
        browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
    }
});
after(async () => {
    await browser?.close();
    pages.close();
    pages.closeAllConnections();
});

/** A page with a client of these servers. */
async function opened(urls) {
    const page = await browser.newPage();
    await page.goto(origin);
    await page.waitForFunction(() => window.privet);
    await page.evaluate(async (urls) => {
        window.client = await window.privet.connect(urls);
    }, urls);
    return page;
}

const get = (page, key) =>
    page.evaluate(async (key) => (await window.client.get(key))?.json().number ?? null, key);

for (const [scheme, count] of Object.entries({
    "simplepir-packed": 1,
    dpf: 2,
    "apir-dpf": 2,
    singlepass: 2,
    "tapir-mt": 2,
})) {
    test(
        `a page looks up by ${scheme}, and sends the same whatever it looks up`,
        { skip, timeout: 300_000 },
        async () => {
            const servers = Array.from({ length: count }, () =>
                serve(table, scheme, "--web-origin", origin),
            );
            const { urls, seen } = await recorded(await Promise.all(servers));
            const page = await opened(urls);
            assert.equal(await get(page, "person 7"), 7);
            assert.equal(await get(page, "nobody"), null);
            const keys = ["person 7", "nobody", "person 7", "person 299", ""];
            const prints = await footprints(
                seen,
                keys.map((key) => () => get(page, key)),
            );
            assert.notEqual(prints[0], "");
            assert.equal(new Set(prints).size, 1, prints.join("\n"));
            await page.close();
        },
    );
}

test("a page of another origin may not use a server", { skip }, async () => {
    const url = await serve(table, "simplepir-packed", "--web-origin", "https://page.example");
    await assert.rejects(opened([url]), /UnavailableError.*pages of this origin/s);
});

test("a page asks a server once whether it may ask", { skip }, async () => {
    const url = await serve(table, "simplepir-packed", "--web-origin", origin);
    const page = await opened([url]);
    const devtools = await page.context().newCDPSession(page);
    const methods = [];
    devtools.on("Network.requestWillBeSent", ({ request }) => methods.push(request.method));
    await devtools.send("Network.enable");
    assert.equal(await get(page, "person 7"), 7);
    assert.equal(methods.filter((method) => method === "OPTIONS").length, 1);
    assert.equal(await get(page, "person 8"), 8);
    assert.equal(methods.filter((method) => method === "OPTIONS").length, 1);
    await page.close();
});

test("a page that remembers what it found is caught", { skip }, async () => {
    const servers = ["dpf", "dpf"].map((scheme) => serve(table, scheme, "--web-origin", origin));
    const { urls, seen } = await recorded(await Promise.all(servers));
    const page = await opened(urls);
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
    const prints = await footprints(seen, [
        () => get(page, "person 7"),
        () => get(page, "person 7"),
    ]);
    assert.notEqual(prints[0], prints[1]);
    await page.close();
});
