/** The browser's own files for this origin. */

import type { OpenStorage, Storage } from "./kept.js";

/** How a whole file begins. It is written last. */
const WHOLE = new TextEncoder().encode("privet 1");

/** What a worker has for a file, without the types of all workers. */
interface Access {
    read(bytes: Uint8Array, options: { at: number }): number;
    write(bytes: Uint8Array, options: { at: number }): number;
    truncate(size: number): void;
    flush(): void;
    close(): void;
}
type Handle = FileSystemFileHandle & { createSyncAccessHandle(): Promise<Access> };

export const openOpfs: OpenStorage = async (place, notice) => {
    if (place === "memory") {
        return undefined;
    }
    try {
        if (!globalThis.isSecureContext) {
            throw new Error("the page did not come over an encrypted connection");
        }
        const root = await navigator.storage.getDirectory();
        return files(await root.getDirectoryHandle("privet", { create: true }));
    } catch (error) {
        // Some browsers have no files in private windows.
        notice(`nothing is kept beyond this page: ${String(error)}`);
        return undefined;
    }
};

function files(folder: FileSystemDirectoryHandle): Storage {
    const remove = (name: string): Promise<void> =>
        // It may be gone, or another tab may be writing it.
        folder.removeEntry(name).catch(unless(undefined, "NotFoundError", LOCKED));
    return {
        names: async () => {
            const names = [];
            for await (const name of folder.keys()) {
                names.push(name);
            }
            return names;
        },
        read: async (name) => {
            try {
                const file = await (await folder.getFileHandle(name)).getFile();
                const bytes = new Uint8Array(await file.arrayBuffer());
                return isWhole(bytes) ? bytes.subarray(WHOLE.length) : undefined;
            } catch (error) {
                return unless(undefined, "NotFoundError")(error);
            }
        },
        create: async (name, bytes) => {
            const handle = (await folder.getFileHandle(name, { create: true })) as Handle;
            const access = await handle.createSyncAccessHandle().catch(unless(undefined, LOCKED));
            if (!access) {
                return false;
            }
            let isThere = false;
            try {
                const begin = new Uint8Array(WHOLE.length);
                access.read(begin, { at: 0 });
                const isFree = !isWhole(begin);
                if (isFree) {
                    access.truncate(0);
                    write(access, bytes, WHOLE.length);
                    write(access, WHOLE, 0);
                }
                isThere = true;
                return isFree;
            } finally {
                access.close();
                if (!isThere) {
                    await remove(name);
                }
            }
        },
        remove,
    };
}

/** The error's name if another tab writes the file. */
const LOCKED = "NoModificationAllowedError";

function isWhole(bytes: Uint8Array): boolean {
    return bytes.length >= WHOLE.length && WHOLE.every((byte, place) => byte === bytes[place]);
}

function write(access: Access, bytes: Uint8Array, at: number): void {
    if (access.write(bytes, { at }) !== bytes.length) {
        throw new Error("the browser has no room");
    }
    access.flush();
}

/** Takes errors of these names for `value`. */
function unless<T>(value: T, ...names: string[]): (error: unknown) => T {
    return (error) => {
        if (names.includes((error as { name?: string }).name ?? "")) {
            return value;
        }
        throw error;
    };
}
