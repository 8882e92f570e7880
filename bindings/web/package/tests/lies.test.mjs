/** Servers that lie: pages find out, and believe nothing. */

import assert from "node:assert/strict";
import { Transform } from "node:stream";
import { test } from "node:test";
import { connected, find, origin } from "./page.mjs";
import { build, serveAll } from "./place.mjs";
import { recorded } from "./recorder.mjs";

const rows = Array.from({ length: 60 }, (_, row) => ({ name: `person ${row}`, number: row }));
const plain = build("plain", rows, "--key", "name");
const vouched = build("vouched", rows, "--key", "name", "--authenticate");
const { root } = vouched.report;
/** Hits, a miss, and one of them again. */
const KEYS = ["person 1", "person 2", "nobody", "person 1"];

/** No answer begins later in a response: before it come a frame's head, and what it answers. */
const ANSWER = 70;

/** Turns a bit around in each byte of a response's answer. */
function lie() {
    const pieces = [];
    return new Transform({
        transform(piece, _, done) {
            pieces.push(piece);
            done();
        },
        flush(done) {
            const body = Buffer.concat(pieces);
            // Frames have a byte of flags, four of their length, and the message.
            const end = body.length > 5 ? 5 + body.readUInt32BE(1) : 0;
            for (let at = ANSWER; at < end; at += 1) {
                body[at] ^= 4;
            }
            done(null, body);
        },
    });
}

/** Servers of which the last answers `method` with lies. */
async function lying(table, scheme, method) {
    const urls = await serveAll(table, scheme, "--web-origin", origin);
    const isLie = (entry) => entry.method === method && entry.server === urls.length - 1;
    return recorded(urls, (entry) => (isLie(entry) ? [lie()] : []));
}

/** Which clients notice a lie in an answer. */
const NOTICED = [
    ["apir-dpf", plain, {}],
    ["apir-matrix-mt", plain, {}],
    ["tapir-mt", plain, {}],
    ["simplepir-packed", vouched, { root }],
    ["dummy-subsets", vouched, { root }],
    ["dpf", vouched, { root }],
];
for (const [scheme, table, options] of NOTICED) {
    const kind = table === vouched ? " with a root" : "";
    test(`${scheme}${kind} refuses a lie`, { timeout: 300_000 }, async () => {
        const { urls } = await lying(table, scheme, "Answer");
        const page = await connected(urls, options);
        const refused = KEYS.map((key) => ({ key, error: "IntegrityError" }));
        assert.deepEqual(await find(page, KEYS), refused);
        await page.close();
    });
}

test("a table that is not the one that the server describes is refused", async () => {
    const { urls } = await lying(plain, "download", "Fetch");
    await assert.rejects(connected(urls), /IntegrityError/);
});
