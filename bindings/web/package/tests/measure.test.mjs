/** The command that measures lookups of pages works, and a wrong record ends it. */

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { folder } from "./place.mjs";

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium-headless-shell";
const PRIVET = path.resolve(process.env.PRIVET ?? "../../../target/debug/privet");
const MEASURE = path.resolve("../../../scripts/measure-web.sh");

const isThere = (program) => spawnSync("which", [program]).status === 0;
const lacks = [
    [process.getuid() === 0, "root"],
    [existsSync("/dev/net/tun"), "/dev/net/tun"],
    [existsSync(CHROMIUM), CHROMIUM],
    ...["ip", "python3", "openssl", "caddy"].map((program) => [isThere(program), program]),
].find(([has]) => !has);
const skip = lacks ? `needs ${lacks[1]}` : false;

test("a quick run measures every place", { skip, timeout: 600_000 }, () => {
    const out = path.join(folder, "times.md");
    const rows = ["cold", "dpf", "size"];
    execFileSync(MEASURE, ["--quick", "--rounds", "1", "--out", out, ...rows], {
        env: { ...process.env, PRIVET },
        stdio: "ignore",
    });
    const report = readFileSync(out, "utf8");
    const numbers = report.match(/^\| (cold|dpf).*? \| \d+ \(\d+–\d+\) \|/gm) ?? [];
    assert.equal(numbers.length, 5, report);
    assert.match(report, /KB by brotli/);
});

test("a wrong record ends the measurement", { skip, timeout: 600_000 }, () => {
    const out = path.join(folder, "none.md");
    const liar = path.join(folder, "liar");
    const changed = `sed 's/"value":"\\./"value":"!/' | exec "${PRIVET}" "$@"`;
    writeFileSync(
        liar,
        `#!/bin/sh\nif [ "$1" = build ]; then ${changed}; else exec "${PRIVET}" "$@"; fi\n`,
        { mode: 0o755 },
    );
    const { status, stderr } = spawnSync(MEASURE, ["--quick", "--out", out, "dpf"], {
        env: { ...process.env, PRIVET: liar },
        encoding: "utf8",
    });
    assert.equal(status, 1, stderr);
    assert.match(stderr, /measure-web: record \d+ came as "!/);
    assert.ok(!existsSync(out));
});
