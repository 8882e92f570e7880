/** Stands before servers and notes what leaves a client. */

import { createHash } from "node:crypto";
import http from "node:http";
import { pipeline } from "node:stream";
import { after } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * Passes everything on to the servers at `urls`. Returns the addresses to use instead, and what
 * left: to which server, which method, how many bytes, when, in order. `through` names what a
 * response passes through on its way to the client; `move` has another address stand behind a
 * front; `underWay` says how many requests have no end yet.
 */
export async function recorded(urls, through = () => []) {
    const seen = [];
    const behind = [...urls];
    const open = new Set();
    const fronts = urls.map(async (_, server) => {
        const front = http.createServer((request, response) => {
            const { url: path, method } = request;
            const { host: _, ...headers } = request.headers;
            const entry = {
                server,
                method: path.split("/").at(-1),
                bytes: 0,
                headers: Object.keys(request.headers).sort().join(),
                came: performance.now(),
                left: Infinity,
            };
            // A browser asks by itself whether a page may ask, when it has forgotten.
            if (method === "POST") {
                seen.push(entry);
                open.add(entry);
            }
            const body = createHash("sha256");
            const onward = http.request(`${behind[server]}${path}`, { method, headers });
            request.on("data", (piece) => {
                entry.bytes += piece.length;
                body.update(piece);
            });
            request.on("end", () => (entry.digest = body.digest("hex")));
            request.on("error", () => onward.destroy());
            request.pipe(onward);
            onward.on("response", (came) => {
                response.writeHead(came.statusCode, came.headers);
                pipeline(came, ...through(entry), response, () => {
                    entry.left = performance.now();
                });
            });
            onward.on("error", () => response.destroy());
            response.on("close", () => {
                open.delete(entry);
                onward.destroy();
            });
        });
        await new Promise((listening) => front.listen(0, "127.0.0.1", listening));
        after(() => {
            front.close();
            front.closeAllConnections();
        });
        return `http://127.0.0.1:${front.address().port}`;
    });
    return {
        urls: await Promise.all(fronts),
        seen,
        move: (server, url) => (behind[server] = url),
        underWay: () => open.size,
    };
}

/** The requests with queries among what was seen. */
export const queriesOf = (seen) => seen.filter(({ method }) => method === "Answer");

/** What left, as text, to compare. */
export function footprint(seen) {
    // Each server's part comes by itself, for no server sees in which order two connections bring
    // requests to two servers. What belongs to the next hints comes when it comes: the number of
    // lookups decides.
    const queries = queriesOf(seen).sort((one, other) => one.server - other.server);
    return queries
        .map(({ server, bytes, headers }) => `${server} ${bytes} ${headers}\n`)
        .join("");
}

/** Waits until all observers have seen as many queries as the first: a browser tells them later. */
export async function caughtUp(observers) {
    const counts = () => observers.map((seen) => queriesOf(seen).length);
    for (let tries = 0; tries < 500 && counts().some((count) => count < counts()[0]); tries += 1) {
        await sleep(10);
    }
}

/** What left for each of `lookups`, one after the other, as each of the observers has it. */
export async function footprints(observers, lookups) {
    const prints = observers.map(() => []);
    for (const lookup of lookups) {
        observers.forEach((seen) => (seen.length = 0));
        await lookup();
        await caughtUp(observers);
        observers.forEach((seen, observer) => prints[observer].push(footprint(seen)));
    }
    return prints;
}
