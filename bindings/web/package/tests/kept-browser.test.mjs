/** What a page keeps in the browser's own files: pages come back, are two, are full, are killed. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { front } from "./front.mjs";
import { build, folder, privet, serve } from "./place.mjs";

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium-headless-shell";
const KILLS = Number(process.env.KILLS ?? 6);
const DIST = new URL("../dist/", import.meta.url).pathname;
const TYPES = { ".js": "text/javascript", ".wasm": "application/wasm" };
const PAGE = `<!doctype html><meta charset=utf-8><title>Privet</title>
<script type=module>
import * as privet from "/index.js";
window.privet = privet;
</script>`;

const skip = existsSync(CHROMIUM) ? false : `there is no ${CHROMIUM}`;
const rows = Array.from({ length: 3000 }, (_, row) => ({ name: `person ${row}`, number: row }));
privet("keygen", "-o", "publisher.key");
const signed = ["--key", "name", "--publisher-key", "publisher.key"];
const table = build("people", rows, ...signed);

const pages = http.createServer((request, response) => {
    const file = path.join(DIST, request.url);
    const isPage = request.url === "/";
    response.writeHead(isPage || existsSync(file) ? 200 : 404, {
        "content-type": isPage ? "text/html" : (TYPES[path.extname(file)] ?? "text/plain"),
    });
    response.end(isPage ? PAGE : existsSync(file) ? readFileSync(file) : "");
});
let origin;
before(async () => {
    await new Promise((listening) => pages.listen(0, "127.0.0.1", listening));
    origin = `http://127.0.0.1:${pages.address().port}`;
});
const running = new Set();
// One signal ends all processes of a browser, for it is detached. So none comes from a terminal.
process.prependListener("exit", () => running.forEach((browser) => browser.end()));
after(() => {
    running.forEach((browser) => browser.kill());
    pages.close();
    pages.closeAllConnections();
});

const served = async (table, scheme) => serve(table, scheme, "--web-origin", origin);
const profile = () => mkdtempSync(path.join(folder, "profile-"));

/** A browser with this profile, which can be closed and killed. */
async function browse(profile) {
    const process = spawn(
        CHROMIUM,
        ["--no-sandbox", "--remote-debugging-port=0", `--user-data-dir=${profile}`, "about:blank"],
        { detached: true, stdio: ["ignore", "ignore", "pipe"] },
    );
    const ended = new Promise((over) => process.once("close", over));
    const end = () => {
        running.delete(browser);
        try {
            globalThis.process.kill(-process.pid, "SIGKILL");
        } catch {
            // It has ended.
        }
    };
    const kill = async () => {
        end();
        await ended;
    };
    const browser = { end, kill };
    running.add(browser);
    let said = "";
    for await (const piece of process.stderr) {
        said += piece;
        const address = /listening on (ws:\S+)/.exec(said)?.[1];
        if (address) {
            process.stderr.resume();
            const debugged = await chromium.connectOverCDP(address);
            browser.context = debugged.contexts()[0];
            browser.close = async () => {
                const session = await debugged.newBrowserCDPSession();
                await session.send("Browser.close").catch(() => undefined);
                await ended;
                running.delete(browser);
            };
            return browser;
        }
    }
    throw new Error(`no browser: ${said}`);
}

/** A page in it. */
async function page({ context }) {
    const page = await context.newPage();
    await page.goto(origin);
    await page.waitForFunction(() => window.privet);
    return page;
}

/** Looks a person up in a page. Returns what was told. */
const look = (page, urls, options = {}) =>
    page.evaluate(
        async ([urls, options]) => {
            const told = [];
            const onProgress = ({ kind, text }) => kind === "notice" && told.push(text);
            const client = await window.privet.connect(urls, { ...options, onProgress });
            const found = (await client.get("person 7")).json().number;
            await client.close();
            return found === 7 ? told.join("\n") : "something else was found";
        },
        [urls, options],
    );

/** The names and lengths of the browser's files for the origin. */
const kept = (page) =>
    page.evaluate(async () => {
        const root = await navigator.storage.getDirectory();
        const files = [];
        for await (const [name, folder] of root.entries()) {
            for await (const [file, handle] of folder.entries()) {
                files.push(`${name}/${file} ${(await handle.getFile()).size}`);
            }
        }
        return files;
    });

const options = { skip, timeout: 600_000 };

test("a page that comes back receives nothing again", options, async () => {
    const server = await front(await served(table, "simplepir"));
    const place = profile();
    let browser = await browse(place);
    assert.equal(await look(await page(browser), server.address), "");
    await browser.close();
    const fetched = server.fetched;
    assert.ok(fetched > 0);
    browser = await browse(place);
    const again = await page(browser);
    assert.equal(await look(again, server.address), "");
    assert.equal(server.fetched, fetched);
    await look(again, server.address, { storage: "memory" });
    assert.ok(server.fetched > fetched);
    const other = build("others", rows.slice(1).concat(rows[0]), "--key", "name");
    server.url = await served({ file: `people=${other.file}` }, "simplepir");
    await assert.rejects(look(again, server.address), /IntegrityError/);
    // What the user has removed is gone.
    await again.evaluate(async () => {
        const root = await navigator.storage.getDirectory();
        await root.removeEntry("privet", { recursive: true });
    });
    assert.equal(await look(again, server.address), "");
    await browser.kill();
});

