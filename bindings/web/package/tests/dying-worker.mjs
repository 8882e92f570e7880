/** A worker whose program ends at the first lookup. */

import { Client } from "../dist/wasm/privet.js";

Client.prototype.lookup = () => {
    throw new WebAssembly.RuntimeError(
        "unreachable, while it looked up a key that nobody may hear of",
    );
};
await import("../dist/node-worker.js");
