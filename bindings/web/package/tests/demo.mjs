/** The demonstration with its page, as a program of its own. */

import { spawn } from "node:child_process";
import path from "node:path";

const PRIVET = path.resolve(process.env.PRIVET ?? "../../../target/debug/privet");

/**
 * Starts it. Returns its address and how to ask it as its page does, or why there is none; and how
 * to end it.
 */
export async function demo(...args) {
    const program = spawn(PRIVET, ["demo", "--web", "--listen", "127.0.0.1:0", ...args], {
        stdio: ["ignore", "pipe", "pipe"],
    });
    let complaint = "";
    program.stderr.on("data", (piece) => (complaint += piece));
    const ended = new Promise((ended) => program.on("close", ended));
    const end = () => {
        program.kill();
        return ended;
    };
    let said = "";
    for await (const piece of program.stdout) {
        said += piece;
        const url = /the page is at (\S+)\n/.exec(said)?.[1];
        if (url) {
            program.stdout.resume();
            const headers = { "x-privet-token": new URL(url).hash.slice(1) };
            const ask = (path) => fetch(new URL(path, url), { headers });
            return { url, ask, end };
        }
    }
    await ended;
    return { complaint, end };
}

/** Waits until the page has nothing under way. */
export async function idle(page) {
    await page.waitForSelector("body[data-ready]:not([aria-busy])", { timeout: 120_000 });
}
