/**
 * The worker with a mistake in its program. Its address says which (`flaw`), by how many
 * milliseconds work about keys that begin with `slow` is longer (`query`, `answer`), and how many
 * milliseconds a step of its clock has (`step`), which lengthens slots. Or its coins are always the
 * same (`coins`).
 */

import "/planted/worker.js";
import { Client, plant } from "/planted/wasm/privet.js";

const asked = new URL(import.meta.url).searchParams;
const number = (name) => Number(asked.get(name) ?? 0);

const step = number("step");
if (step) {
    const now = performance.now.bind(performance);
    performance.now = () => Math.floor(now() / step) * step;
}
if (asked.has("coins")) {
    let coin = 1;
    crypto.getRandomValues = (bytes) => {
        bytes.forEach((_, at) => {
            coin = (coin * 48271) % 0x7fffffff;
            bytes[at] = coin;
        });
        return bytes;
    };
}
const { lookup } = Client.prototype;
Client.prototype.lookup = function (...target) {
    plant(asked.get("flaw") ?? undefined, number("query"), number("answer"));
    return lookup.apply(this, target);
};
