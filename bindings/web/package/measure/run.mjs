/**
 * Measures how long lookups of pages take over a line, checks every record, and writes a table in
 * Markdown. scripts/measure-web.sh makes the line and calls this.
 */

import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { APART, APART_FROM_TWO, PLACES, Table } from "./place.mjs";
import { fail, front, launched, opened, programs, received, serving } from "./place.mjs";

const ROWS = {
    cold,
    warm,
    dpf: () => two("dpf"),
    "apir-dpf": () => two("apir-dpf"),
    singlepass: () => two("singlepass"),
    "tapir-mt": () => two("tapir-mt"),
    simplepir,
    size,
};
const { values: given, positionals: rows } = parseArgs({
    options: {
        quick: { type: "boolean", default: false },
        rounds: { type: "string" },
        out: { type: "string", default: "target/measure-web.md" },
    },
    allowPositionals: true,
});
const rounds = Number(given.rounds ?? (given.quick ? 2 : 20));
if (!(rounds >= 1) || rows.some((row) => !(row in ROWS))) {
    fail(`rows are ${Object.keys(ROWS).join(", ")}; --rounds takes a number from 1`);
}

const records = (count) => (given.quick ? 2000 : count);
// 1 GiB each, the first with tags and gaps; then 50 MB.
const keyed = new Table("keyed", records(4_500_000), 205, "--key", "key", "--key-map", "cuckoo");
const numbered = new Table("numbered", records(1 << 20), 1024);
const small = new Table("small", records(1_600_000), 32);

/** Milliseconds between lookups, in which the next query is made ahead. */
const REST = 600;
/** Milliseconds after which nothing that was made ahead is left. */
const LONG_REST = 3000;

const lines = [];
const notes = [];

function row(what, where, target, times, works, besides) {
    const cells = [what, where, summary(times, 0), summary(works, 1), summary(besides, 1)];
    lines.push(`| ${[...cells, target].join(" | ")} |`);
    console.error(lines.at(-1));
}

/** The median, and between what the middle half lies. */
function summary(times, digits) {
    if (!times) {
        return "";
    }
    const sorted = times.toSorted((one, other) => one - other);
    const at = (part) => sorted[Math.round((sorted.length - 1) * part)].toFixed(digits);
    return `${at(0.5)} (${at(0.25)}–${at(0.75)})`;
}

const any = (table) => Math.floor(Math.random() * table.records);

function check(table, record, got) {
    if (got.text !== table.value(record)) {
        fail(`record ${record} came as ${JSON.stringify(got.text)}`);
    }
}

/** A page is opened by a browser with an empty profile, and looks a key up. */
async function cold() {
    const end = await serving(keyed, "simplepir-packed", ["plain", "encrypted"]);
    const times = new Map(PLACES.map((place) => [place, []]));
    for (let round = 0; round < rounds; round += 1) {
        for (const place of PLACES) {
            const record = any(keyed);
            const { browser, page } = await opened(place, keyed.key(record));
            const got = await page.evaluate(() => window.first);
            await browser.close();
            check(keyed, record, got);
            times.get(place).push(got.ended);
        }
    }
    await end();
    for (const [place, took] of times) {
        const target = place.isOne ? "≤ 1200" : "≤ 1400";
        row("cold, 1 GiB by keys", place.name, target, took);
    }
}

/** Lookups of a page that has looked something up before. */
async function warm() {
    for (const [table, queries, target] of [
        [numbered, "one query", "≤ 300, of it ≤ 25"],
        [keyed, "two queries", "≤ 450, of it ≤ 40"],
    ]) {
        const end = await serving(table, "simplepir-packed", ["plain", "encrypted"]);
        for (const place of PLACES) {
            await looked(table, `warm, 1 GiB, ${queries}`, place, target);
        }
        await end();
    }
}

/** Schemes of two servers. The page is of neither's origin. */
async function two(scheme) {
    const end = await serving(small, scheme, ["encrypted", "second"]);
    await looked(small, `${scheme}, 50 MB`, APART_FROM_TWO, "of it ≤ 4");
    await end();
}

async function simplepir() {
    const end = await serving(small, "simplepir", ["encrypted"]);
    await looked(small, "simplepir, 50 MB, made ahead", APART, "of it ≤ 5");
    await looked(small, "simplepir, 50 MB, not made ahead", APART, "of it ≤ 120", LONG_REST);
    await end();
}

/** Measures lookups by one page, one after the other. */
async function looked(table, what, place, target, rest = REST) {
    const first = any(table);
    const options = { worker: "/worker.js" };
    const { browser, page } = await opened(place, table.key(first), options);
    check(table, first, await page.evaluate(() => window.first));
    const all = [];
    for (let round = 0; round < rounds; round += 1) {
        await pause(rest);
        const record = any(table);
        const got = await page.evaluate((key) => window.get(key), table.key(record));
        check(table, record, got);
        all.push(got);
    }
    await browser.close();
    const times = all.map(({ began, ended }) => ended - began);
    const works = all.map(({ work }) => work);
    const besides = all.map(({ beside }) => beside);
    row(what, place.name, target, times, works, besides);
}

function size() {
    for (const program of programs()) {
        const kilobytes = (received(program) / 1000).toFixed(0);
        notes.push(`${path.basename(program)}: ${kilobytes} KB by brotli`);
    }
}

/** What the line and the browser are, as a page sees them. */
async function line() {
    const browser = await launched();
    const page = await browser.newPage();
    await page.goto("http://page.localhost/filler.html");
    const { trip, megabits } = await page.evaluate(() => {
        const [entry] = performance.getEntriesByType("navigation");
        const { connectStart, connectEnd, responseStart, responseEnd, encodedBodySize } = entry;
        const milliseconds = responseEnd - responseStart;
        return {
            trip: connectEnd - connectStart,
            megabits: (encodedBodySize * 8) / milliseconds / 1e3,
        };
    });
    notes.push(`line: ${trip.toFixed(1)} ms to connect, ${megabits.toFixed(1)} Mbit/s down`);
    notes.push(`browser: Chromium ${browser.version()}`);
    await browser.close();
}

/** What machine this is, and how fast and how busy. */
function machine(load) {
    const bench = "bench --scheme dpf --records 2^20 --record-len 32 --queries 1 --json";
    const { yardsticks } = JSON.parse(execFileSync(process.env.PRIVET, bench.split(" ")));
    const processors = os.cpus();
    const reads = yardsticks.read_gbps.toFixed(1);
    const blocks = (yardsticks.aes_blocks_per_s / 1e9).toFixed(2);
    notes.push(`machine: ${processors.length} × ${processors[0].model.trim()}`);
    notes.push(`one core: reads ${reads} GB/s, makes ${blocks} × 10⁹ blocks of AES a second`);
    notes.push(`load before and after: ${load.toFixed(1)}, ${os.loadavg()[0].toFixed(1)}`);
}

if (given.quick) {
    notes.push("a quick run: every table has 2000 records");
}
const [load] = os.loadavg();
await front();
await line();
for (const name of rows.length > 0 ? rows : Object.keys(ROWS)) {
    await ROWS[name]();
}
machine(load);
const report = `# Lookups of pages

Milliseconds: the median of ${rounds}, and between what the middle half of them lies. *Work* is that
of the client's program between key and record; *beside* is its other work since the last record.

| | page and server | page opened or key asked → record | work | beside | at most |
|---|---|---|---|---|---|
${lines.join("\n")}

${notes.map((note) => `- ${note}`).join("\n")}
`;
console.log(report);
writeFileSync(given.out, report);
process.exit();
