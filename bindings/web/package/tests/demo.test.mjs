/**
 * The page of `privet demo --web`, driven as a visitor drives it. A program that was built without
 * the page has nothing to test: `scripts/check-demo.sh` builds one with it, and sets PRIVET_PAGE.
 */

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import http from "node:http";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { demo, idle } from "./demo.mjs";

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium-headless-shell";
const NOBODY = "Nobody Whatsoever 77";

const program = await demo("--entries", "2000");
const skip = process.env.PRIVET_PAGE
    ? false
    : program.complaint?.includes("without its page")
      ? "the program was built without its page"
      : existsSync(CHROMIUM)
        ? false
        : `there is no ${CHROMIUM}`;
let browser, stage;

before(async () => {
    if (!skip) {
        assert.ok(program.url, program.complaint);
        stage = await (await program.ask("/api/stage")).json();
        browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
    }
});
after(async () => {
    await browser?.close();
    await program.end();
});

/** The page, ready, with whatever its browser complained about. */
async function opened(options = {}, from = browser) {
    const page = await from.newPage({ viewport: { width: 1280, height: 900 }, ...options });
    page.complaints = [];
    page.on("pageerror", (error) => page.complaints.push(String(error)));
    page.on("console", (said) => {
        if (said.type() === "error") {
            page.complaints.push(said.text());
        }
    });
    await page.goto(program.url);
    await idle(page);
    return page;
}

async function look(page, key) {
    await page.fill("#key", key);
    await page.click("#look");
    await idle(page);
}

/** All that servers saw, as the program tells it. */
async function seen() {
    const body = Buffer.from(await (await program.ask("/api/seen?after=0")).arrayBuffer());
    const end = body.indexOf(10);
    return { sights: JSON.parse(body.subarray(0, end).toString()), body };
}

const text = (page, id) => page.textContent(`#${id}`);

test("a private lookup finds, and the server's side has no name", { skip }, async () => {
    const page = await opened();
    const name = stage.examples[1];
    for (const mode of ["one", "two"]) {
        await page.check(`input[value=${mode}]`, { force: true });
        await idle(page);
        const from = (await seen()).sights.at(-1)?.number ?? 0;
        await look(page, name);
        assert.match(await text(page, "result"), /phone555-\d{7}floor\d+/);
        await look(page, name);
        await look(page, NOBODY);
        assert.match(await text(page, "result"), /does not have it/);
        const { sights, body } = await seen();
        const now = sights.filter(({ number }) => number > from);
        assert.equal(now.length, 3 * (mode === "one" ? 1 : 2));
        assert.equal(new Set(now.map(({ length }) => length)).size, 1);
        // The server's side of the page, and all that the program tells of it.
        const told = [await text(page, "sight"), await text(page, "verdict")];
        told.push(body.toString("latin1"));
        for (const row of await page.$$("#rows [role=row]")) {
            told.push(await (await row.$("[role=cell]:last-child")).textContent());
        }
        for (const key of [name, NOBODY, encodeURIComponent(name)]) {
            assert.ok(!told.some((told) => told.includes(key)), mode);
        }
        const verdict = await text(page, "verdict");
        assert.match(verdict, /same length; \d\d\.\d\s% of bits agree, as by chance\./);
    }
    assert.deepEqual(page.complaints, []);
    await page.close();
});

test("a plain lookup shows the server what was asked", { skip }, async () => {
    const page = await opened();
    await page.check("input[value=plain]", { force: true });
    await idle(page);
    await look(page, NOBODY);
    assert.ok((await text(page, "sight")).includes(encodeURIComponent(NOBODY)));
    assert.ok((await seen()).body.toString().includes(encodeURIComponent(NOBODY)));
    assert.match(await text(page, "verdict"), /reads what you asked/);
    await page.close();
});

test("a lookup that fails leaves nothing of the one before", { skip }, async () => {
    const page = await opened();
    await page.check("input[value=plain]", { force: true });
    await idle(page);
    await page.route("**/plain?*", (route) => route.abort());
    await look(page, NOBODY);
    assert.match(await text(page, "result"), /Error/);
    for (const id of ["figures", "verdict", "sight"]) {
        assert.equal(await text(page, id), "", id);
    }
    await page.close();
});

test("of two pages that look up at once, each shows its own", { skip }, async () => {
    const context = await browser.newContext();
    const pages = [await opened({}, context), await opened({}, context)];
    for (let round = 0; round < 10; round += 1) {
        await Promise.all(pages.map((page, place) => look(page, stage.examples[place])));
        for (const page of pages) {
            assert.equal(await page.locator("#sight figure").count(), 1);
        }
    }
    await context.close();
});

