/** Lookups by the page's clients, one after the other, with what each cost and showed. */

import { type Client, connect, type Value } from "@privet/client";
import * as api from "./api.js";

/** How the page asks when it hides nothing. */
export const PLAIN = "plain";

/** What came of a lookup. Bytes are those of messages; times are in milliseconds. */
export interface Lookup {
    readonly cast: string;
    readonly key: string;
    readonly value: Record<string, unknown> | undefined;
    readonly sent: number;
    readonly received: number;
    readonly computed: number | undefined;
    readonly waited: number;
    readonly sights: readonly api.Sight[];
}

/** Clients of all servers, connected when they are first needed. */
export class Lookups {
    readonly #casts: ReadonlyMap<string, api.Cast>;
    readonly #clients = new Map<string, Promise<Client>>();
    readonly #all: Omit<Lookup, "sights">[] = [];

    constructor(casts: readonly api.Cast[]) {
        this.#casts = new Map(casts.map((cast) => [cast.name, cast]));
    }

    /** All lookups that were made. */
    get made(): readonly Omit<Lookup, "sights">[] {
        return this.#all;
    }

    scheme(cast: string): string {
        return this.#casts.get(cast)?.scheme ?? "no scheme";
    }

    /** Gives a client up. The next lookup connects another one. */
    async forget(cast: string): Promise<void> {
        const client = this.#clients.get(cast);
        this.#clients.delete(cast);
        (await client?.catch(() => undefined))?.close();
    }

    /**
     * Looks a key up, in turn with all pages like this in this browser. So what the servers see
     * meanwhile belongs to this lookup alone, unless another browser looks up as well.
     */
    look(cast: string, key: string): Promise<Lookup> {
        return navigator.locks.request("lookup", async () => {
            await api.seen();
            const made = await (cast === PLAIN ? plainly(key) : this.#privately(cast, key));
            const sights = (await api.seen()).filter((sight) => sight.cast === cast);
            sights.sort((one, other) => one.server - other.server);
            this.#all.push({ cast, key, ...made });
            return { cast, key, ...made, sights };
        });
    }

    async #privately(cast: string, key: string): Promise<Omit<Lookup, "cast" | "key" | "sights">> {
        const client = await this.#connected(cast);
        const [before, busy] = await Promise.all([client.stats(), api.busy(cast)]);
        const begun = performance.now();
        const value = await client.get(key);
        const waited = performance.now() - begun;
        const [after, computed] = await Promise.all([client.stats(), api.busy(cast)]);
        return {
            value: fields(value),
            sent: after.lookupSent - before.lookupSent,
            received: after.lookupReceived - before.lookupReceived,
            computed: computed - busy,
            waited,
        };
    }

    #connected(cast: string): Promise<Client> {
        let client = this.#clients.get(cast);
        if (!client) {
            const urls = this.#casts.get(cast)?.urls ?? [];
            client = connect(urls, { worker: "/worker.js", wasm: "/privet.wasm" });
            this.#clients.set(cast, client);
            // Whoever looks up hears of it, and the next lookup tries again.
            client.catch(() => this.#clients.delete(cast));
        }
        return client;
    }
}

function fields(value: Value | undefined): Record<string, unknown> | undefined {
    return value && (value.json() as Record<string, unknown>);
}

async function plainly(key: string): Promise<Omit<Lookup, "cast" | "key" | "sights">> {
    const begun = performance.now();
    const text = await api.plain(key);
    const waited = performance.now() - begun;
    return {
        value: (JSON.parse(text) as Record<string, unknown> | null) ?? undefined,
        sent: `GET /plain?key=${encodeURIComponent(key)}`.length,
        received: text.length,
        computed: undefined,
        waited,
    };
}
