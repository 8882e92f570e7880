/** The worker in Node. */

import { parentPort } from "node:worker_threads";
import { openFolder } from "./folder.js";
import { serve } from "./shell.js";

const port = parentPort;
if (port) {
    serve(
        {
            post: (message, transfer) => port.postMessage(message, transfer),
            listen: (receive) => port.on("message", receive),
        },
        openFolder,
    );
}