test("the game is won by half, by a leak or a plain request nearly always", { skip }, async () => {
    const page = await opened();
    await page.check("input[value=two]", { force: true });
    await idle(page);
    const share = async (name) => {
        await page.click("#play");
        await page.waitForFunction(
            () => document.querySelector("#play").textContent === "Play 100 rounds",
            undefined,
            { timeout: 240_000 },
        );
        const words = await page.getAttribute("#plot svg", "aria-label");
        const [, percent, rounds] = new RegExp(`${name}: right in (\\d+) % of (\\d+)`).exec(words);
        return [Number(percent), Number(rounds)];
    };
    assert.equal(await text(page, "watched"), "watches dpf, one server of two");
    await share("without a leak");
    const [honest, rounds] = await share("without a leak");
    assert.equal(rounds, 200);
    // Of 200 coins, six standard deviations are 42: beyond, one in five hundred million is.
    assert.ok(Math.abs(honest - 50) <= 21.5, `${honest} %`);
    await page.check("#leak");
    const [leaky] = await share("with the leak");
    assert.ok(leaky >= 80, `${leaky} %`);
    // Another scheme is another game.
    await page.uncheck("#leak");
    await page.check("input[value=plain]", { force: true });
    await idle(page);
    assert.equal(await text(page, "watched"), "watches ordinary requests");
    const [plain, plainly] = await share("without a leak");
    assert.equal(plainly, 100);
    assert.ok(plain >= 80, `${plain} %`);
    assert.deepEqual(page.complaints, []);
    await page.close();
});

test("a liar is believed by one scheme and refused by another", { skip }, async () => {
    const page = await opened();
    await look(page, stage.examples[2]);
    await page.click("#lie");
    await page.waitForSelector("#lie:not([disabled])");
    assert.match(await text(page, "believed"), /phone666-6666666/);
    assert.match(await text(page, "believed .wrong"), /^phone666-6666666$/);
    assert.match(await text(page, "caught"), /Refused.*IntegrityError/);
    await page.close();
});

test("schemes are listed with their costs, and with what was measured", { skip }, async () => {
    const page = await opened();
    await page.locator("#costs-title").scrollIntoViewIfNeeded();
    await page.waitForSelector("#costs-table td", { timeout: 120_000 });
    const table = await text(page, "costs-table");
    for (const scheme of ["download", "dpf", "simplepir-packed", "measured"]) {
        assert.ok(table.includes(scheme), table);
    }
    await page.close();
});

for (const width of [390, 1280]) {
    test(`at ${width} pixels nothing is cut, nothing jumps, all has names`, { skip }, async () => {
        const page = await opened({ viewport: { width, height: 844 } });
        const places = () =>
            page.evaluate(() =>
                ["look", "sight", "verdict", "rows", "game", "lies", "costs"].map(
                    (id) => document.getElementById(id).getBoundingClientRect().top + scrollY,
                ),
            );
        const before = await places();
        for (const mode of ["two", "plain", "one"]) {
            await page.check(`input[value=${mode}]`, { force: true });
            await idle(page);
            await look(page, NOBODY);
            assert.deepEqual(await places(), before, mode);
        }
        const { wide, unnamed } = await page.evaluate(() => {
            const named = (one) =>
                (one.labels?.length && [...one.labels].some((label) => label.textContent.trim())) ||
                one.getAttribute("aria-label") ||
                one.textContent.trim();
            const all = document.querySelectorAll("input, button, [role=img], [role=listbox]");
            return {
                wide: document.documentElement.scrollWidth - innerWidth,
                unnamed: [...all].filter((one) => !named(one)).map((one) => one.outerHTML),
            };
        });
        assert.ok(wide <= 0, `${wide} pixels too wide`);
        assert.deepEqual(unnamed, []);
        await page.close();
    });
}

test("the keyboard completes a name and looks it up", { skip }, async () => {
    const page = await opened();
    const name = stage.examples[1];
    await page.focus("#key");
    await page.fill("#key", "");
    await page.keyboard.type(name.slice(0, -1));
    await page.keyboard.press("ArrowDown");
    const active = await page.getAttribute("#key", "aria-activedescendant");
    const offered = await page.textContent(`#${active}`);
    await page.keyboard.press("Enter");
    await page.waitForFunction(
        (key) => document.querySelector("#result h4")?.textContent === key,
        offered,
    );
    assert.equal(await page.getAttribute("#key", "aria-expanded"), "false");
    await page.close();
});

test("without the address that was printed, nothing is told", { skip }, async () => {
    const page = await browser.newPage();
    const bare = new URL("/", program.url);
    await page.goto(String(bare));
    await page.waitForSelector("#result .wrong");
    assert.match(await text(page, "result"), /open the whole address that the program printed/);
    assert.equal((await fetch(new URL("/api/seen?after=0", bare))).status, 403);
    // The whole address in the same tab.
    await page.goto(program.url);
    await idle(page);
    await page.close();
});

test("another page reads nothing of it", { skip }, async () => {
    const elsewhere = http.createServer((_, response) => {
        response.writeHead(200, { "content-type": "text/html" });
        response.end("<!doctype html><title>elsewhere</title>");
    });
    await new Promise((listening) => elsewhere.listen(0, "127.0.0.1", listening));
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${elsewhere.address().port}`);
    const read = await page.evaluate(
        (url) => fetch(url).then((it) => it.text(), () => "nothing"),
        String(new URL("/api/seen?after=0", program.url)),
    );
    assert.equal(read, "nothing");
    // A name that leads to this machine is another one than the page's.
    const { port } = new URL(program.url);
    const status = await new Promise((resolve) => {
        const headers = { host: `page.example:${port}` };
        http.get({ host: "127.0.0.1", port, path: "/api/seen", headers }, (response) => {
            response.resume();
            resolve(response.statusCode);
        });
    });
    assert.equal(status, 421);
    elsewhere.close();
    elsewhere.closeAllConnections();
    await page.close();
});
