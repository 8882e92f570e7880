/**
 * A clock around the worker's program in WebAssembly. With each value it says how long the program
 * worked, in milliseconds, since the value before: `work`, between key and value, and `beside`,
 * before that or for later lookups.
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
const spent = { work: 0, beside: 0 };
/** What is counted: "work" or "beside". */
let what = "beside";
/** How many calls of the program are under way, one within the other. */
let depth = 0;
let countedAt = 0;
let waited = 0;

/** Counts the time since the program was called, or since this was called. */
function count(where) {
    const now = clock();
    spent[where] += now - countedAt - waited;
    countedAt = now;
    waited = 0;
}

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

function timed([name, value]) {
    if (typeof value !== "function") {
        return [name, value];
    }
    const isForLater = /makeAhead/.test(name);
    const call = (...given) => {
        if (depth === 0) {
            countedAt = clock();
            waited = 0;
        }
        depth += 1;
        try {
            return value(...given);
        } finally {
            depth -= 1;
            if (depth === 0) {
                count(isForLater ? "beside" : what);
            }
        }
    };
    return [name, call];
}

const { Instance } = WebAssembly;
WebAssembly.Instance = function (module, imports) {
    const { exports } = new Instance(module, imports);
    return { exports: Object.fromEntries(Object.entries(exports).map(timed)) };
};

addEventListener("message", ({ data }) => {
    if (data.kind === "lookup") {
        what = "work";
    }
});
const post = postMessage.bind(globalThis);
globalThis.postMessage = (message, transfer) => {
    if (message.kind === "found") {
        if (depth > 0) {
            count(what);
        }
        what = "beside";
        channel.postMessage(spent);
        spent.work = 0;
        spent.beside = 0;
    }
    post(message, transfer);
};
