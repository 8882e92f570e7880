/** What outlives the worker: files of public parts and of pins. */

import type { Client } from "./wasm/privet.js";

type Bytes = Uint8Array<ArrayBuffer>;

/** A place for files. Each is written once, whole or not at all, and then only removed. */
export interface Storage {
    names(): Promise<string[]>;
    /** The file's bytes; nothing if it is not there, or not whole. */
    read(name: string): Promise<Bytes | undefined>;
    /** Writes a file, durably. Returns whether it did: not if the name is taken. */
    create(name: string, bytes: Bytes): Promise<boolean>;
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

/** How often a client tries to read or replace pins that others replace at the same time. */
const ATTEMPTS = 10;
const PAUSE = 20;

/** The files of a client. What is to be kept is kept in order. */
export class Kept {
    readonly #storage: Promise<Storage | undefined>;
    readonly #notice: (text: string) => void;
    readonly #pinned: (name: string, file: Bytes) => void;
    /** Pins of this client and of the worker before it, which count where no file has them. */
    readonly #pins: Map<string, Bytes>;
    readonly #told = new Set<string>();
    #work: Promise<void> = Promise.resolve();

    constructor(
        storage: Promise<Storage | undefined>,
        pins: ReadonlyMap<string, Bytes>,
        notice: (text: string) => void,
        pinned: (name: string, file: Bytes) => void,
    ) {
        this.#storage = storage;
        // Whoever begins hears of it.
        storage.catch(() => undefined);
        this.#pins = new Map(pins);
        this.#notice = notice;
        this.#pinned = pinned;
    }

    /** All pins: files with their names. */
    async pins(): Promise<Map<string, Bytes>> {
        const storage = await this.#storage;
        const all = new Map(this.#pins);
        const names = (await storage?.names()) ?? [];
        for (const name of new Set(names.flatMap((name) => numbered(name)?.name ?? []))) {
            const { file } = await this.#latest(name);
            if (file) {
                all.set(name, file);
            }
        }
        return all;
    }

    /** Hands the client the parts that it wants, and removes those that no pin names. */
    async give(client: Client): Promise<void> {
        const storage = await this.#storage;
        for (const name of (await storage?.names()) ?? []) {
            if (!PART.test(name)) {
                continue;
            }
            const isWanted = client.wants(name);
            if (isWanted === undefined) {
                this.remove(name);
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
            const found = await this.#latest(name).catch((error) => this.#say(error));
            const next = pins(found?.file ?? this.#pins.get(name));
            this.#pins.set(name, next);
            this.#pinned(name, next);
            if (!storage || !found) {
                return;
            }
            try {
                if (await storage.create(`${name}.${found.latest + 1}`, next)) {
                    for (const number of found.numbers.filter((each) => each <= found.latest)) {
                        await storage.remove(`${name}.${number}`);
                    }
                    return;
                }
            } catch (error) {
                return this.#say(error);
            }
            await pause();
        }
        this.#say("others keep changing the pins");
    }

    /** The file of this name with the highest number, which counts, and all numbers. */
    async #latest(name: string): Promise<{ numbers: number[]; latest: number; file?: Bytes }> {
        const storage = await this.#storage;
        for (let attempt = 1; ; attempt += 1) {
            const numbers = ((await storage?.names()) ?? [])
                .map(numbered)
                .flatMap((each) => (each?.name === name ? each.number : []))
                .sort((one, other) => other - one);
            try {
                for (const latest of numbers) {
                    const file = await storage?.read(`${name}.${latest}`);
                    if (file) {
                        return { numbers, latest, file };
                    }
                }
                if (numbers.length === 0 || attempt === ATTEMPTS) {
                    // Whoever wrote the first one ended within.
                    return { numbers, latest: 0 };
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
            .catch((error) => this.#say(error));
    }

    #say(error: unknown): undefined {
        const why = String(error);
        if (!this.#told.has(why)) {
            this.#told.add(why);
            this.#notice(`what was received stays in memory, because it cannot be kept: ${why}`);
        }
    }
}

/** The parts of the name of a file of pins. */
function numbered(file: string): { name: string; number: number } | undefined {
    const found = PINS.exec(file);
    return found?.[1] ? { name: found[1], number: Number(found[2]) } : undefined;
}

function pause(): Promise<void> {
    return new Promise((over) => setTimeout(over, PAUSE));
}
