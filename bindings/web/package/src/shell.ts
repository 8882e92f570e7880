/** The worker: it owns the program in WebAssembly and the network. */

import type { Failure } from "./errors.js";
import { Kept, type OpenStorage } from "./kept.js";
import { DESCRIBE_BODY, type FromWorker, type Port, post, type ToWorker } from "./messages.js";
import type { Options, Shell, Table } from "./types.js";
import { Client, initSync, placeOfPanic } from "./wasm/privet.js";

/** Bytes that are handed to the program at once. Some browsers hand over 64 MB. */
const PIECE = 256 << 10;

/** The longest time that a timer takes. */
const LONGEST = 0x7fffffff;

type Body = Uint8Array<ArrayBuffer>;

interface Early {
    readonly body: Promise<Body | undefined>;
    /** Whether a request has it for an answer, or waits for it. */
    isTaken: boolean;
    arrive(body: Body | undefined): void;
}

class Worker implements Shell {
    readonly #port: Port;
    readonly #openStorage: OpenStorage;
    readonly #requests = new Map<number, AbortController>();
    /** Descriptions that the client has asked for, by their URLs. */
    readonly #early = new Map<string, Early>();
    #kept: Kept | undefined;
    #client: Client | undefined;
    #isOver = false;
    /** Is over when all pins are kept, or one was refused. */
    #pinned: Promise<void> = Promise.resolve();
    #timer: ReturnType<typeof setTimeout> | undefined;
    #idleTimer: ReturnType<typeof setTimeout> | undefined;

    constructor(port: Port, openStorage: OpenStorage) {
        this.#port = port;
        this.#openStorage = openStorage;
        port.listen((message) => this.#alive(() => this.#take(message)));
    }

    #take(message: ToWorker): void {
        switch (message.kind) {
            case "open":
                this.#kept = new Kept(
                    this.#openStorage(message.storage, (text) => this.notice(text)),
                    message.pins,
                    (text) => this.notice(text),
                    (name, pinned) => this.#say({ kind: "pinned", name, pinned }),
                );
                return;
            case "connect":
                message.early.forEach((url) => this.#expected(url));
                initSync({ module: message.module });
                this.#begin(message.options).catch((error) => this.#refused(error));
                return;
            case "early":
                return this.#expected(message.url).arrive(message.body);
            case "lookup":
                message.targets.forEach((target, place) => {
                    const number = message.first + place;
                    if ("record" in target) {
                        this.#client?.lookupRecord(number, target.record);
                    } else {
                        this.#client?.lookup(number, target.key, target.isWritten);
                        target.key.fill(0);
                    }
                });
                return this.#run();
            case "close":
                this.#stop();
                return void Promise.resolve(this.#kept?.done()).then(() =>
                    this.#say({ kind: "closed" }),
                );
            case "refresh":
                this.#client?.refresh(message.call);
                return this.#run();
            case "stats":
                if (this.#client) {
                    this.#say({ kind: "stats", call: message.call, stats: this.#client.stats() });
                }
        }
    }

