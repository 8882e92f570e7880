/**
 * A clock around the worker's program in WebAssembly. With each value it says how long the program
 * worked between key and value, and how long before, since the value before this one: `work` and
 * `beside`, in milliseconds.
 *
 * Work is the time in the program and in what it calls, but for the time in which it waits for the
 * end of a slot. It waits by reading the clock again and again. So a step of the clock in which it
 * reads OFTEN or more was waited for. A step that lasted longer, because something else had the
 * processor, counts as work.
 */
const OFTEN = 64;
const LONGEST_STEP = 0.25;

const clock = performance.now.bind(performance);
const channel = new BroadcastChannel("work");
let depth = 0;
let entered = 0;
let inside = 0;
let waited = 0;
let beside = 0;

let step = 0;
let reads = 0;
performance.now = () => {
    const now = clock();
    if (now !== step) {
        if (reads >= OFTEN && now - step < LONGEST_STEP) {
            waited += now - step;
        }
        step = now;
        reads = 0;
    }
    reads += 1;
    return now;
};

/** The work so far. Counting begins anew. */
function worked() {
    const now = clock();
    const work = inside + (depth > 0 ? now - entered : 0) - waited;
    [entered, inside, waited] = [now, 0, 0];
    return work;
}

const timed = (call) => (...given) => {
    if (depth === 0) {
        entered = clock();
    }
    depth += 1;
    try {
        return call(...given);
    } finally {
        depth -= 1;
        if (depth === 0) {
            inside += clock() - entered;
        }
    }
};

const { Instance } = WebAssembly;
WebAssembly.Instance = function (module, imports) {
    const exports = Object.entries(new Instance(module, imports).exports).map(([name, value]) => [
        name,
        typeof value === "function" ? timed(value) : value,
    ]);
    return { exports: Object.fromEntries(exports) };
};

addEventListener("message", ({ data }) => {
    if (data.kind === "lookup") {
        beside = worked();
    }
});
const post = postMessage.bind(globalThis);
globalThis.postMessage = (message, transfer) => {
    if (message.kind === "found") {
        channel.postMessage({ work: worked(), beside });
    }
    post(message, transfer);
};