test("two pages at once keep what either has pinned", options, async () => {
    const [one, other] = await Promise.all(
        ["simplepir", "simplepir-packed"].map(async (scheme) => front(await served(table, scheme))),
    );
    const browser = await browse(profile());
    const both = await Promise.all([page(browser), page(browser)]);
    for (const urls of [
        [one, one],
        [one, other],
    ]) {
        const told = await Promise.all(urls.map(({ address }, at) => look(both[at], address)));
        assert.deepEqual(told, ["", ""]);
    }
    const fetched = [one.fetched, other.fetched];
    for (const [at, { address }] of [other, one].entries()) {
        assert.equal(await look(both[at], address), "");
    }
    assert.deepEqual([one.fetched, other.fetched], fetched);
    await browser.kill();
});

test("a page without room looks up all the same", options, async () => {
    const server = await front(await served(table, "simplepir"));
    const browser = await browse(profile());
    const full = await page(browser);
    const session = await browser.context.newCDPSession(full);
    await session.send("Storage.overrideQuotaForOrigin", { origin, quotaSize: 1000 });
    assert.match(await look(full, server.address), /cannot be kept/);
    const fetched = server.fetched;
    await session.send("Storage.overrideQuotaForOrigin", { origin });
    assert.equal(await look(full, server.address), "");
    assert.ok(server.fetched > fetched);
    await browser.kill();
});

test("a browser that is killed leaves what the next one can use", options, async () => {
    const moving = build("moving", rows, ...signed);
    const server = await front(await served(moving, "simplepir"));
    let place = profile();
    let longest = 0;
    for (let kills = 0; kills <= KILLS; kills += 1) {
        let browser = await browse(place);
        const begun = Date.now();
        const looked = look(await page(browser), server.address);
        if (kills === 0) {
            assert.equal(await looked, "");
            longest = Date.now() - begun;
        } else {
            looked.catch(() => undefined);
            await new Promise((over) => setTimeout(over, Math.random() * longest));
        }
        await browser.kill();
        browser = await browse(place);
        const told = await look(await page(browser), server.address);
        assert.ok(told === "" || /^the table was updated from epoch \d+ to \d+$/.test(told), told);
        await browser.kill();
        // The next one begins with nothing, or with the version before.
        if (kills % 2 === 0) {
            place = profile();
        } else {
            const set = `person 8={"number":${kills}}`;
            privet("update", "moving.privet", "--publisher-key", "publisher.key", "--set", set);
            server.url = await served(moving, "simplepir");
        }
    }
});

test("what was being written counts for nothing, and damage is found", options, async () => {
    const server = await front(await served(table, "simplepir"));
    const browser = await browse(profile());
    const torn = await page(browser);
    assert.equal(await look(torn, server.address), "");
    /** Writes the beginning of one file of this ending to another, without its first bytes. */
    const cut = (end, to, length, zeros) =>
        torn.evaluate(
            async ([end, to, length, zeros]) => {
                const root = await navigator.storage.getDirectory();
                const folder = await root.getDirectoryHandle("privet");
                for await (const name of folder.keys()) {
                    if (name.endsWith(end)) {
                        const file = await (await folder.getFileHandle(name)).getFile();
                        const bytes = new Uint8Array(await file.slice(0, length).arrayBuffer());
                        const other = name.slice(0, -end.length) + to;
                        const handle = await folder.getFileHandle(other, { create: true });
                        const written = await handle.createWritable();
                        await written.write(bytes.fill(0, 0, zeros));
                        await written.close();
                    }
                }
            },
            [end, to, length, zeros],
        );
    for (const length of [0, 5, 8, 100, 1e9]) {
        await cut(".pins.1", ".pins.2", length, 8);
        assert.equal(await look(torn, server.address), "");
    }
    let fetched = server.fetched;
    for (const [length, zeros, told] of [
        [0, 8, /^$/],
        [1000, 8, /^$/],
        [1000, 0, /damaged; it will be fetched again/],
        [1e9, 9, /^$/],
    ]) {
        await cut(".part", ".part", length, zeros);
        assert.match(await look(torn, server.address), told);
        assert.ok(server.fetched > fetched);
        fetched = server.fetched;
        assert.equal(await look(torn, server.address), "");
        assert.equal(server.fetched, fetched);
    }
    await cut(".pins.1", ".pins.1", 100, 0);
    await assert.rejects(look(torn, server.address), /CorruptedError.*cannot be read/);
    assert.equal(await look(torn, server.address, { acceptNewTable: true }), "");
    assert.equal(await look(torn, server.address), "");
    await browser.kill();
});

test("single-use hints are in none of the browser's files", options, async () => {
    const servers = await Promise.all([served(table, "singlepass"), served(table, "singlepass")]);
    const browser = await browse(profile());
    const looking = await page(browser);
    const known = /^privet\/[0-9a-f]{32}(\.pins\.1 \d{3}|-layout-[0-9a-f]{32}\.part \d{1,5})$/;
    for (let visits = 0; visits < 2; visits += 1) {
        assert.equal(await look(looking, servers), "");
        for (const file of await kept(looking)) {
            assert.match(file, known);
        }
    }
    await browser.kill();
});
