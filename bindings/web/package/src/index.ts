/**
 * Look records up in somebody else's table without the server learning which.
 *
 * In a page, whoever serves the page can read what is looked up.
 */

import { type Client, type ConnectOptions, type Launched, open } from "./client.js";

export * from "./public.js";

/**
 * Connects to a server, or to as many as the scheme of the table needs, and receives what comes
 * before the first lookup.
 */
export function connect(
    urls: string | readonly string[],
    options: ConnectOptions = {},
): Promise<Client> {
    return open(launch, urls, options);
}

function launch(options: ConnectOptions): Launched {
    const worker = options.worker
        ? new Worker(options.worker, { type: "module" })
        : // Bundlers look for exactly this.
          new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
    const { wasm, wasmFew } = options;
    const all = wasm ?? new URL("./wasm/privet_bg.wasm", import.meta.url);
    const few = wasmFew ?? (wasm ? undefined : new URL("./wasm/privet_few.wasm", import.meta.url));
    return {
        storage: "opfs",
        programs: {
            few: few === undefined ? few : (signal) => compiled(few, signal),
            all: () => compiled(all),
        },
        post: (message, transfer) => worker.postMessage(message, transfer),
        listen: (receive, died) => {
            worker.onmessage = (event) => receive(event.data);
            worker.onerror = (event) => {
                event.preventDefault();
                died(event.message || "its script did not load");
            };
        },
        hold: () => undefined,
        // Files are kept without it, too.
        persist: () => void navigator.storage?.persist?.().catch(() => undefined),
        end: () => worker.terminate(),
    };
}

async function compiled(url: string | URL, signal?: AbortSignal): Promise<WebAssembly.Module> {
    const response = await fetch(url, signal && { signal });
    const isNamed = response.headers.get("content-type")?.startsWith("application/wasm");
    return isNamed
        ? WebAssembly.compileStreaming(response)
        : WebAssembly.compile(await response.arrayBuffer());
}
