/** What lookups give. */

import { UsageError } from "./errors.js";
import type { Kind, Table } from "./types.js";

type Bytes = Uint8Array;
type Description = Table["values"];

/**
 * The value of a key. It does not print its content: ask for `bytes`, `text`, `json()` or `values`.
 */
export class Value {
    readonly #all: readonly Bytes[];
    readonly #description: Description;

    /** Of at least one value. */
    constructor(all: readonly Bytes[], description: Description) {
        this.#all = all;
        this.#description = description;
    }

    /** The value as it is stored. Of several values, the first. */
    get bytes(): Bytes {
        return this.#all[0] ?? new Uint8Array();
    }

    /** The value as text, in UTF-8. */
    get text(): string {
        try {
            return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(this.bytes);
        } catch {
            throw new UsageError("the value is no text in UTF-8");
        }
    }

    /** The value read as JSON, with JSON's types. */
    json(): unknown {
        const text = this.text;
        try {
            return JSON.parse(text);
        } catch {
            // JavaScript's own error has the value in it.
            throw new UsageError("the value cannot be read as JSON");
        }
    }

    /**
     * The value with the types of the table's columns: an object, or the one raw value.
     *
     * Whole numbers of 64 bits that a number cannot hold are bigints. Decimals, dates, times, and
     * timestamps without a zone are text as written. Timestamps with a zone are dates, to the
     * millisecond. Bytes are bytes. Where the table does not say what its values are, this is
     * `json()`, or else the bytes.
     */
    get values(): unknown {
        if (!this.#description) {
            try {
                return this.json();
            } catch {
                return this.bytes;
            }
        }
        const { isRaw, columns } = this.#description;
        if (!isRaw) {
            return typed(numbersKept(this.text), ["struct", columns]);
        }
        const kind = columns[0]?.[1] ?? ["bytes"];
        return kind[0] === "bytes" ? this.bytes : typed(`s${this.text}`, kind);
    }

    /** All values, in a table whose keys can have several. */
    get all(): Value[] {
        return this.#all.map((one) => new Value([one], this.#description));
    }

    toString(): string {
        return "Value(…)";
    }
}

/** A value of JSON whose strings begin with `s`, and whose numbers are strings after an `n`. */
type Kept = string | boolean | null | Kept[] | { [name: string]: Kept };

const STRINGS_AND_NUMBERS = /"((?:[^"\\]|\\.)*)"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/gs;

/** JSON with its numbers as they are written: JavaScript's own would lose digits. */
function numbersKept(json: string): Kept {
    try {
        return JSON.parse(
            json.replace(STRINGS_AND_NUMBERS, (all, string) =>
                string === undefined ? `"n${all}"` : `"s${string}"`,
            ),
        );
    } catch {
        throw new UsageError("the value cannot be read as JSON");
    }
}

/** A value of JSON as what it was. What is of another type stays what it is. */
function typed(value: Kept, kind: Kind): unknown {
    if (Array.isArray(value)) {
        const item: Kind = kind[0] === "list" ? kind[1] : ["any"];
        return value.map((each) => typed(each, item));
    }
    if (typeof value === "object" && value !== null) {
        const kinds = new Map<string, Kind>(kind[0] === "struct" ? kind[1] : []);
        const others: Kind = kind[0] === "map" ? kind[1] : ["any"];
        // Even a field with the name of something that all objects have is one of its own.
        return Object.fromEntries(
            Object.entries(value).map(([marked, each]) => {
                const name = marked.slice(1);
                return [name, typed(each, kinds.get(name) ?? others)];
            }),
        );
    }
    if (typeof value !== "string") {
        return value;
    }
    const written = value.slice(1);
    if (value[0] === "n") {
        return kind[0] === "decimal" ? written : numberOf(written);
    }
    switch (kind[0]) {
        // JSON has no numbers for some floats.
        case "float":
            return ["NaN", "Infinity", "-Infinity"].includes(written) ? Number(written) : written;
        case "bytes":
            return bytesOf(written) ?? written;
        case "timestamp": {
            const date = new Date(kind[2] === undefined ? NaN : written);
            return Number.isNaN(date.getTime()) ? written : date;
        }
        default:
            return written;
    }
}

function numberOf(written: string): number | bigint {
    const number = Number(written);
    return Number.isSafeInteger(number) || !/^-?\d+$/.test(written) ? number : BigInt(written);
}

function bytesOf(base64: string): Bytes | undefined {
    try {
        return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    } catch {
        return undefined;
    }
}
