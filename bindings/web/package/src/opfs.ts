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
            // Another tab may write it at this moment, or have removed it.
            const access = await handle
                .createSyncAccessHandle()
                .catch(unless(undefined, "NotFoundError", LOCKED));
            if (!access) {
                return false;
            }
            try {
                const begin = new Uint8Array(WHOLE.length);
                access.read(begin, { at: 0 });
                return !isWhole(begin) && writeWhole(access, bytes);
            } finally {
                access.close();
            }
        },
        written: async (name) => {
            try {
                return (await (await folder.getFileHandle(name)).getFile()).lastModified;
            } catch (error) {
                return unless(undefined, "NotFoundError")(error);
            }
        },
        // It may be gone, or another tab may be writing it.
        remove: (name) =>
            folder.removeEntry(name).catch(unless(undefined, "NotFoundError", LOCKED)),
    };
}

/** The error's name if another tab writes the file. */
const LOCKED = "NoModificationAllowedError";

function isWhole(bytes: Uint8Array): boolean {
    return bytes.length >= WHOLE.length && WHOLE.every((byte, place) => byte === bytes[place]);
}

function writeWhole(access: Access, bytes: Uint8Array): boolean {
    try {
        access.truncate(0);
        write(access, bytes, WHOLE.length);
        write(access, WHOLE, 0);
        return true;
    } catch (error) {
        // Empty, it counts for nothing. It cannot be removed while it is open, and once it is
        // closed, another tab may have written it.
        access.truncate(0);
        throw error;
    }
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
