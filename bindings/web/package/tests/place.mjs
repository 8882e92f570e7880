/** A folder with tables, and servers of them, for a test file. */

import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after } from "node:test";

/** The command `privet`, which builds and serves. */
const PRIVET = path.resolve(process.env.PRIVET ?? "../../../target/debug/privet");

export const folder = mkdtempSync(path.join(tmpdir(), "privet-web-"));
const servers = [];

after(() => {
    for (const server of servers) {
        server.kill();
    }
    rmSync(folder, { recursive: true, force: true });
});

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

/** Starts a server that pages can use. Returns its address. */
export async function serve({ file }, scheme, ...args) {
    const server = spawn(
        PRIVET,
        [
            "serve",
            file,
            "--scheme",
            scheme,
            "--listen",
            "127.0.0.1:0",
            "--web",
            "--no-cache",
            ...args,
        ],
        { cwd: folder, stdio: ["ignore", "pipe", "ignore"] },
    );
    servers.push(server);
    let said = "";
    for await (const piece of server.stdout) {
        said += piece;
        const url = /listening at (\S+)/.exec(said)?.[1];
        if (url) {
            server.stdout.resume();
            return url;
        }
    }
    throw new Error(`no server of ${scheme}: ${said}`);
}

/** What the command finds for these keys: bytes of values as text, or nothing. */
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
