/** A client of one table. Its worker does everything; this side counts and waits. */

import {
    errorOf,
    InternalError,
    PrivetError,
    SelectiveError,
    UnavailableError,
    UsageError,
} from "./errors.js";
import {
    DESCRIBE,
    describeEarly,
    type FromWorker,
    type Pinned,
    type Target,
    type ToWorker,
} from "./messages.js";
import { program, type Programs } from "./programs.js";
import { Value } from "./values.js";
import type { Options, Stats, Table } from "./types.js";

/** Text as the table's keys are written, the bytes of a key, or the number of a record from 0. */
export type Key = string | Uint8Array | number;

/** What a client tells of what comes before lookups, and beside them. */
export type Progress =
    /** So many bytes of a part have come. */
    | {
          readonly kind: "part";
          readonly what: string;
          readonly done: number;
          readonly total: number;
      }
    /** Something that a person should know. */
    | { readonly kind: "notice"; readonly text: string };

/** Whom to believe, what to receive, how long to wait. */
export interface ConnectOptions {
    /** The name of the table. Not needed if a server has only one. */
    table?: string | undefined;
    /** The schemes that may be used, the most wanted first. */
    schemes?: readonly string[] | undefined;
    /** Whether only schemes that verify answers may be used. */
    verified?: boolean | undefined;
    /** The root of an authenticated table. */
    root?: string | undefined;
    /** The publisher of a table that changes. */
    publisher?: string | undefined;
    /** The digest of the version to use. */
    digest?: string | undefined;
    /** The earliest version to use. */
    atLeastEpoch?: number | undefined;
    /** Believe the servers if they show another table than before. */
    acceptNewTable?: boolean | undefined;
    /** The most bytes that come before the first lookup: 256 MiB if nothing else is said. */
    maxDownload?: number | undefined;
    /** How long a server may leave a caller waiting, in milliseconds: 30,000. */
    timeout?: number | undefined;
    /** How many records may be fetched at once: 8. */
    inFlight?: number | undefined;
    /** Ask several servers even over lines that are not encrypted. */
    insecure?: boolean | undefined;
    /** Have each of several servers stream all of the table, and compare. */
    compareStreams?: boolean | undefined;
    /**
     * Where public parts and pins outlive the client. In pages `"opfs"`, if nothing else is said:
     * the browser's own files for the origin. In Node a folder. Or `"memory"`: nowhere.
     */
    storage?: string | undefined;
    /** Is told what comes. */
    onProgress?: ((progress: Progress) => void) | undefined;
    /** Ends the connection before it is ready. */
    signal?: AbortSignal | undefined;
    /** Where the worker's script is, if a bundler has moved it. */
    worker?: string | URL | undefined;
    /** Where the program in WebAssembly is, if a bundler has moved it. */
    wasm?: string | URL | undefined;
    /** Where the smaller one is, with the recommended schemes. */
    wasmFew?: string | URL | undefined;
}

export interface GetOptions {
    /** Ends the wait. It does not unsend: the lookup takes its course. */
    signal?: AbortSignal | undefined;
}

export interface GetManyOptions extends GetOptions {
    /** Make at least so many lookups, so that their number tells less. */
    padTo?: number | undefined;
}

/** What came of one key. */
export class Answer {
    /** The key as it was given. */
    readonly key: Key;
    /** Why the lookup failed, if it did. */
    readonly error: PrivetError | undefined;
    readonly #value: Value | undefined;

    constructor(key: Key, value: Value | undefined, error?: PrivetError) {
        this.key = key;
        this.#value = value;
        this.error = error;
    }

    /** Whether the table has the key. */
    get found(): boolean {
        return this.#value !== undefined;
    }

    /** The value; `undefined` if the table does not have the key. Throws if the lookup failed. */
    get value(): Value | undefined {
        if (this.error) {
            throw this.error;
        }
        return this.#value;
    }
}

/** A worker that has begun, and the programs for it. */
export interface Launched {
    /** Where files are kept if the caller does not say. */
    readonly storage: string;
    readonly programs: Programs;
    post(message: ToWorker, transfer: ArrayBuffer[]): void;
    listen(receive: (message: FromWorker) => void, died: (why: string) => void): void;
    /** Whether the worker keeps the process alive. */
    hold(isWaiting: boolean): void;
    /** Asks that files are not removed when room is short. */
    persist(): void;
    end(): void;
}

export type Launch = (options: ConnectOptions) => Launched;

const DEFAULT_MAX_DOWNLOAD = 256 << 20;

/** A part of more bytes is not to be received again just because room was short. */
const LARGE = 10_000_000;

/** So many workers in a row that answer nothing are enough. */
const MOST_DEATHS = 3;

