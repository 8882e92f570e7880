/** When queries leave a page says nothing of what it looks up, nor of what it found. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { connect, opened, origin, watched } from "./page.mjs";
import { build, RECOMMENDED, serveAll } from "./place.mjs";
import { rankDistance, shuffled } from "./ranks.mjs";
import { caughtUp, queriesOf, recorded } from "./recorder.mjs";

/** Chance alone goes beyond this once in 500 million times. */
const LIMIT = 6;
/** Lookups of each kind. If two kinds have nothing in common, they are far beyond the limit. */
const LOOKUPS = 40;
/** How often a mistake is sought before it counts as missed: a busy machine hides it longer. */
const ATTEMPTS = 8;

const rows = Array.from({ length: 200 }, (_, row) => ({
    name: row < 100 ? `person ${row}` : `slow ${row}`,
    number: row,
    note: row === 7 ? "long".repeat(100) : "",
}));
const table = build("people", rows, "--key", "name", "--key-map", "cuckoo");
assert.equal(table.report.stash_entries, 1);

/** What may be looked up: about half of the hits lie in the second of their two records. */
const KINDS = {
    hit: (n) => `person ${10 + n}`,
    repeated: () => "person 3",
    stashed: () => "person 7",
    miss: (n) => `nobody ${n}`,
};
/** With mistakes, kinds that show them. */
const PACES = { usual: KINDS.hit, slow: (n) => `slow ${100 + n}` };

/** A page with a client of `scheme`, and what there is to see of it. */
async function observed(scheme, options) {
    const { urls, seen } = await recorded(await serveAll(table, scheme, "--web-origin", origin));
    const page = await opened();
    const left = watched(page, urls);
    await connect(page, urls, options);
    return { page, seen, left };
}

/**
 * Looks keys of these kinds up, one after the other, in an order that chance decides. Returns for
 * each kind how long it took from the call until the browser sent the queries, and from the last
 * answer until the servers had the queries of the next lookup, in milliseconds.
 */
async function measured({ page, seen, left }, kinds) {
    const order = shuffled(
        Object.entries(kinds).flatMap(([kind, key]) =>
            Array.from({ length: LOOKUPS }, (_, n) => ({ kind, key: key(n) })),
        ),
    );
    seen.length = left.length = 0;
    const called = await page.evaluate(
        async (keys) => {
            const called = [];
            for (const key of keys) {
                called.push(performance.timeOrigin + performance.now());
                await window.client.get(key);
            }
            return called;
        },
        order.map(({ key }) => key),
    );
    await caughtUp([seen, left]);
    const atServers = queriesOf(seen);
    const inBrowser = queriesOf(left);
    const each = atServers.length / order.length;
    assert.ok(Number.isInteger(each) && inBrowser.length === atServers.length);
    const times = Object.fromEntries(
        Object.keys(kinds).map((kind) => [kind, { sent: [], next: [] }]),
    );
    order.forEach(({ kind }, place) => {
        const [from, to] = [place * each, (place + 1) * each];
        const { sent, next } = times[kind];
        for (const { request } of inBrowser.slice(from, to)) {
            sent.push(request.timing().startTime - called[place]);
        }
        const answered = Math.max(...atServers.slice(from, to).map(({ left }) => left));
        for (const { came } of atServers.slice(to, to + each)) {
            next.push(came - answered);
        }
    });
    return times;
}

/** By how much two kinds differ, in the measure that shows it most. */
function difference(one, other) {
    const distances = ["sent", "next"].map((of) => Math.abs(rankDistance(one[of], other[of])));
    return Math.max(...distances);
}

// A client that downloads the table sends no queries.
for (const scheme of RECOMMENDED.filter((scheme) => scheme !== "download")) {
    test(`${scheme}: moments do not depend on keys`, { timeout: 300_000 }, async (t) => {
        const world = await observed(scheme);
        const times = await measured(world, KINDS);
        for (const kind of ["repeated", "stashed", "miss"]) {
            const distance = difference(times[kind], times.hit);
            t.diagnostic(`${kind}: ${distance.toFixed(1)} deviations from hit`);
            assert.ok(distance < LIMIT, `${kind}: ${distance}`);
        }
        await world.page.close();
    });
}

/** Work about some keys takes 16 ms longer. By a clock in steps of 8 ms, a slot has 32 ms. */
const WITHIN = { query: 16, answer: 16, step: 8 };

test("what takes longer within its slot does not show", { timeout: 300_000 }, async (t) => {
    const world = await observed("dpf", { planted: WITHIN });
    const { usual, slow } = await measured(world, PACES);
    t.diagnostic(`${difference(usual, slow).toFixed(1)} deviations`);
    assert.ok(difference(usual, slow) < LIMIT);
    await world.page.close();
});

/**
 * Mistakes in the program, or work that is longer by four slots than its slot of 16 ms; and the
 * measure in which each has to show.
 */
const MISTAKES = [
    ["four slots more for some keys", "sent", { query: 80, step: 4 }],
    ["queries that leave when they are ready", "sent", { ...WITHIN, flaw: "SendsWhenDone" }],
    ["answers that are told when they are read", "next", { ...WITHIN, flaw: "ReadsWithoutSlot" }],
];
for (const [name, measure, planted] of MISTAKES) {
    test(`${name} are caught`, { timeout: 300_000 }, async (t) => {
        const world = await observed("dpf", { planted });
        const found = { usual: [], slow: [] };
        for (let attempt = 1, distance = 0; distance < LIMIT; attempt += 1) {
            assert.ok(attempt <= ATTEMPTS, `${distance} deviations`);
            const times = await measured(world, PACES);
            found.usual.push(...times.usual[measure]);
            found.slow.push(...times.slow[measure]);
            distance = Math.abs(rankDistance(found.usual, found.slow));
            t.diagnostic(`${distance.toFixed(1)} deviations`);
        }
        await world.page.close();
    });
}

test("two samples of one kind are told from samples of two", () => {
    const sample = (shift) => Array.from({ length: 40 }, () => Math.random() ** 4 + shift);
    const same = Array.from({ length: 40 }, () => 1);
    assert.equal(rankDistance(same, same), 0);
    assert.ok(Math.abs(rankDistance(sample(0), sample(0))) < LIMIT);
    assert.ok(rankDistance(sample(1), sample(0)) > LIMIT);
});
