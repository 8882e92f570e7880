/** A worker whose program ends when it looks up one certain key. */

import { Client } from "../dist/wasm/privet.js";

const { lookup } = Client.prototype;
Client.prototype.lookup = function (number, key, isWritten) {
    if (new TextDecoder().decode(key) === "the key that ends it") {
        throw new WebAssembly.RuntimeError("unreachable");
    }
    return lookup.call(this, number, key, isWritten);
};
await import("../dist/node-worker.js");
