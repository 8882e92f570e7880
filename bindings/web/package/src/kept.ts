/** What outlives the worker: files of public parts and of pins. */

import type { Pinned } from "./messages.js";
import type { Client } from "./wasm/privet.js";

type Bytes = Uint8Array<ArrayBuffer>;

/** A place for files. Each is written once, whole or not at all, and then only removed. */
export interface Storage {
    names(): Promise<string[]>;
    /** The file's bytes; nothing if it is not there, or not whole. */
    read(name: string): Promise<Bytes | undefined>;
    /** Writes a file, durably. Returns whether it did: not if the name is taken. */
    create(name: string, bytes: Bytes): Promise<boolean>;
    /** When a file was written, as `Date.now` counts; nothing if it is not there. */
    written(name: string): Promise<number | undefined>;
    /** Removes a file if it is there. */
    remove(name: string): Promise<void>;
}

/** Opens a place by its name. Nothing: what comes stays in memory. */
export type OpenStorage = (
    place: string,
    notice: (text: string) => void,
) => Promise<Storage | undefined>;

/** The names of parts, and of pins. A folder may have other files. */
const PART = /^[0-9a-f]{32}-[a-z]+-[0-9a-f]{32}\.part$/;
const PINS = /^([0-9a-f]{32}\.pins)\.(\d+)$/;

/** After this time, in milliseconds, whoever wrote a file has pinned it, or has ended. */
export const LONG_AGO = 3_600_000;

/** How often a client tries to read or replace pins that others replace at the same time. */
const ATTEMPTS = 10;
const PAUSE = 20;

/** The files of a client. What is to be kept is kept in order. */
export class Kept {
    readonly #storage: Promise<Storage | undefined>;
    readonly #notice: (text: string) => void;
    readonly #pinned: (name: string, pinned: Pinned) => void;
    /** Pins of this client and of the worker before it. */
    readonly #pins: Map<string, Pinned>;
    readonly #told = new Set<string>();
    #work: Promise<void> = Promise.resolve();

    constructor(
        storage: Promise<Storage | undefined>,
        pins: ReadonlyMap<string, Pinned>,
        notice: (text: string) => void,
        pinned: (name: string, pinned: Pinned) => void,
    ) {
        this.#storage = storage;
        // Whoever begins hears of it.
        storage.catch(() => undefined);
        this.#pins = new Map(pins);
        this.#notice = notice;
        this.#pinned = pinned;
    }

    /**
     * All pins: files with their names. Those in memory count where no file has them. They also
     * come after the file if they could not be written to it.
     */
    async pins(): Promise<[string, Bytes][]> {
        const files = await this.#files();
        const isNewer = ([name, { isKept }]: [string, Pinned]): boolean =>
            !isKept || !files.has(name);
        const inMemory = [...this.#pins].filter(isNewer);
        return [...files, ...inMemory.map(([name, { file }]): [string, Bytes] => [name, file])];
    }

    async #files(): Promise<Map<string, Bytes>> {
        const storage = await this.#storage;
        const all = new Map<string, Bytes>();
        const names = (await storage?.names()) ?? [];
        for (const name of new Set(names.flatMap((name) => numbered(name)?.name ?? []))) {
            const { file } = await this.#latest(name);
            if (file) {
                all.set(name, file);
            }
        }
        return all;
    }

    /**
     * Hands the client the parts that it wants, and removes those that no pin names: not if they
     * are new, because another client may be about to pin them.
     */
    async give(client: Client): Promise<void> {
        const storage = await this.#storage;
        for (const name of (await storage?.names()) ?? []) {
            if (!PART.test(name)) {
                continue;
            }
            const isWanted = client.wants(name);
            if (isWanted === undefined) {
                const written = await storage?.written(name).catch(() => undefined);
                if (written !== undefined && Date.now() - written > LONG_AGO) {
                    this.remove(name);
                }
            } else if (isWanted) {
                const part = await storage?.read(name).catch(() => undefined);
                if (part) {
                    client.read(name, part);
                }
            }
        }
    }