    async #begin(options: Options): Promise<void> {
        const kept = this.#kept;
        let pins: [string, Body][] | undefined;
        try {
            pins = await kept?.pins();
        } catch (error) {
            const message = `what was kept cannot be read: ${String(error)}`;
            return this.#say({ kind: "failed", failure: { blame: "unavailable", message } });
        }
        const [names, files] = [pins?.map(([name]) => name), pins?.map(([, file]) => file)];
        const client = new Client(options, names ?? [], files ?? []);
        await kept?.give(client);
        if (this.#isOver) {
            return;
        }
        this.#client = client;
        this.#alive(() => this.#run());
    }

    /** The program did not take something, for a reason that it says, or it has ended. */
    #refused(error: unknown): void {
        this.#alive(() => {
            if (error instanceof WebAssembly.RuntimeError) {
                throw error;
            }
            this.failed(error as Error);
        });
    }

    /** A description that is on its way, or there before the program is. */
    #expected(url: string): Early {
        let early = this.#early.get(url);
        if (!early) {
            let arrive: Early["arrive"] = () => undefined;
            const body = new Promise<Body | undefined>((resolve) => (arrive = resolve));
            early = { body, isTaken: false, arrive };
            this.#early.set(url, early);
        }
        return early;
    }

    /** Does something with the program, and says so if that ends the program. */
    #alive(work: () => void): void {
        try {
            work();
        } catch {
            // What the error says may contain what was looked up.
            let place = "";
            try {
                place = placeOfPanic();
            } catch {
                // Not even that can be asked.
            }
            this.#stop();
            this.#say({ kind: "died", place });
        }
    }

    /** Gives the program up. Nothing is sent any more. */
    #stop(): void {
        this.#isOver = true;
        this.#client = undefined;
        clearTimeout(this.#timer);
        clearTimeout(this.#idleTimer);
        for (const request of this.#requests.values()) {
            request.abort();
        }
    }

    #run(): void {
        clearTimeout(this.#timer);
        const wake = this.#client?.run(this);
        if (wake !== undefined) {
            const left = Math.min(Math.max(wake - performance.now(), 0), LONGEST);
            this.#timer = setTimeout(() => this.#alive(() => this.#run()), left);
        }
        this.#idle(0);
    }

    /** Makes queries ahead, in so many milliseconds. What arrives before comes first. */
    #idle(left: number): void {
        clearTimeout(this.#idleTimer);
        const work = (): void => {
            const again = this.#client?.makeAhead();
            if (again !== undefined) {
                this.#idle(again);
            }
        };
        this.#idleTimer = setTimeout(() => this.#alive(work), left);
    }

    async #exchange(
        exchange: number,
        url: string,
        body: Body,
        signal: AbortSignal,
        deadline?: number,
    ): Promise<void> {
        // What the program has pinned until its run is over is kept first: so no query reaches a
        // version that other clients may contradict, or that is forgotten after a crash. All
        // messages wait, so that their order depends on nothing that is in them.
        await Promise.resolve();
        await this.#pinned;
        signal.throwIfAborted();
        const asked = this.#early.get(url);
        if (asked && !asked.isTaken && same(body, DESCRIBE_BODY)) {
            asked.isTaken = true;
            const described = await asked.body;
            if (described) {
                return this.#feed(exchange, described);
            }
        }
        const response = await post(url, body, signal, deadline);
        const status = response.headers.get("grpc-status");
        if (!response.ok) {
            this.#alive(() => this.#client?.answeredOtherwise(exchange, response.status));
        } else if (status !== null && status !== "0") {
            const text = response.headers.get("grpc-message") ?? "";
            this.#alive(() => this.#client?.refused(exchange, status, text));
        } else if (response.body) {
            const reader = response.body.getReader();
            for (;;) {
                const { done, value } = await reader.read();
                if (done) {
                    return;
                }
                this.#feed(exchange, value);
            }
        }
    }

    #feed(exchange: number, bytes: Uint8Array): void {
        this.#alive(() => {
            for (let at = 0; at < bytes.length; at += PIECE) {
                this.#client?.feed(exchange, bytes.subarray(at, at + PIECE));
            }
            this.#run();
        });
    }

    #say(message: FromWorker, transfer: ArrayBuffer[] = []): void {
        this.#port.post(message, transfer);
    }

    // What the program asks for.

    send(exchange: number, url: string, body: Body, deadline?: number): void {
        const request = new AbortController();
        this.#requests.set(exchange, request);
        const over = (): void => {
            this.#requests.delete(exchange);
            // It knows whether something is missing.
            this.#alive(() => {
                this.#client?.brokeOff(exchange);
                this.#run();
            });
        };
        this.#exchange(exchange, url, body, request.signal, deadline).then(over, over);
    }

    abandon(exchange: number): void {
        this.#requests.get(exchange)?.abort();
    }

    keep(name: string, part: Body): void {
        this.#kept?.keep(name, part.slice());
    }

    remove(name: string): void {
        this.#kept?.remove(name);
    }

    pin(name: string): void {
        const pins = (file?: Body): Body => {
            if (!this.#client) {
                throw new Error("the program has ended");
            }
            return this.#client.pins(name, file) as Body;
        };
        const kept = this.#kept?.pin(name, pins).catch((error) => {
            this.#stop();
            this.#refused(error);
        });
        this.#pinned = this.#pinned.then(() => kept);
    }

    ready(table: Table): void {
        // The first lookup comes after everything is kept. What is to be kept is known when the
        // program's run is over.
        const kept = Promise.resolve().then(() => this.#kept?.done());
        void kept.then(() => this.#say({ kind: "ready", table }));
    }

    failed(error: Error): void {
        this.#say({ kind: "failed", failure: failureOf(error) });
    }

    found(lookup: number, values: Uint8Array<ArrayBuffer>[], isList: boolean): void {
        const transfer = values.map((value) => value.buffer);
        this.#say({ kind: "found", lookup, values, isList }, transfer);
    }

    lookupFailed(lookup: number, error: Error): void {
        this.#say({ kind: "lookupFailed", lookup, failure: failureOf(error) });
    }

    refreshed(call: number, epoch: number): void {
        this.#say({ kind: "refreshed", call, epoch });
    }

    refreshFailed(call: number, error: Error): void {
        this.#say({ kind: "refreshFailed", call, failure: failureOf(error) });
    }

    progress(what: string, done: number, total: number): void {
        this.#say({ kind: "progress", what, done, total });
    }

    notice(text: string): void {
        this.#say({ kind: "notice", text });
    }
}

function failureOf(error: Error): Failure {
    return { blame: error.name, message: error.message };
}

function same(one: Uint8Array, other: Uint8Array): boolean {
    return one.length === other.length && one.every((byte, place) => byte === other[place]);
}

/** Works for the client at the other end of the line. */
export function serve(port: Port, openStorage: OpenStorage): void {
    new Worker(port, openStorage);
}
