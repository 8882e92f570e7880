/** What a client in Node keeps in a folder, and what it makes of damage. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import {
    copyFileSync,
    existsSync,
    mkdirSync,
    readdirSync,
    readFileSync,
    rmSync,
    statSync,
    writeFileSync,
} from "node:fs";
import path from "node:path";
import test from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { connect } from "@privet/client";
import { openFolder } from "../dist/folder.js";
import { Kept, LONG_AGO } from "../dist/kept.js";
import { front } from "./front.mjs";
import { build, folder, privet, serve } from "./place.mjs";

const rows = Array.from({ length: 3000 }, (_, row) => ({ name: `person ${row}`, number: row }));
privet("keygen", "-o", "publisher.key");
const signed = ["--key", "name", "--publisher-key", "publisher.key"];
const table = build("people", rows, ...signed);

const patient = { timeout: 600_000 };
let places = 0;
const place = () => path.join(folder, `kept-${places++}`);
const files = (storage, end) =>
    readdirSync(storage).filter((name) => end.test(name)).map((name) => path.join(storage, name));

/** Looks a person up. Returns how many parts were asked for, and what was told. */
async function visit(server, storage, options = {}) {
    const told = [];
    const onProgress = (progress) => progress.kind === "notice" && told.push(progress.text);
    const before = server.fetched;
    const client = await connect(server.address, { storage, onProgress, ...options });
    try {
        assert.equal((await client.get("person 7")).json().number, 7);
    } finally {
        await client.close();
    }
    return { fetched: server.fetched - before, told: told.join("\n") };
}

for (const scheme of ["simplepir", "simplepir-packed", "download"]) {
    test(`parts of ${scheme} are received once, and pins stay`, async () => {
        const server = await front(await serve(table, scheme));
        const storage = place();
        assert.ok((await visit(server, storage)).fetched > 0);
        assert.deepEqual(await visit(server, storage), { fetched: 0, told: "" });
        // Without a folder, all of it comes again.
        assert.ok((await visit(server)).fetched > 0);
        const other = build("others", rows.slice(1).concat(rows[0]), "--key", "name");
        server.url = await serve({ file: other.file }, scheme);
        await visit(server);
        await assert.rejects(visit(server, storage), { name: "IntegrityError" });
    });
}

test("a damaged part is received anew, and the caller hears of it", async () => {
    const server = await front(await serve(table, "simplepir"));
    const storage = place();
    await visit(server, storage);
    for (const file of files(storage, /\.part$/)) {
        const whole = readFileSync(file);
        for (const damaged of [
            whole.subarray(0, whole.length / 2),
            Buffer.alloc(0),
            Buffer.concat([whole, whole]),
            whole.map((byte, at) => (at === 7 ? byte ^ 1 : byte)),
        ]) {
            writeFileSync(file, damaged);
            const again = await visit(server, storage);
            assert.match(again.told, /damaged; it will be fetched again/);
            // Small layouts come with the description.
            assert.ok(again.fetched > 0 || file.includes("-layout-"));
            assert.ok(readFileSync(file).equals(whole));
        }
    }
    assert.deepEqual(await visit(server, storage), { fetched: 0, told: "" });
});

test("damaged pins are refused, and those that were being written count for nothing", async () => {
    const server = await front(await serve(table, "simplepir"));
    const storage = place();
    await visit(server, storage);
    const [pins] = files(storage, /\.pins\.1$/);
    const whole = readFileSync(pins);
    for (const length of [0, 7, whole.length / 2, whole.length - 1]) {
        writeFileSync(pins.replace(/1$/, "2.1.unfinished-privet"), whole.subarray(0, length));
        assert.equal((await visit(server, storage)).told, "");
        writeFileSync(pins, whole.subarray(0, length));
        await assert.rejects(visit(server, storage), ({ name, message }) => {
            assert.ok(message.includes(path.basename(pins).replace(/\.1$/, "")), message);
            return name === "CorruptedError";
        });
        writeFileSync(pins, whole);
    }
});

