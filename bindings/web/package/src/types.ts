/** What the program in WebAssembly takes and gives: `bindings/web/src/shell.rs` calls it so. */

/** Whom to ask, for which table, and how. All times are in milliseconds. */
export interface Options {
    urls: string[];
    schemes: string[];
    verified: boolean;
    insecure: boolean;
    acceptNewTable: boolean;
    compareStreams: boolean;
    maxDownload: number;
    inFlight: number;
    table?: string;
    root?: string;
    publisher?: string;
    digest?: string;
    atLeastEpoch?: number;
    timeout?: number;
}

/** What a client asks its worker to do. */
export interface Shell {
    /** Send the bytes to the URL, and feed what comes of it. */
    send(exchange: number, url: string, body: Uint8Array, deadline?: number): void;
    /** Nobody waits for this exchange any more. */
    abandon(exchange: number): void;
    /** Keep a part in a file of this name. The bytes are the program's. */
    keep(name: string, part: Uint8Array): void;
    /** The part in this file is not needed any more. */
    remove(name: string): void;
    /** Keep what is pinned in a file of this name. */
    pin(name: string): void;
    /** Lookups can begin. */
    ready(table: Table): void;
    /** Lookups can never begin. */
    failed(error: Error): void;
    /** What a key has: its values, or none. */
    found(lookup: number, values: Uint8Array[], isList: boolean): void;
    /** A lookup failed. */
    lookupFailed(lookup: number, error: Error): void;
    /** Lookups are in this version from now on. */
    refreshed(call: number, epoch: number): void;
    refreshFailed(call: number, error: Error): void;
    /** What comes before lookups has come so far. */
    progress(what: string, done: number, total: number): void;
    /** Something that a person should know. */
    notice(text: string): void;
}

/** A table and its scheme. */
export interface Table {
    name: string;
    id: string;
    epoch: number;
    digest: string;
    records: number;
    recordLength: number;
    scheme: string;
    servers: number;
    software: string;
    isByKey: boolean;
    values?: { isRaw: boolean; columns: [string, Kind][] };
}

/** The type of a column: its name, and what it is made of. */
export type Kind =
    | ["any"]
    | ["null"]
    | ["boolean"]
    | ["number"]
    | ["text"]
    | ["bytes"]
    | ["date"]
    | ["integer", number, boolean]
    | ["float", number]
    | ["decimal", number, number]
    | ["time", number]
    | ["timestamp", number, string?]
    | ["list", Kind]
    | ["struct", [string, Kind][]]
    | ["map", Kind];

/** What a client did: bytes, milliseconds and a count. */
export interface Stats {
    describeSent: number;
    describeReceived: number;
    prepareSent: number;
    prepareReceived: number;
    backgroundSent: number;
    backgroundReceived: number;
    lookupSent: number;
    lookupReceived: number;
    lookups: number;
    /** Queries that were made before they were needed. */
    madeAhead: number;
    queryTime: number;
    recoverTime: number;
    readyAfter: number;
}
