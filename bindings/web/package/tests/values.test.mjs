/** Values with the types of their columns. */

import assert from "node:assert/strict";
import test from "node:test";
import { Value } from "@privet/client";

/** The value of one column `c` that JSON wrote so. */
function read(json, kind) {
    const bytes = new TextEncoder().encode(`{"c":${json}}`);
    return new Value([bytes], { isRaw: false, columns: [["c", kind]] }).values.c;
}

test("columns have their types", () => {
    for (const [json, kind, value] of [
        ["7", ["integer", 32, true], 7],
        ["-9007199254740993", ["integer", 64, true], -9007199254740993n],
        ["1e3", ["number"], 1000],
        ["1.10", ["decimal", 5, 2], "1.10"],
        ['"NaN"', ["float", 64], NaN],
        ["0.5", ["float", 32], 0.5],
        ["true", ["boolean"], true],
        ["null", ["date"], null],
        ['"2024-02-29"', ["date"], "2024-02-29"],
        ['"AQL/"', ["bytes"], Uint8Array.of(1, 2, 255)],
        ['"2024-02-29T12:00:00.123Z"', ["timestamp", 3, "UTC"], new Date(1709208000123)],
        ['"2024-02-29T12:00:00"', ["timestamp", 0], "2024-02-29T12:00:00"],
        ["[1, [2.50]]", ["list", ["any"]], [1, [2.5]]],
        [
            '{"x": 1.20, "y": "1.20"}',
            ["struct", [["x", ["decimal", 3, 2]]]],
            { x: "1.20", y: "1.20" },
        ],
        ['{"any key": "AQ=="}', ["map", ["bytes"]], { "any key": Uint8Array.of(1) }],
        // What is of another type stays what it is.
        ['"late"', ["timestamp", 0, "UTC"], "late"],
        ['"12"', ["integer", 8, true], "12"],
        ['"*"', ["bytes"], "*"],
        // Neither digits nor marks within text are taken for numbers.
        ['"n7 \\" 8, \\\\"', ["text"], 'n7 " 8, \\'],
    ]) {
        assert.deepEqual(read(json, kind), value, json);
    }
});

test("a field with the name of something that all objects have is a field", () => {
    const value = read('{"__proto__": {"polluted": 1}}', ["any"]);
    assert.deepEqual(Object.keys(value), ["__proto__"]);
    assert.equal({}.polluted, undefined);
});

test("raw values are text or bytes", () => {
    const value = (kind) =>
        new Value([Uint8Array.of(0x61)], { isRaw: true, columns: [["c", kind]] });
    assert.equal(value(["text"]).values, "a");
    assert.deepEqual(value(["bytes"]).values, Uint8Array.of(0x61));
});

test("where the table says nothing, values are what they look like", () => {
    const value = (text) => new Value([new TextEncoder().encode(text)]);
    assert.deepEqual(value('{"a":1}').values, { a: 1 });
    assert.deepEqual(value("a").values, Uint8Array.of(0x61));
});
