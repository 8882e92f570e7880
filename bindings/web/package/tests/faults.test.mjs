/** What a page does when servers, lines, tables or the page itself do not go on as they were. */

import assert from "node:assert/strict";
import { renameSync } from "node:fs";
import path from "node:path";
import { Transform } from "node:stream";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, connected, find, get, opened, origin, persistent } from "./page.mjs";
import { build, folder, native, privet, serve, serveAll, stop } from "./place.mjs";
import { queriesOf, recorded } from "./recorder.mjs";

const TIMEOUT = { timeout: 300_000 };
const rows = Array.from({ length: 100 }, (_, row) => ({ name: `person ${row}`, number: row }));
const table = build("people", rows, "--key", "name");
const wide = build(
    "wide",
    rows.map((row) => ({ ...row, note: String(row.number).padEnd(4000, "-") })),
    "--key",
    "name",
);
const WEB = ["--web-origin", origin];

/** Waits until the page's client has told that it tries again. */
const triesAgain = (page) =>
    page.waitForFunction(() => window.told.some((it) => it.text?.includes("trying again")));

/** A line of 3 Mbit/s, until it is cut. */
function slowLine() {
    const line = { isCut: false };
    const through = () => [
        new Transform({
            async transform(bytes, _, done) {
                for (let at = 0; at < bytes.length; at += 4096) {
                    const piece = bytes.subarray(at, at + 4096);
                    await sleep(piece.length / 375);
                    if (line.isCut) {
                        return done(new Error("the line is cut"));
                    }
                    this.push(piece);
                }
                done();
            },
        }),
    ];
    return { line, through };
}

for (const scheme of ["simplepir-packed", "dpf", "dummy-subsets", "singlepass"]) {
    test(`${scheme}: a lookup survives that a server starts again`, TIMEOUT, async () => {
        const urls = await serveAll(table, scheme, ...WEB);
        const { urls: fronts, move } = await recorded(urls);
        const page = await connected(fronts);
        assert.equal((await get(page, "person 1")).number, 1);
        stop(urls[0]);
        const lookup = get(page, "person 2");
        await triesAgain(page);
        move(0, await serve(table, scheme, ...WEB));
        assert.equal((await lookup).number, 2);
        assert.equal(await get(page, "nobody"), null);
        await page.close();
    });
}

test("a slow line brings what it brings, also when a server starts again", TIMEOUT, async () => {
    const url = await serve(wide, "download", ...WEB);
    const { line, through } = slowLine();
    const { urls, move } = await recorded([url], through);
    const page = await opened();
    const begun = connect(page, urls);
    await page.waitForFunction(() =>
        window.told?.some(({ done, total }) => done > 0 && done < total),
    );
    stop(url);
    // Much of the table is on its way.
    line.isCut = true;
    await triesAgain(page);
    line.isCut = false;
    move(0, await serve(wide, "download", ...WEB));
    await begun;
    assert.equal((await get(page, "person 42")).number, 42);
    await page.close();
});

test("a page that was offline goes on", TIMEOUT, async () => {
    const page = await connected(await serveAll(table, "dpf", ...WEB));
    await page.context().setOffline(true);
    const lookups = find(page, ["person 3", "nobody"]);
    await triesAgain(page);
    await page.context().setOffline(false);
    assert.deepEqual(await lookups, [
        { key: "person 3", found: true, value: { number: 3 } },
        { key: "nobody", found: false },
    ]);
    await page.close();
});

for (const scheme of ["simplepir-packed", "dpf", "dummy-subsets", "singlepass"]) {
    test(`${scheme}: a page follows its table, and to the next`, TIMEOUT, async () => {
        const name = `signed-${scheme}`;
        const key = ["--publisher-key", `${name}.key`];
        privet("keygen", "-o", `${name}.key`);
        const signed = build(name, rows, "--key", "name", "--key-map", "cuckoo", ...key);
        const urls = await serveAll(signed, scheme, "--grace", "1", ...WEB);
        const page = await connected(urls);
        assert.equal((await get(page, "person 1")).number, 1);
        /** Looks up until the page has followed: until the key's value is `number`. */
        const follows = async (key, number) => {
            for (let tries = 0; (await get(page, key))?.number !== number; tries += 1) {
                assert.ok(tries < 100, `the page did not follow to ${number}`);
                await sleep(200);
            }
        };
        privet("update", signed.file, ...key, "--set", 'person 1={"number":1001}');
        await follows("person 1", 1001);
        const next = [...rows, { name: "somebody", number: 5000 }];
        const later = `${name}-later`;
        build(later, next, "--key", "name", "--succeeds", signed.file, ...key);
        for (const end of [".privet", ".privet.updates"]) {
            renameSync(path.join(folder, later + end), path.join(folder, name + end));
        }
        await follows("somebody", 5000);
        const keys = ["person 1", "person 99", "nobody"];
        assert.deepEqual(await find(page, keys), native(urls, keys));
        await page.close();
    });
}

