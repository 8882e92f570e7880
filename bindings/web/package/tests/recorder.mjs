/** Stands before servers and notes what leaves a client. */

import http from "node:http";
import { after } from "node:test";

/**
 * Passes everything on to the servers at `urls`. Returns the addresses to use instead, and what
 * left: to which server, which method, how many bytes, in order.
 */
export async function recorded(urls) {
    const seen = [];
    const fronts = urls.map(async (url, server) => {
        const front = http.createServer((request, response) => {
            const entry = { server, method: request.url.split("/").at(-1), bytes: 0, headers: "" };
            entry.headers = Object.keys(request.headers).sort().join();
            const { url: path, method } = request;
            // A browser asks by itself whether a page may ask, when it has forgotten.
            if (method === "POST") {
                seen.push(entry);
            }
            const { host: _, ...headers } = request.headers;
            const onward = http.request(`${url}${path}`, { method, headers });
            request.on("data", (piece) => (entry.bytes += piece.length));
            request.pipe(onward);
            onward.on("response", (came) => {
                response.writeHead(came.statusCode, came.headers);
                came.pipe(response);
            });
            onward.on("error", () => response.destroy());
            response.on("close", () => onward.destroy());
        });
        await new Promise((listening) => front.listen(0, "127.0.0.1", listening));
        after(() => {
            front.close();
            front.closeAllConnections();
        });
        return `http://127.0.0.1:${front.address().port}`;
    });
    return { urls: await Promise.all(fronts), seen };
}

/**
 * What left for each of `lookups`, one after the other: as text, to compare. Each server's part
 * comes by itself, for no server sees in which order two connections bring requests to two servers.
 */
export async function footprints(seen, lookups) {
    const prints = [];
    for (const lookup of lookups) {
        seen.length = 0;
        await lookup();
        // What belongs to the next hints comes when it comes: the number of lookups decides.
        const queries = seen.filter(({ method }) => method === "Answer");
        queries.sort((one, other) => one.server - other.server);
        prints.push(
            queries.map(({ server, bytes, headers }) => `${server} ${bytes} ${headers}\n`).join(""),
        );
    }
    return prints;
}
