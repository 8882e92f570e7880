/** A folder of files, in Node. */

import { randomUUID } from "node:crypto";
import { link, mkdir, open, readdir, readFile, rm, stat } from "node:fs/promises";
import path from "node:path";
import { LONG_AGO, type Storage } from "./kept.js";

/** The end of the names of files that are being written. */
const UNFINISHED = ".unfinished-privet";

export async function openFolder(place: string): Promise<Storage | undefined> {
    if (place === "memory") {
        return undefined;
    }
    await mkdir(place, { recursive: true, mode: 0o700 });
    const at = (name: string): string => path.join(place, name);
    for (const name of await readdir(place)) {
        const written = name.endsWith(UNFINISHED) && (await stat(at(name)).catch(() => undefined));
        if (written && Date.now() - written.mtimeMs > LONG_AGO) {
            await rm(at(name), { force: true });
        }
    }
    return {
        names: async () => (await readdir(place)).filter((name) => !name.endsWith(UNFINISHED)),
        read: (name) => readFile(at(name)).then(copied, unless("ENOENT", undefined)),
        create: async (name, bytes) => {
            const unfinished = at(`${name}.${randomUUID()}${UNFINISHED}`);
            try {
                await synced(unfinished, "wx", (file) => file.writeFile(bytes));
                // Unlike a rename, this leaves a file of that name alone.
                await link(unfinished, at(name));
            } catch (error) {
                return unless("EEXIST", false)(error);
            } finally {
                await rm(unfinished, { force: true });
            }
            // Windows opens no folders, and needs none of this.
            await synced(place, "r").catch(() => undefined);
            return true;
        },
        written: (name) =>
            stat(at(name)).then(({ mtimeMs }) => mtimeMs, unless("ENOENT", undefined)),
        remove: (name) => rm(at(name), { force: true }),
    };
}

type File = Awaited<ReturnType<typeof open>>;

async function synced(
    name: string,
    flags: string,
    work?: (file: File) => Promise<void>,
): Promise<void> {
    const file = await open(name, flags, 0o600);
    try {
        await work?.(file);
        await file.sync();
    } finally {
        await file.close();
    }
}

function copied(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
    return new Uint8Array(bytes);
}

/** Takes an error of this code for `value`. */
function unless<T>(code: string, value: T): (error: unknown) => T {
    return (error) => {
        if ((error as { code?: unknown }).code === code) {
            return value;
        }
        throw error;
    };
}
