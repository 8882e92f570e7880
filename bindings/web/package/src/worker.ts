/** The worker in a browser. */

import type { ToWorker } from "./messages.js";
import { openOpfs } from "./opfs.js";
import { serve } from "./shell.js";

/** What a dedicated worker has, without the types of all workers. */
interface Scope {
    postMessage(message: unknown, transfer: Transferable[]): void;
    onmessage: ((event: { data: ToWorker }) => void) | null;
}

const scope = globalThis as unknown as Scope;

serve(
    {
        post: (message, transfer) => scope.postMessage(message, transfer),
        listen: (receive) => {
            scope.onmessage = ({ data }) => receive(data);
        },
    },
    openOpfs,
);