/** Connects, and waits until lookups can begin. */
export async function open(
    launch: Launch,
    urls: string | readonly string[],
    options: ConnectOptions,
): Promise<Client> {
    options.signal?.throwIfAborted();
    const servers = typeof urls === "string" ? [urls] : [...urls];
    const client = new Client(() => launch(options), servers, options);
    try {
        await abortable(client.begin(), options.signal);
        return client;
    } catch (error) {
        void client.close();
        throw error;
    }
}

interface Waiting {
    resolve(value: Value | undefined): void;
    reject(error: PrivetError): void;
}

/** What is asked besides lookups. */
interface Calling {
    resolve(outcome: unknown): void;
    reject(error: PrivetError): void;
}

/** A client of one table. */
export class Client {
    readonly #launch: () => Launched;
    readonly #urls: string[];
    readonly #options: ConnectOptions;
    readonly #lookups = new Map<number, Waiting>();
    readonly #calls = new Map<number, Calling>();
    readonly #opened: Promise<Table>;
    #opening: { resolve(table: Table): void; reject(error: Error): void } | undefined;
    #table: Table | undefined;
    /** None after one has ended, until something is asked. */
    #worker: Launched | undefined;
    /** What is asked once a worker is ready; nothing if it is. */
    #later: (() => void)[] | undefined = [];
    /** Workers that have ended since the last one that answered. */
    #deaths = 0;
    /** What was pinned, for the next worker. */
    readonly #pins = new Map<string, Pinned>();
    #hasAskedToPersist = false;
    /** Why nothing can be asked any more. */
    #over: PrivetError | undefined;
    #closing: Promise<void> | undefined;
    #closed: (() => void) | undefined;
    #numbers = 0;

