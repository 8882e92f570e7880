/**
 * Which of two programs in WebAssembly a client needs: the small one, whose schemes need little in
 * a browser, or the whole one.
 *
 * The small one is fetched beside the descriptions of what is served. It stays if it knows every
 * scheme that they name, and that the caller names: then both programs would do the same. That
 * depends on nothing secret.
 */

/** The schemes of the small program: those of `privet-schemes` without its `all-schemes`. */
const FEW = new Set(["simplepir-packed", "dpf", "singlepass", "tapir-mt", "apir-dpf"]);

/** Loads a program. */
export type Load = (signal?: AbortSignal) => Promise<WebAssembly.Module>;

/** How to load each program. */
export interface Programs {
    /** Not there if a bundler has moved the whole one only. */
    readonly few: Load | undefined;
    readonly all: Load;
}

/**
 * The program for a client that may use `schemes`, of servers that describe what they serve. A
 * description that did not come, or that is not understood, could name any scheme.
 */
export async function program(
    { few, all }: Programs,
    schemes: readonly string[],
    descriptions: Promise<(Uint8Array | undefined)[]>,
): Promise<WebAssembly.Module> {
    if (!few || !schemes.every((scheme) => FEW.has(scheme))) {
        return all();
    }
    const abort = new AbortController();
    // The whole one can do whatever the small one can.
    const small = few(abort.signal).catch(() => undefined);
    const suffices = (await descriptions).every(namesFew);
    if (!suffices) {
        abort.abort();
    }
    return (suffices && (await small)) || all();
}

/** Whether a description names only schemes of the small program. */
function namesFew(body: Uint8Array | undefined): boolean {
    try {
        return body !== undefined && [...schemesIn(body)].every((scheme) => FEW.has(scheme));
    } catch {
        return false;
    }
}

/** The schemes in a body of gRPC-Web that holds a `DescribeResponse` of `privet.proto`. */
function* schemesIn(body: Uint8Array): Generator<string> {
    const length = new DataView(body.buffer, body.byteOffset, body.length).getUint32(1);
    for (const [number, table] of fields(part(body, 5, length))) {
        if (number === 3) {
            yield* schemesOf(table);
        }
    }
}

/** The schemes of a `Table`, and of its other versions. Those have none of their own. */
function* schemesOf(table: Uint8Array, isOther = false): Generator<string> {
    for (const [number, field] of fields(table)) {
        if (number === 8) {
            for (const [number, name] of fields(field)) {
                if (number === 1) {
                    yield new TextDecoder().decode(name);
                }
            }
        } else if (number === 10 || number === 11) {
            if (isOther) {
                throw new RangeError("another version has versions of its own");
            }
            yield* schemesOf(field, true);
        }
    }
}

function part(bytes: Uint8Array, from: number, length: number): Uint8Array {
    if (from + length > bytes.length) {
        throw new RangeError("a message ends within a field");
    }
    return bytes.subarray(from, from + length);
}

/** The fields of a message of protobuf that have a length, with their numbers. */
function* fields(message: Uint8Array): Generator<[number, Uint8Array]> {
    let at = 0;
    const varint = (): number => {
        let value = 0;
        for (let scale = 1; ; scale *= 128) {
            const byte = message[at++];
            if (byte === undefined) {
                throw new RangeError("a message ends within a number");
            }
            value += (byte & 127) * scale;
            if (byte < 128) {
                return value;
            }
        }
    };
    while (at < message.length) {
        const key = varint();
        const [number, kind] = [Math.floor(key / 8), key % 8];
        // A number, or a length. Privet's messages have nothing else.
        const value = varint();
        if (kind === 2) {
            yield [number, part(message, at, value)];
            at += value;
        } else if (kind !== 0) {
            throw new RangeError("a message of another kind");
        }
    }
}