test("a table is followed to its updates, and what was kept of it goes", async () => {
    const moving = build("moving", rows, ...signed);
    const server = await front(await serve(moving, "simplepir"));
    const storage = place();
    await visit(server, storage);
    for (const end of ["privet", "privet.updates"]) {
        copyFileSync(path.join(folder, `moving.${end}`), path.join(folder, `before.${end}`));
    }
    const sign = ["--publisher-key", "publisher.key"];
    privet("update", "moving.privet", ...sign, "--set", 'person 8={"number":80}');
    server.url = await serve(moving, "simplepir");
    const { told } = await visit(server, storage);
    assert.match(told, /updated from epoch 0 to 1/);
    assert.equal(files(storage, /hint.*\.part$/).length, 1);
    assert.deepEqual(files(storage, /\.pins\./).map((file) => path.extname(file)), [".2"]);
    assert.deepEqual(await visit(server, storage), { fetched: 0, told: "" });
    // The version before is no longer believed, nor another publisher's later one.
    server.url = await serve({ file: "moving=before.privet" }, "simplepir");
    await assert.rejects(visit(server, storage), { name: "IntegrityError" });
    privet("keygen", "-o", "stranger.key");
    build("strange", rows, "--key", "name", "--publisher-key", "stranger.key");
    for (const number of [1, 2]) {
        const set = `person 8={"number":${number}}`;
        privet("update", "strange.privet", "--publisher-key", "stranger.key", "--set", set);
    }
    server.url = await serve({ file: "moving=strange.privet" }, "simplepir");
    await assert.rejects(visit(server, storage), { name: "IntegrityError" });
});

for (const scheme of ["singlepass", "tapir-mt"]) {
    test(`hints of ${scheme} stay in memory`, async () => {
        const servers = [await serve(table, scheme), await serve(table, scheme)];
        const storage = place();
        for (let visits = 0; visits < 2; visits += 1) {
            const client = await connect(servers, { storage });
            await client.getMany(rows.slice(0, 20).map(({ name }) => name));
            assert.ok((await client.stats()).prepareReceived > 0);
            client.close();
            for (const file of files(storage, /./)) {
                assert.match(file, /\/[0-9a-f]{32}(\.pins\.1|-layout-[0-9a-f]{32}\.part)$/);
            }
        }
    });
}

test("clients of one folder keep what all of them pin", async () => {
    const names = ["one", "two", "three", "four"];
    const tables = names.map((name) => build(name, rows.slice(0, 50), "--key", "name"));
    const [first, ...others] = tables.map(({ file }) => file);
    const server = await front(await serve({ file: first }, "dpf", ...others));
    const second = await serve({ file: first }, "dpf", ...others);
    const storage = place();
    const urls = [server.address, second];
    const clients = await Promise.all(
        names.map((table) => connect(urls, { storage, table })),
    );
    clients.forEach((client) => client.close());
    const swapped = names.map((name) => build(`${name}-new`, rows.slice(50, 99), "--key", "name"));
    server.url = await serve(
        { file: `one=${swapped[0].file}` },
        "dpf",
        ...swapped.slice(1).map(({ file }, place) => `${names[place + 1]}=${file}`),
    );
    for (const table of names) {
        await assert.rejects(connect(urls, { storage, table }), { name: "IntegrityError" });
    }
});

/** Makes pins of a file: its own number is added, once. */
const adding =
    (own) =>
    (file = new Uint8Array()) =>
        file.includes(own) ? file : Uint8Array.of(...file, own);

/** A storage in memory, and who keeps files in it. Something may come before a file is made. */
function inMemory() {
    const files = new Map();
    const storage = (before = () => undefined) => ({
        names: async () => [...files.keys()],
        read: async (name) => files.get(name),
        create: async (name, bytes) => {
            await before();
            return !files.has(name) && Boolean(files.set(name, bytes));
        },
        written: async () => files.written,
        remove: async (name) => void files.delete(name),
    });
    const told = [];
    const keeper = (before, pins = new Map()) =>
        new Kept(
            Promise.resolve(storage(before)),
            pins,
            (text) => told.push(text),
            () => undefined,
        );
    return { files, told, keeper };
}

const PINS = `${"0".repeat(32)}.pins`;

test("a file of pins whose number others have used before counts for nothing", async () => {
    const { files, told, keeper } = inMemory();
    await keeper().pin(PINS, adding(1));
    let others = [2, 3, 4];
    const late = keeper(async () => {
        for (const other of others.splice(0)) {
            await keeper().pin(PINS, adding(other));
        }
    });
    await late.pin(PINS, adding(5));
    assert.deepEqual([...files.keys()], [`${PINS}.5`]);
    assert.deepEqual([...files.get(`${PINS}.5`)].sort(), [1, 2, 3, 4, 5]);
    assert.deepEqual(told, []);
});

test("pins that could not be written count beside an older file", async () => {
    const { files, told, keeper } = inMemory();
    files.set(`${PINS}.1`, Uint8Array.of(1));
    const [old, file] = [Uint8Array.of(1), Uint8Array.of(2)];
    const of = (isKept) => keeper(undefined, new Map([[PINS, { file, isKept }]])).pins();
    assert.deepEqual(await of(true), [[PINS, old]]);
    assert.deepEqual(await of(false), [
        [PINS, old],
        [PINS, file],
    ]);
    files.clear();
    assert.deepEqual(await of(true), [[PINS, file]]);
    const full = keeper(() => Promise.reject(new Error("no room")));
    await full.pin(PINS, adding(3));
    assert.match(told.join(), /pins cannot be kept.*believes the servers anew.*no room/);
});