    /** Keeps a part. If there is no room, it stays in memory. */
    keep(name: string, part: Bytes): void {
        this.#then(async (storage) => void (await storage.create(name, part)));
    }

    remove(name: string): void {
        this.#then((storage) => storage.remove(name));
    }

    /** Keeps the pins that the client makes of the file as it is. Throws what the client throws. */
    pin(name: string, pins: (file?: Bytes) => Bytes): Promise<void> {
        const kept = this.#work.then(() => this.#replace(name, pins));
        this.#work = kept.catch(() => undefined);
        return kept;
    }

    /** Waits until everything is kept. */
    done(): Promise<void> {
        return this.#work;
    }

    async #replace(name: string, pins: (file?: Bytes) => Bytes): Promise<void> {
        const storage = await this.#storage;
        for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
            const found = await this.#latest(name).catch((error) => this.#sayOfPins(error));
            const file = pins(found?.file ?? this.#pins.get(name)?.file);
            const note = (isKept: boolean): void => {
                this.#pins.set(name, { file, isKept });
                this.#pinned(name, { file, isKept });
            };
            note(false);
            if (!storage || !found) {
                return;
            }
            try {
                const own = `${name}.${found.latest + 1}`;
                if (await storage.create(own, file)) {
                    const { latest } = await this.#latest(name);
                    if (latest === found.latest + 1) {
                        note(true);
                        // The oldest first: whoever reads at this moment finds none that is older.
                        const older = found.numbers.filter((each) => each <= found.latest);
                        for (const number of older.reverse()) {
                            await storage.remove(`${name}.${number}`);
                        }
                        return;
                    }
                    // Others have removed a file of this number, after they made later ones.
                    await storage.remove(own);
                }
            } catch (error) {
                return this.#sayOfPins(error);
            }
            await pause();
        }
        this.#sayOfPins("others keep changing the pins");
    }

    /** The file of this name with the highest number, which counts, and all numbers. */
    async #latest(name: string): Promise<Latest> {
        const storage = await this.#storage;
        const list = async (): Promise<number[]> =>
            ((await storage?.names()) ?? [])
                .map(numbered)
                .flatMap((each) => (each?.name === name ? each.number : []))
                .sort((one, other) => other - one);
        for (let attempt = 1; ; attempt += 1) {
            const numbers = await list();
            try {
                let latest = 0;
                let file: Bytes | undefined;
                for (const number of numbers) {
                    file = await storage?.read(`${name}.${number}`);
                    if (file) {
                        latest = number;
                        break;
                    }
                }
                // If the highest is gone, a higher one is there. If it stays, it is not whole.
                if (latest !== numbers[0] && (await list())[0] !== numbers[0]) {
                    throw new Error("others keep changing the pins");
                }
                // None is whole if writing the first one was broken off.
                if (file || numbers.length === 0 || attempt === ATTEMPTS) {
                    return { numbers, latest, file };
                }
            } catch (error) {
                if (attempt === ATTEMPTS) {
                    throw error;
                }
            }
            // Another client replaces it at this moment.
            await pause();
        }
    }

    #then(job: (storage: Storage) => Promise<void>): void {
        this.#work = this.#work
            .then(() => this.#storage)
            .then((storage) => storage && job(storage))
            .catch((error) =>
                this.#say("what was received stays in memory, because it cannot be kept", error),
            );
    }

    #sayOfPins(error: unknown): undefined {
        this.#say("pins cannot be kept, so the next visit believes the servers anew", error);
    }

    #say(what: string, error: unknown): void {
        const text = `${what}: ${String(error)}`;
        if (!this.#told.has(text)) {
            this.#told.add(text);
            this.#notice(text);
        }
    }
}

/** The file that counts, its number, and the numbers of all files of the name, highest first. */
interface Latest {
    readonly numbers: number[];
    readonly latest: number;
    readonly file: Bytes | undefined;
}

/** The parts of the name of a file of pins. */
function numbered(file: string): { name: string; number: number } | undefined {
    const found = PINS.exec(file);
    return found?.[1] ? { name: found[1], number: Number(found[2]) } : undefined;
}

function pause(): Promise<void> {
    return new Promise((over) => setTimeout(over, PAUSE));
}
