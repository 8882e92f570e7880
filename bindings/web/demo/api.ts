/** What the program that serves the page tells: the table, and what its servers saw. */

/** Servers that are asked together. */
export interface Cast {
    readonly name: string;
    readonly scheme: string;
    readonly lies: boolean;
    readonly urls: string[];
}

/** The table and its servers. */
export interface Stage {
    readonly what: string;
    readonly rows: number;
    readonly examples: string[];
    readonly casts: Cast[];
}

/** Something that reached a server, at a time in microseconds. */
export interface Sight {
    readonly number: number;
    readonly cast: string;
    readonly server: number;
    readonly at: number;
    readonly length: number;
    readonly bytes: Uint8Array;
}

/** What a scheme costs, as `privet plan` computes it. */
export interface Cost {
    readonly scheme: string;
    readonly servers: number;
    readonly first: { up: number; down: number };
    readonly lookup: { up: number; down: number };
    readonly answer_us: number;
    readonly client_query_us: number;
    readonly client_recover_us: number;
}

/** What follows # in the address that the program printed. Browsers send that to nobody. */
const token = location.hash.slice(1);

// Another token in the address does not by itself load the page again.
addEventListener("hashchange", () => location.reload());

async function asked(path: string): Promise<Response> {
    const response = await fetch(path, { headers: { "x-privet-token": token } });
    if (!response.ok) {
        throw new Error(`the program says: ${(await response.text()).trim()}`);
    }
    return response;
}

const json = async (path: string): Promise<unknown> => (await asked(path)).json();

export const stage = () => json("/api/stage") as Promise<Stage>;
export const keys = async () => (await (await asked("/api/keys")).text()).split("\n");
export const costs = async () => ((await json("/api/costs")) as { schemes: Cost[] }).schemes;

/** How long the servers of a cast have computed answers so far, in milliseconds. */
export async function busy(cast: string): Promise<number> {
    return ((await json(`/api/busy?cast=${cast}`)) as number) / 1000;
}

/** An ordinary request: the server reads the key in it. */
export async function plain(key: string): Promise<string> {
    return (await asked(`/plain?key=${encodeURIComponent(key)}`)).text();
}

let last = 0;

/** What the servers saw since the last call: a line of JSON, then the bytes. */
export async function seen(): Promise<Sight[]> {
    const body = new Uint8Array(await (await asked(`/api/seen?after=${last}`)).arrayBuffer());
    const end = body.indexOf(10);
    const sights = JSON.parse(new TextDecoder().decode(body.subarray(0, end))) as Sight[];
    let at = end + 1;
    return sights.map((sight) => {
        last = Math.max(last, sight.number);
        at += sight.length;
        return { ...sight, bytes: body.subarray(at - sight.length, at) };
    });
}