    /** @internal */
    constructor(launch: () => Launched, urls: string[], options: ConnectOptions) {
        this.#launch = launch;
        this.#urls = urls;
        this.#options = options;
        this.#opened = new Promise((resolve, reject) => {
            this.#opening = { resolve, reject };
        });
        // Whoever connects hears of it; nobody else needs to.
        this.#opened.catch(() => undefined);
    }

    /** @internal */
    async begin(): Promise<void> {
        this.#start();
        await this.#opened;
    }

    /** Starts a worker. It has nothing of an earlier one but the pins. */
    #start(): void {
        const worker = this.#launch();
        const isCurrent = (): boolean => worker === this.#worker;
        this.#worker = worker;
        this.#later = [];
        worker.listen(
            (message) => {
                if (isCurrent()) {
                    this.#receive(message);
                } else if (message.kind === "closed") {
                    this.#closed?.();
                }
            },
            (why) => (isCurrent() ? this.#died(`the worker has ended (${why})`) : this.#closed?.()),
        );
        const options = filled(this.#urls, this.#options, this.#table);
        const storage = this.#options.storage ?? worker.storage;
        worker.post({ kind: "open", storage, pins: this.#pins }, []);
        const early = this.#urls.map((url) => url.replace(/\/+$/, "") + DESCRIBE);
        // What the servers say comes beside the program that reads it.
        const described = [...new Set(early)].map(async (url) => {
            const body = await describeEarly(url, options.timeout).catch(() => undefined);
            if (isCurrent()) {
                worker.post({ kind: "early", url, ...(body && { body }) }, []);
            }
            return body;
        });
        program(worker.programs, options.schemes, Promise.all(described)).then(
            (module) => {
                if (isCurrent()) {
                    worker.post({ kind: "connect", module, options, early }, []);
                }
            },
            (error) => {
                if (isCurrent()) {
                    const why = `the program in WebAssembly does not load (${String(error)})`;
                    this.#end(new InternalError(why));
                }
            },
        );
    }

    /** The table, as it was when the client connected. */
    get table(): Table {
        if (!this.#table) {
            throw new UsageError("the client is not connected");
        }
        return this.#table;
    }

    /** The name of the scheme. */
    get scheme(): string {
        return this.table.scheme;
    }

    /** The value of a key, or `undefined` if the table does not have it. Both cost the same. */
    async get(key: Key, { signal }: GetOptions = {}): Promise<Value | undefined> {
        signal?.throwIfAborted();
        const [value] = this.#begin([this.#target(key)]);
        return abortable(value as Promise<Value | undefined>, signal);
    }

    /**
     * The values of several keys, in their order. Equal keys are asked for as often as they are
     * there. A lookup that fails does not end the others: its answer has the error.
     */
    async getMany(keys: Iterable<Key>, options: GetManyOptions = {}): Promise<Answer[]> {
        const answers = [];
        for await (const answer of this.answers(keys, options)) {
            answers.push(answer);
        }
        return answers;
    }

    /**
     * The same, one after the other. All lookups begin at once, and take their course even if
     * nobody waits for them any more: servers do not learn from what was found.
     */
    answers(
        keys: Iterable<Key>,
        { padTo = 0, signal }: GetManyOptions = {},
    ): AsyncIterableIterator<Answer> {
        signal?.throwIfAborted();
        const given = [...keys];
        // All keys are checked before the first is sent: a mistake shows the server nothing.
        const targets = given.map((key, place) => this.#target(key, place));
        while (targets.length < padTo) {
            targets.push(this.#dummy());
        }
        const values = this.#begin(targets);
        return inOrder(given, values, signal);
    }

    /**
     * Moves on to the newest version that the servers have. Returns its epoch. What this sends does
     * not depend on lookups.
     */
    refresh(): Promise<number> {
        return this.#call((call) => ({ kind: "refresh", call }));
    }

    /** What the present worker did so far. */
    stats(): Promise<Stats> {
        return this.#call((call) => ({ kind: "stats", call }));
    }

    #call<T>(message: (call: number) => ToWorker): Promise<T> {
        return new Promise((resolve, reject) => {
            if (this.#over) {
                return reject(this.#over);
            }
            const call = this.#number();
            this.#calls.set(call, { resolve: resolve as (outcome: unknown) => void, reject });
            this.#ask(message(call));
        });
    }

    /** Ends the client. Lookups under way are given up. Waits until what was received is kept. */
    close(): Promise<void> {
        this.#closing ??= this.#close();
        return this.#closing;
    }

    async #close(): Promise<void> {
        const worker = this.#worker;
        this.#worker = undefined;
        this.#end(new UsageError("this client is closed: connect another one"));
        if (worker) {
            worker.hold(true);
            await new Promise<void>((closed) => {
                this.#closed = closed;
                worker.post({ kind: "close" }, []);
            });
            worker.end();
        }
    }

    /** What is to be looked up for a key. No error has the key in it. */
    #target(key: Key, place?: number): Target {
        const wrong = (what: string): UsageError =>
            new UsageError(place === undefined ? what : `key ${place}, counted from 0: ${what}`);
        const { isByKey, records } = this.table;
        if (!isByKey) {
            if (typeof key !== "number") {
                throw wrong("this table is looked up by the numbers of its records");
            }
            if (!Number.isSafeInteger(key) || key < 0 || key >= records) {
                throw wrong(`the table has records 0 to ${records - 1}`);
            }
            return { record: key };
        }
        if (typeof key === "string") {
            if (/\p{Surrogate}/u.test(key)) {
                throw wrong("a key has half of a surrogate pair");
            }
            return { key: new TextEncoder().encode(key), isWritten: true };
        }
        if (key instanceof Uint8Array) {
            return { key: new Uint8Array(key), isWritten: false };
        }
        throw wrong("a key is text or bytes");
    }

    #dummy(): Target {
        return this.table.isByKey ? { key: new Uint8Array(), isWritten: false } : { record: 0 };
    }

    #begin(targets: Target[]): Promise<Value | undefined>[] {
        if (this.#over) {
            throw this.#over;
        }
        const first = this.#numbers;
        const values = targets.map(() => {
            const number = this.#number();
            const value = new Promise<Value | undefined>((resolve, reject) => {
                this.#lookups.set(number, { resolve, reject });
            });
            // Whoever waits for it hears of an error; a program does not end of one that nobody
            // waits for.
            value.catch(() => undefined);
            return value;
        });
        const transfer = targets.flatMap((target) => ("key" in target ? [target.key.buffer] : []));
        this.#ask({ kind: "lookup", first, targets }, transfer);
        return values;
    }

    #number(): number {
        const number = this.#numbers;
        this.#numbers += 1;
        return number;
    }

    /** Asks the worker, or the next one as soon as that is ready. */
    #ask(message: ToWorker, transfer: ArrayBuffer[] = []): void {
        if (!this.#worker) {
            this.#start();
        }
        const ask = (): void => this.#worker?.post(message, transfer);
        if (this.#later) {
            this.#later.push(ask);
        } else {
            ask();
        }
        this.#hold();
    }

    #hold(): void {
        const isWaiting = !this.#table || this.#lookups.size + this.#calls.size > 0;
        this.#worker?.hold(isWaiting);
    }

    #receive(message: FromWorker): void {
        switch (message.kind) {
            case "ready":
                this.#table = message.table;
                this.#opening?.resolve(message.table);
                this.#later?.forEach((ask) => ask());
                this.#later = undefined;
                return this.#hold();
            case "failed": {
                const error = errorOf(message.failure);
                // Servers that did not answer the next worker may answer the one after it.
                const isOver = !this.#table || !(error instanceof UnavailableError);
                return isOver ? this.#end(error) : this.#lose(error);
            }
            case "pinned":
                this.#pins.set(message.name, message.pinned);
                return;
            case "found": {
                const { values } = message;
                const found = values.length > 0;
                const value = found ? new Value(values, this.#table?.values) : undefined;
                return this.#settle(message.lookup, (waiting) => waiting.resolve(value));
            }
            case "lookupFailed": {
                const error = errorOf(message.failure);
                return this.#settle(message.lookup, (waiting) => waiting.reject(error));
            }
            case "progress": {
                const { what, done, total } = message;
                if (total > LARGE && !this.#hasAskedToPersist) {
                    this.#hasAskedToPersist = true;
                    this.#worker?.persist();
                }
                return this.#options.onProgress?.({ kind: "part", what, done, total });
            }
            case "notice":
                return this.#options.onProgress?.({ kind: "notice", text: message.text });
            case "refreshed":
                return this.#answer(message.call, (waiting) => waiting.resolve(message.epoch));
            case "refreshFailed": {
                const error = errorOf(message.failure);
                return this.#answer(message.call, (waiting) => waiting.reject(error));
            }
            case "stats":
                return this.#answer(message.call, (waiting) => waiting.resolve(message.stats));
            case "died":
                return this.#died(`the program has ended (${message.place}); report this`);
        }
    }

    #answer(call: number, how: (waiting: Calling) => void): void {
        const waiting = this.#calls.get(call);
        this.#calls.delete(call);
        this.#hold();
        if (waiting) {
            how(waiting);
        }
    }

    #settle(lookup: number, how: (waiting: Waiting) => void): void {
        const waiting = this.#lookups.get(lookup);
        this.#lookups.delete(lookup);
        this.#deaths = 0;
        this.#hold();
        if (waiting) {
            how(waiting);
        }
    }

    #died(how: string): void {
        this.#deaths += 1;
        const isOver = !this.#table || this.#deaths >= MOST_DEATHS;
        const then = isOver ? "connect again" : "the next lookup begins with a new one";
        const next = `${how}; ${then}`;
        // What the worker did for one of these keys may have ended it. Those that it was not yet
        // asked have no part in that.
        if (!this.#later) {
            const why = `${next}; do not repeat this lookup: its key may be why`;
            this.#reject(this.#lookups, new SelectiveError(why));
        }
        const error = new InternalError(next);
        return isOver ? this.#end(error) : this.#lose(error);
    }

    /** Gives the worker up, and whatever waits for it. */
    #lose(error: PrivetError): void {
        this.#worker?.end();
        this.#worker = undefined;
        this.#later = undefined;
        this.#reject(this.#lookups, error);
        this.#reject(this.#calls, error);
    }

    #reject(waiting: Map<number, { reject(error: PrivetError): void }>, error: PrivetError): void {
        waiting.forEach(({ reject }) => reject(error));
        waiting.clear();
    }

    #end(error: PrivetError): void {
        if (!this.#over) {
            this.#over = error;
            this.#opening?.reject(error);
            this.#lose(error);
        }
    }
}