/** A scheme whose hints must never be used twice. */
const SINGLE_USE = "dummy-subsets";

/** How a page can end. The last one takes the browser with it. */
const ENDS = [
    (page) => page.close(),
    async (page) => (await page.context().newCDPSession(page)).send("Page.crash"),
    async (page) => (await page.context().newCDPSession(page)).send("Browser.crash"),
];

/**
 * Opens pages that look up, and kills each after some requests. Returns how many queries there
 * were, and how many different ones.
 */
async function killed(points, options) {
    const { urls, seen } = await recorded(await serveAll(table, SINGLE_USE, ...WEB));
    const profile = path.join(folder, `profile-${options ? "planted" : "usual"}`);
    let context;
    for (let point = 0; point < points; point += 1) {
        context ??= await persistent(profile);
        const page = await opened(context);
        const busy = connect(page, urls, options).then(() =>
            page.evaluate(async () => {
                for (let number = 0; ; number += 1) {
                    await window.client.get(`person ${number % 5}`);
                }
            }),
        );
        const over = busy.catch(() => undefined);
        const last = seen.length + Math.random() * 12;
        for (let tries = 0; seen.length < last && tries < 1000; tries += 1) {
            await sleep(Math.random() * 20);
        }
        const way = point % 10 === 9 ? 2 : point % 2;
        await Promise.race([ENDS[way](page).catch(() => undefined), over]);
        await over;
        await page.close().catch(() => undefined);
        if (way === 2) {
            await context.close().catch(() => undefined);
            context = undefined;
        }
    }
    await context?.close();
    const queries = queriesOf(seen).filter(({ digest }) => digest);
    return [queries.length, new Set(queries.map(({ digest }) => digest)).size];
}

test("a page that is killed anywhere sends no query twice", TIMEOUT, async (t) => {
    const [queries, different] = await killed(30);
    t.diagnostic(`${queries} queries`);
    assert.ok(queries > 30);
    assert.equal(different, queries);
});

test("coins that come again are caught", TIMEOUT, async () => {
    // How many coins a page tosses before its first query depends on how fast it computes. So not
    // every page repeats another one.
    let queries = 0;
    for (let attempt = 0; attempt < 10; attempt += 1) {
        const [some, different] = await killed(6, { planted: { coins: "the same" } });
        if (different < some) {
            return;
        }
        queries += some;
    }
    assert.fail(`${queries} queries, all different`);
});

test("clients that are closed leave no request and no worker behind", TIMEOUT, async () => {
    const { urls, seen, underWay } = await recorded(await serveAll(table, "dpf", ...WEB));
    const page = await opened();
    await page.evaluate(async (urls) => {
        for (let number = 0; number < 40; number += 1) {
            const abort = new AbortController();
            const connected = window.privet.connect(urls, { signal: abort.signal });
            if (number % 2) {
                setTimeout(() => abort.abort(), number);
                await connected.then(
                    (client) => client.close(),
                    () => undefined,
                );
            } else {
                const client = await connected;
                const lookup = client.get("person 1").catch(() => undefined);
                await new Promise((later) => setTimeout(later, number / 4));
                client.close();
                await lookup;
            }
        }
    }, urls);
    await sleep(500);
    const before = seen.length;
    assert.ok(before > 40);
    await sleep(1000);
    assert.equal(seen.length, before);
    assert.equal(underWay(), 0);
    assert.deepEqual(page.workers(), []);
    await page.close();
});

test("a page whose worker does not begin hears of it", TIMEOUT, async () => {
    const urls = await serveAll(table, "dpf", ...WEB);
    await assert.rejects(connected(urls, { worker: `${origin}/nowhere.js` }), /InternalError/);
});
