/** Pages in Chromium, for a test file. */

import { existsSync, readFileSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium-headless-shell";
const TYPES = { js: "text/javascript", mjs: "text/javascript", wasm: "application/wasm" };
/** What the pages' server has: the package, and the same with a program that can be mistaken. */
const FOLDERS = {
    privet: "../dist/",
    planted: "../../../../target/web/planted-package/",
    tests: "./",
};
const PAGE = `<!doctype html><meta charset=utf-8><title>Privet</title>
<script type=module>
import * as privet from "/privet/index.js";
window.privet = privet;
</script>`;
/** As docs/web.md has it. */
const POLICY =
    "default-src 'none'; connect-src 'self' http://127.0.0.1:*; worker-src 'self'; " +
    "script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'";

const server = http.createServer((request, response) => {
    const [, folder, name = ""] = /^\/(\w+)\/([\w./-]+)/.exec(request.url) ?? [];
    const file = FOLDERS[folder] && fileURLToPath(new URL(FOLDERS[folder] + name, import.meta.url));
    const isPage = request.url === "/";
    const isThere = isPage || (file && existsSync(file));
    response.writeHead(isThere ? 200 : 404, {
        "content-type": isPage ? "text/html" : (TYPES[path.extname(name).slice(1)] ?? "text/plain"),
        "content-security-policy": POLICY,
    });
    response.end(isPage ? PAGE : isThere ? readFileSync(file) : "");
});
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));

/** The origin of the pages. */
export const origin = `http://127.0.0.1:${server.address().port}`;

const OPTIONS = { executablePath: CHROMIUM, args: ["--no-sandbox"] };
let browser;

after(async () => {
    await browser?.close();
    server.close();
    server.closeAllConnections();
});

/** A browser that keeps its profile in a folder. */
export const persistent = (folder) => chromium.launchPersistentContext(folder, OPTIONS);

/** An empty page, in a context of its own or in `context`. */
export async function opened(context) {
    browser ??= await chromium.launch(OPTIONS);
    const page = await (context ?? browser).newPage();
    await page.goto(origin);
    await page.waitForFunction(() => window.privet);
    return page;
}

/**
 * Connects a page, and notes what its client tells. With `planted`, the client has mistakes:
 * `planted-worker.mjs` says which.
 */
export async function connect(page, urls, { planted, ...options } = {}) {
    if (planted) {
        options.worker = `${origin}/tests/planted-worker.mjs?${new URLSearchParams(planted)}`;
        options.wasm = `${origin}/planted/wasm/privet_bg.wasm`;
    }
    await page.evaluate(
        async ([urls, options]) => {
            window.told = [];
            const onProgress = (progress) => window.told.push(progress);
            window.client = await window.privet.connect(urls, { ...options, onProgress });
        },
        [urls, options],
    );
    return page;
}

/** A page with a client of these servers. */
export const connected = async (urls, options) => connect(await opened(), urls, options);

/** What a page finds for each of these keys, as the command writes it. */
export const find = (page, keys, areLists = false) =>
    page.evaluate(
        async ([keys, areLists]) => {
            const answers = await window.client.getMany(keys);
            return answers.map((answer) => {
                const { key, found, error } = answer;
                if (error || !found) {
                    return { key, ...(error ? { error: error.name } : { found }) };
                }
                const values = answer.value.all.map((one) => one.json());
                return { key, found, ...(areLists ? { values } : { value: values[0] }) };
            });
        },
        [keys, areLists],
    );

/** Looks a key up. */
export const get = (page, key) =>
    page.evaluate(async (key) => (await window.client.get(key))?.json() ?? null, key);

/** Notes what leaves a page, as its browser says it: as `recorded` has it. */
export function watched(page, urls) {
    const seen = [];
    page.on("request", (request) => {
        const { origin, pathname } = new URL(request.url());
        if (request.method() === "POST") {
            seen.push({
                server: urls.indexOf(origin),
                method: pathname.split("/").at(-1),
                bytes: request.postDataBuffer()?.length ?? 0,
                headers: Object.keys(request.headers()).sort().join(),
                request,
            });
        }
    });
    return seen;
}
