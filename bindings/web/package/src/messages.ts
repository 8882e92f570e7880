/** What a client and its worker say to each other. */

import type { Failure } from "./errors.js";
import type { Options, Stats, Table } from "./types.js";

/** What to look up: a key as somebody wrote it, a key's bytes, or a record by its number. */
export type Target =
    | { readonly key: Uint8Array<ArrayBuffer>; readonly isWritten: boolean }
    | { readonly record: number };

/** A file of pins, and whether the storage has it: if not, the storage may have an older one. */
export interface Pinned {
    readonly file: Uint8Array<ArrayBuffer>;
    readonly isKept: boolean;
}

export type ToWorker =
    /** Where files are kept, and what was pinned before: see `kept.ts`. Comes first. */
    | { kind: "open"; storage: string; pins: Map<string, Pinned> }
    /** Begin. A description that was asked for early comes for each of the URLs. */
    | { kind: "connect"; module: WebAssembly.Module; options: Options; early: string[] }
    /** A description, or none. */
    | { kind: "early"; url: string; body?: Uint8Array<ArrayBuffer> }
    /** Look these up. They are numbered from `first`. */
    | { kind: "lookup"; first: number; targets: Target[] }
    | { kind: "refresh"; call: number }
    /** Send nothing any more, and say when everything is kept. */
    | { kind: "close" }
    | { kind: "stats"; call: number };

export type FromWorker =
    | { kind: "ready"; table: Table }
    | { kind: "failed"; failure: Failure }
    | { kind: "found"; lookup: number; values: Uint8Array[]; isList: boolean }
    | { kind: "lookupFailed"; lookup: number; failure: Failure }
    | { kind: "refreshed"; call: number; epoch: number }
    | { kind: "refreshFailed"; call: number; failure: Failure }
    | { kind: "progress"; what: string; done: number; total: number }
    | { kind: "notice"; text: string }
    /** What is pinned from now on, in the file of this name. */
    | { kind: "pinned"; name: string; pinned: Pinned }
    | { kind: "stats"; call: number; stats: Stats }
    /** The worker may be ended. */
    | { kind: "closed" }
    /** The program in WebAssembly has ended for good. */
    | { kind: "died"; place: string };

/** The worker's end of the line to its client. */
export interface Port {
    post(message: FromWorker, transfer: ArrayBuffer[]): void;
    listen(receive: (message: ToWorker) => void): void;
}

/** The path of a request for a description. */
export const DESCRIBE = "/privet.v1.Privet/Describe";

/** The body of every such request. It is known before the program is there. */
export const DESCRIBE_BODY = Uint8Array.of(0, 0, 0, 0, 2, 8, 1);

/** The longest description that is taken early, in bytes. */
const MOST_EARLY = 1 << 20;

/** For how long a description is awaited before the program is chosen without it. */
const EARLY_PATIENCE = 10_000;

/** Sends a message to a server, and nothing with it. */
export function post(
    url: string,
    body: Uint8Array<ArrayBuffer>,
    signal?: AbortSignal,
    deadline?: number,
): Promise<Response> {
    const headers: Record<string, string> = {
        "content-type": "application/grpc-web+proto",
        "x-grpc-web": "1",
    };
    if (deadline !== undefined) {
        headers["grpc-timeout"] = `${Math.ceil(deadline)}m`;
    }
    return fetch(url, {
        method: "POST",
        body,
        headers,
        // Nobody caches what a POST brought. With `cache: "no-store"`, Chromium would also forget
        // what a server has allowed, and ask again before every query.
        credentials: "omit",
        // A query goes where it was addressed, or nowhere.
        redirect: "error",
        referrerPolicy: "no-referrer",
        ...(signal && { signal }),
    });
}

/** Asks a server what it serves, before the program is there that understands the answer. */
export async function describeEarly(
    url: string,
    timeout = EARLY_PATIENCE,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const signal = AbortSignal.timeout(Math.min(timeout, EARLY_PATIENCE));
    const response = await post(url, DESCRIBE_BODY, signal);
    if (!response.ok || !response.body || response.headers.has("grpc-status")) {
        return undefined;
    }
    const pieces: Uint8Array[] = [];
    let length = 0;
    const reader = response.body.getReader();
    for (;;) {
        const { done, value } = await reader.read();
        if (done) {
            break;
        }
        pieces.push(value);
        length += value.length;
        if (length > MOST_EARLY) {
            await reader.cancel();
            return undefined;
        }
    }
    const body = new Uint8Array(length);
    let at = 0;
    for (const piece of pieces) {
        body.set(piece, at);
        at += piece.length;
    }
    return body;
}