async function* inOrder(
    keys: Key[],
    values: Promise<Value | undefined>[],
    signal: AbortSignal | undefined,
): AsyncIterableIterator<Answer> {
    for (const [place, key] of keys.entries()) {
        let value: Value | undefined;
        let error: PrivetError | undefined;
        try {
            value = await abortable(values[place] as Promise<Value | undefined>, signal);
        } catch (thrown) {
            if (!(thrown instanceof PrivetError)) {
                throw thrown;
            }
            error = thrown;
        }
        yield new Answer(key, value, error);
    }
    // Those that fill up are lookups like the others.
    for (const value of values.slice(keys.length)) {
        await abortable(
            value.catch(() => undefined),
            signal,
        );
    }
}

/** Waits for `promise`, but no longer than until `signal`. */
function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    if (!signal) {
        return promise;
    }
    return new Promise((resolve, reject) => {
        const abort = (): void => reject(signal.reason);
        if (signal.aborted) {
            return abort();
        }
        signal.addEventListener("abort", abort, { once: true });
        promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
    });
}

/** The options of a worker. One that replaces another goes on with that one's table and scheme. */
function filled(urls: string[], options: ConnectOptions, chosen: Table | undefined): Options {
    const table = chosen?.name ?? options.table;
    const { root, publisher, digest, atLeastEpoch, timeout } = options;
    const given = { table, root, publisher, digest, atLeastEpoch, timeout };
    const named = Object.entries(given).filter(([, value]) => value !== undefined);
    return {
        ...Object.fromEntries(named),
        urls,
        schemes: chosen ? [chosen.scheme] : [...(options.schemes ?? [])],
        verified: options.verified ?? false,
        insecure: options.insecure ?? false,
        // Accepting counts once.
        acceptNewTable: !chosen && (options.acceptNewTable ?? false),
        compareStreams: options.compareStreams ?? false,
        maxDownload: options.maxDownload ?? DEFAULT_MAX_DOWNLOAD,
        inFlight: options.inFlight ?? 8,
    };
}
