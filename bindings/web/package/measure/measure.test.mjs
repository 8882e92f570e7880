/** The command that measures lookups of pages works, and a wrong record ends it. */

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";
import { folder } from "../tests/place.mjs";

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium-headless-shell";
const PRIVET = path.resolve(process.env.PRIVET ?? "../../../target/debug/privet");
const MEASURE = path.resolve("../../../scripts/measure-web.sh");

const succeeds = (program, ...args) => spawnSync(program, args).status === 0;

/** Whether a namespace of the network can be made, with a device in it as a line needs it. */
function canHaveLine() {
    const name = `privet-trial-${process.pid}`;
    const device = ["ip", "tuntap", "add", "trial", "mode", "tun"];
    const can =
        succeeds("ip", "netns", "add", name) &&
        succeeds("ip", "netns", "exec", name, ...device);
    succeeds("ip", "netns", "del", name);
    return can;
}

const lacking =
    [CHROMIUM, "ip", "python3", "openssl", "caddy"].find((it) => !succeeds("which", it)) ??
    (canHaveLine() ? undefined : "root that may make namespaces of the network, and /dev/net/tun");
const options = { skip: lacking ? `needs ${lacking}` : false, concurrency: true };

/** Measures one place. Returns the exit status and what was said. */
async function measured(privet, ...args) {
    const measure = spawn(MEASURE, ["--quick", "--rounds", "1", ...args], {
        env: { ...process.env, PRIVET: privet },
        stdio: ["ignore", "ignore", "pipe"],
        // It takes its namespaces with it.
        timeout: 300_000,
        killSignal: "SIGTERM",
    });
    process.once("exit", () => measure.kill());
    let said = "";
    measure.stderr.on("data", (piece) => (said += piece));
    const [status] = await once(measure, "close");
    return { status, said };
}

describe("measure-web.sh", options, () => {
    test("a quick run measures", async () => {
        const out = path.join(folder, "times.md");
        const { status, said } = await measured(PRIVET, "--out", out, "dpf", "size");
        assert.equal(status, 0, said);
        const report = readFileSync(out, "utf8");
        assert.match(report, /^\| dpf.*? \| \d+ \(\d+–\d+\) \|/m);
        assert.match(report, /KB by brotli/);
    });
    test("a wrong record ends the measurement", async () => {
        const out = path.join(folder, "none.md");
        const liar = path.join(folder, "liar");
        const changed = `sed 's/"value":"\\./"value":"!/' | exec "${PRIVET}" "$@"`;
        writeFileSync(
            liar,
            `#!/bin/sh\nif [ "$1" = build ]; then ${changed}; else exec "${PRIVET}" "$@"; fi\n`,
            { mode: 0o755 },
        );
        const { status, said } = await measured(liar, "--out", out, "dpf");
        assert.equal(status, 1, said);
        assert.match(said, /measure-web: record \d+ came as "!/);
        assert.ok(!existsSync(out));
    });
});
