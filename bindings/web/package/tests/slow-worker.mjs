/**
 * A worker that writes down what it asks, keeps second pins only when the test lets it, and takes
 * long to keep hints.
 */

import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { parentPort } from "node:worker_threads";
import { openFolder } from "../dist/folder.js";
import { serve } from "../dist/shell.js";

const log = process.env.PRIVET_SLOW_LOG ?? "/dev/null";
const { fetch } = globalThis;
globalThis.fetch = (url, options) => {
    appendFileSync(log, `${new URL(url).pathname}\n`);
    return fetch(url, options);
};

async function openSlowFolder(place) {
    const folder = await openFolder(place);
    const create = async (name, bytes) => {
        if (name.includes("-hint-")) {
            await pause(500);
        }
        if (name.endsWith(".pins.2")) {
            appendFileSync(log, "pins\n");
            while (!existsSync(`${log}.go`)) {
                await pause(20);
            }
        }
        return folder.create(name, bytes);
    };
    return { ...folder, create };
}

serve(
    {
        post: (message, transfer) => parentPort.postMessage(message, transfer),
        listen: (receive) => parentPort.on("message", receive),
    },
    openSlowFolder,
);