test("parts that no pin names stay while a client may be about to pin them", async () => {
    const { files, keeper } = inMemory();
    const part = `${"0".repeat(32)}-hint-${"0".repeat(32)}.part`;
    files.set(part, Uint8Array.of(1));
    for (const [age, stays] of [
        [0, true],
        [1.1 * LONG_AGO, false],
    ]) {
        files.written = Date.now() - age;
        const kept = keeper();
        await kept.pins();
        await kept.give({ wants: () => undefined });
        await kept.done();
        assert.equal(files.has(part), stays);
    }
});

test("a client that is closed keeps what it has received", async () => {
    const server = await front(await serve(table, "simplepir-packed"));
    const storage = place();
    // By this scheme, a client is ready before it has the hint.
    const worker = new URL("./slow-worker.mjs", import.meta.url);
    assert.ok((await visit(server, storage, { worker })).fetched > 0);
    assert.deepEqual(await visit(server, storage), { fetched: 0, told: "" });
});

test("nothing is asked of a new version until its pins are kept", async () => {
    const followed = build("followed", rows, ...signed);
    const server = await front(await serve(followed, "simplepir"));
    const log = path.join(folder, "slow.log");
    process.env.PRIVET_SLOW_LOG = log;
    const client = await connect(server.address, {
        storage: place(),
        worker: new URL("./slow-worker.mjs", import.meta.url),
    });
    assert.equal((await client.get("person 7")).json().number, 7);
    const sign = ["--publisher-key", "publisher.key"];
    privet("update", "followed.privet", ...sign, "--set", 'person 8={"number":80}');
    server.url = await serve(followed, "simplepir");
    const said = () => readFileSync(log, "utf8").split("\n");
    const value = client.get("person 8");
    while (!said().includes("pins")) {
        await pause(20);
    }
    await pause(1000);
    assert.equal(said().at(-2), "pins", said().join());
    writeFileSync(`${log}.go`, "");
    assert.equal((await value).json().number, 80);
    assert.equal(said().at(-2), "/privet.v1.Privet/Answer");
    client.close();
});

test("whoever replaces pins at the same time as others adds to theirs", async () => {
    const storage = place();
    const name = `${"0".repeat(32)}.pins`;
    const keepers = Array.from({ length: 8 }, (_, own) => {
        const told = [];
        const notice = (text) => told.push(text);
        const kept = new Kept(openFolder(storage), new Map(), notice, () => undefined);
        return kept.pin(name, adding(own)).then(() => assert.deepEqual(told, []));
    });
    await Promise.all(keepers);
    const [file, ...others] = files(storage, /./);
    assert.match(path.basename(file), /\.pins\.([89]|\d\d)$/);
    assert.deepEqual(others, []);
    assert.deepEqual([...readFileSync(file)].sort(), [0, 1, 2, 3, 4, 5, 6, 7]);
});

test("a program that is killed leaves what the next one can use", patient, async () => {
    const server = await front(await serve(table, "simplepir"));
    const storage = place();
    const program = `
        import { connect } from "@privet/client";
        const client = await connect(${JSON.stringify(server.address)},
            { storage: ${JSON.stringify(storage)} });
        await client.get("person 7");`;
    const begun = Date.now();
    await visit(server, place());
    const longest = Date.now() - begun;
    for (let kills = 0; kills < 8; kills += 1) {
        const child = spawn(process.execPath, ["--input-type=module", "-e", program]);
        const ended = new Promise((over) => child.once("close", over));
        await new Promise((over) => setTimeout(over, Math.random() * 1.5 * longest));
        child.kill("SIGKILL");
        await ended;
        assert.equal((await visit(server, storage)).told, "");
        if (kills % 2 === 0) {
            // The next one begins with nothing.
            rmSync(storage, { recursive: true });
        }
    }
});

test("a folder may have other files, and one that cannot be used is an error", async () => {
    const url = await serve(table, "simplepir-packed");
    const taken = path.join(folder, "taken");
    writeFileSync(taken, "a file");
    await assert.rejects(connect(url, { storage: path.join(taken, "folder") }), {
        name: "UnavailableError",
        message: /taken/,
    });
    (await connect(url, { storage: "memory" })).close();
    assert.ok(!existsSync("memory"));
    const storage = place();
    mkdirSync(storage);
    for (const name of ["film.part", "one.pins.1", "list.new"]) {
        writeFileSync(path.join(storage, name), "somebody's own");
    }
    (await connect(url, { storage })).close();
    assert.equal(files(storage, /^(film.part|one.pins.1|list.new)$/).length, 3);
    for (const file of files(storage, /^[0-9a-f]{32}/)) {
        assert.equal(statSync(file).mode & 0o77, 0);
    }
});
