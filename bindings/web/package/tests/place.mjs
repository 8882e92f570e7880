/** A folder with tables, and servers of them, for a test file. */

import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after } from "node:test";

/** The command `privet`, which builds and serves. */
const PRIVET = path.resolve(process.env.PRIVET ?? "../../../target/debug/privet");

/** The schemes of the product that soon answer for a table of keys, each with its servers. */
export const SCHEMES = {
    simplepir: 1,
    "simplepir-packed": 1,
    dpf: 2,
    "dummy-subsets": 1,
    "dummy-subsets-two": 2,
    harmony: 1,
    piano: 1,
    "piano-all-parities": 1,
    singlepass: 2,
    "tapir-mt": 2,
    "apir-dpf": 2,
    "apir-matrix-mt": 2,
    download: 1,
};

/** Those that docs/schemes.md recommends. */
export const RECOMMENDED = [
    "download",
    "simplepir-packed",
    "dpf",
    "apir-matrix-mt",
    "dummy-subsets",
];

export const folder = mkdtempSync(path.join(tmpdir(), "privet-web-"));
const servers = new Map();

function clear() {
    for (const server of servers.values()) {
        server.kill("SIGKILL");
    }
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
}
after(clear);
// Also when a signal ends this program, or it ends itself.
process.once("exit", clear);
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.once(signal, () => process.exit(1));
}

/** Runs the command. Returns what it prints. */
export function privet(...args) {
    return execFileSync(PRIVET, args, {
        cwd: folder,
        encoding: "utf8",
        stdio: ["ignore", "pipe", "ignore"],
    });
}

/** Builds a table of rows in JSON. Returns its file, and what the command says of it. */
export function build(name, rows, ...args) {
    writeFileSync(
        path.join(folder, `${name}.jsonl`),
        rows.map((row) => JSON.stringify(row)).join("\n"),
    );
    const said = privet("build", `${name}.jsonl`, "-o", `${name}.privet`, "--json", ...args);
    return { file: `${name}.privet`, report: JSON.parse(said) };
}

/** Starts a server that pages can use, of one table or several. Returns its address. */
export async function serve(tables, scheme, ...args) {
    const files = [tables].flat().map(({ file }) => file);
    const listen = ["--listen", "127.0.0.1:0", "--web", "--no-cache"];
    const server = spawn(PRIVET, ["serve", ...files, "--scheme", scheme, ...listen, ...args], {
        cwd: folder,
        stdio: ["ignore", "pipe", "ignore"],
    });
    let said = "";
    for await (const piece of server.stdout) {
        said += piece;
        const url = /listening at (\S+)/.exec(said)?.[1];
        if (url) {
            server.stdout.resume();
            servers.set(url, server);
            return url;
        }
    }
    throw new Error(`no server of ${scheme}: ${said}`);
}

/** Starts as many servers as the scheme needs. */
export const serveAll = (tables, scheme, ...args) =>
    Promise.all(Array.from({ length: SCHEMES[scheme] }, () => serve(tables, scheme, ...args)));

/** Ends a server at once, as a crash would. */
export function stop(url) {
    servers.get(url).kill("SIGKILL");
    servers.delete(url);
}

/** What the command finds for these keys, as it writes it. */
export function native(urls, keys, ...args) {
    const asked = keys.flatMap((key) => ["--key", key]);
    const state = ["--state", path.join(folder, "state")];
    let said;
    try {
        said = privet("get", ...urls, ...asked, "--json", ...state, ...args);
    } catch (error) {
        // Not found.
        if (error.status !== 1) {
            throw error;
        }
        said = error.stdout;
    }
    return said
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line));
}
