/** An address that stays while what stands behind it changes, for tests of what clients keep. */

import http from "node:http";
import { after } from "node:test";

/** Passes on to the server at `url`, after `delay` milliseconds, and counts what is asked for. */
export async function front(url) {
    const state = { url, fetched: 0, described: 0, delay: 0, address: "" };
    const server = http.createServer((request, response) => {
        const { host: _, ...headers } = request.headers;
        const { method, url: path } = request;
        const onward = http.request(`${state.url}${path}`, { method, headers });
        if (method === "POST") {
            state.fetched += path.endsWith("/Fetch") ? 1 : 0;
            state.described += path.endsWith("/Describe") ? 1 : 0;
        }
        setTimeout(() => request.pipe(onward), state.delay);
        onward.on("response", (came) => {
            response.writeHead(came.statusCode, came.headers);
            came.pipe(response);
        });
        onward.on("error", () => response.destroy());
        response.on("close", () => onward.destroy());
    });
    await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
    after(() => {
        server.close();
        server.closeAllConnections();
    });
    state.address = `http://127.0.0.1:${server.address().port}`;
    return state;
}
