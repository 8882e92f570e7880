/** The same as `index.ts`, in Node. */

import { readFile } from "node:fs/promises";
import { Worker } from "node:worker_threads";
import { type Client, type ConnectOptions, type Launched, open } from "./client.js";

export * from "./public.js";

export function connect(
    urls: string | readonly string[],
    options: ConnectOptions = {},
): Promise<Client> {
    return open(launch, urls, options);
}

function launch(options: ConnectOptions): Launched {
    // Flags of this process are not for the worker: that its program is on the command line, say.
    const worker = new Worker(new URL(options.worker ?? "./node-worker.js", import.meta.url), {
        execArgv: [],
    });
    const { wasm, wasmFew } = options;
    const all = new URL(wasm ?? "./wasm/privet_bg.wasm", import.meta.url);
    const few = new URL(wasmFew ?? "./wasm/privet_few.wasm", import.meta.url);
    return {
        storage: "memory",
        programs: {
            few: wasm && !wasmFew ? undefined : (signal) => compiled(few, signal),
            all: () => compiled(all),
        },
        post: (message, transfer) => worker.postMessage(message, transfer),
        listen: (receive, died) => {
            worker.on("message", receive);
            worker.on("error", (error) => died(String(error)));
        },
        // A program that waits for nothing ends without closing.
        hold: (isWaiting) => (isWaiting ? worker.ref() : worker.unref()),
        persist: () => undefined,
        end: () => void worker.terminate(),
    };
}

async function compiled(file: URL, signal?: AbortSignal): Promise<WebAssembly.Module> {
    return WebAssembly.compile(await readFile(file, signal && { signal }));
}
