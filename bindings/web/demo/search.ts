/** Looking up, with what the server saw beside it. */

import { agreement } from "./bytes.js";
import { bytes, make, the, time } from "./dom.js";
import { type Lookup, type Lookups, PLAIN } from "./lookups.js";
import { completed } from "./names.js";
import { bars, tile } from "./plot.js";
import type { Sight, Stage } from "./api.js";

/** How many lookups are listed. */
const LISTED = 5;

/** What no table has. */
const NONSENSE = "qzx-nonsense";

/** How people call the servers of one lookup. */
function seer({ sights }: Lookup, { server }: Sight): string {
    return sights.length > 1 ? `Server ${server + 1}` : "The server";
}

/** How the visitor asks. */
export function mode(): string {
    const chosen = document.querySelector<HTMLInputElement>("input[name=mode]:checked");
    return chosen?.value ?? "one";
}

/** What was found: a name and its fields, of which some are wrong. */
export function card(
    { key, value }: Pick<Lookup, "key" | "value">,
    wrong: readonly string[] = [],
): HTMLElement[] {
    if (!value) {
        return [make("h4", {}, key), make("p", {}, "The table does not have it.")];
    }
    const all = Object.entries(value).map(([field, text]) => {
        const isLink = field === "homepage";
        return make(
            "div",
            wrong.includes(field) ? { class: "wrong" } : isLink ? { class: "faint" } : {},
            make("dt", {}, field),
            make("dd", {}, String(text)),
        );
    });
    return [make("h4", {}, key), make("dl", {}, ...all)];
}

export class Search {
    readonly #lookups: Lookups;
    readonly #form = the<HTMLFormElement>("form");
    readonly #field = the<HTMLInputElement>("key");
    readonly #made: Lookup[] = [];
    #key = "";

    constructor(stage: Stage, keys: readonly string[], lookups: Lookups, done: () => void) {
        this.#lookups = lookups;
        this.#key = stage.examples[0] ?? keys[0] ?? "";
        this.#field.value = this.#key;
        const look = (): void => {
            void this.look(this.#field.value.trim()).then(done);
        };
        this.#form.addEventListener("submit", (event) => {
            event.preventDefault();
            look();
        });
        completed(this.#field, the("matches"), keys, look);
        for (const radio of document.querySelectorAll<HTMLInputElement>("input[name=mode]")) {
            radio.addEventListener("change", look);
        }
        const examples = [...stage.examples, NONSENSE].map((key) => {
            const chip = make("button", { type: "button" }, key);
            chip.addEventListener("click", () => {
                this.#field.value = key;
                look();
            });
            return chip;
        });
        the("examples").replaceChildren(...examples);
        this.#list();
    }

    /** Begins with lookups that show what there is to see: a miss, and one name twice. */
    async begin(): Promise<void> {
        for (const key of [NONSENSE, this.#key, this.#key]) {
            await this.look(key);
        }
    }

    /** What was looked up last. */
    get key(): string {
        return this.#key;
    }

    async look(key: string): Promise<void> {
        if (!key) {
            return;
        }
        const cast = mode();
        document.body.classList.toggle("plain", cast === PLAIN);
        document.body.setAttribute("aria-busy", "true");
        try {
            const lookup = await this.#lookups.look(cast, key);
            this.#key = key;
            this.#made.unshift(lookup);
            this.#made.length = Math.min(this.#made.length, LISTED);
            this.#show(lookup);
        } catch (error) {
            the("result").replaceChildren(make("p", { class: "wrong" }, String(error)));
            // Nothing of an earlier lookup stays beside it.
            ["figures", "scheme", "verdict", "sight"].forEach((id) => the(id).replaceChildren());
        } finally {
            document.body.removeAttribute("aria-busy");
        }
    }

    #show(lookup: Lookup): void {
        the("result").replaceChildren(...card(lookup));
        the("figures").replaceChildren(...figures(lookup));
        const isPlain = lookup.cast === PLAIN;
        the("scheme").textContent = isPlain
            ? "an ordinary request"
            : `${this.#lookups.scheme(lookup.cast)}`;
        the("sight").replaceChildren(
            ...lookup.sights.map((sight) => (isPlain ? read(sight) : unread(lookup, sight))),
        );
        the("verdict").textContent = this.#verdict(lookup);
        this.#list();
    }

    /** What two queries have in common, measured. */
    #verdict(lookup: Lookup): string {
        if (lookup.cast === PLAIN) {
            return "It reads what you asked for, and can keep it.";
        }
        const before = this.#made.slice(1).find(({ cast }) => cast === lookup.cast);
        if (!before) {
            return "It computed on bytes it cannot read. Look up the same again.";
        }
        const pairs = lookup.sights.map((sight, place) => [sight, before.sights[place]] as const);
        const sum = pairs.reduce(
            (sum, [now, then]) => sum + agreement(now.bytes, then?.bytes ?? now.bytes),
            0,
        );
        const share = sum / pairs.length;
        const isSame = pairs.every(([now, then]) => now.length === then?.length);
        const bits = 8 * pairs.reduce((sum, [now]) => sum + now.length, 0);
        // Of so many coins, half are heads, give or take five standard deviations.
        const chance = Math.abs(share - 0.5) <= 2.5 / Math.sqrt(bits) ? ", as by chance" : "";
        const percent = (share * 100).toFixed(1);
        const name = before.key === lookup.key ? "Same name again" : "Another name";
        const length = isSame ? "same length" : "another length";
        return `${name}: ${length}; ${percent}\u00a0% of bits agree${chance}.`;
    }

    #list(): void {
        const rows = Array.from({ length: LISTED }, (_, place) => {
            const lookup = this.#made[place];
            if (!lookup) {
                return make("div", { role: "row", class: "empty" }, cell(), cell());
            }
            const isPlain = lookup.cast === PLAIN;
            const what = lookup.value ? "found" : "not there";
            const [first] = lookup.sights;
            const length = `${first?.length.toLocaleString("en") ?? 0} B`;
            const saw = isPlain
                ? lookup.sights.map(({ bytes }) => make("code", {}, decoded(bytes)))
                : [
                      ...lookup.sights.map(({ bytes }) => tile(bytes, "bytes like noise")),
                      make("span", {}, lookup.sights.length > 1 ? `${length} each` : length),
                  ];
            return make(
                "div",
                { role: "row", class: isPlain ? "danger" : "" },
                cell(make("b", {}, lookup.key), make("small", {}, what)),
                cell(...saw),
            );
        });
        the("rows").replaceChildren(...rows);
    }
}

function cell(...content: Node[]): HTMLElement {
    return make("span", { role: "cell" }, ...content);
}

const decoded = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

/** The text of a request that the server reads. */
function read({ bytes }: Sight): HTMLElement {
    return make("pre", { class: "read" }, decoded(bytes));
}

/** A query that it cannot read. */
function unread(lookup: Lookup, sight: Sight): HTMLElement {
    const who = seer(lookup, sight);
    const length = `${sight.length.toLocaleString("en")} bytes`;
    const place = the("sight");
    const ratio = place.clientWidth / lookup.sights.length / (place.clientHeight - 110);
    return make(
        "figure",
        {},
        tile(sight.bytes, `${who} saw ${length} that look like noise`, ratio),
        make(
            "figcaption",
            {},
            make("b", {}, `${lookup.sights.length > 1 ? `${who}: ` : ""}${length}`),
            bars(sight.bytes, "How often byte values occur: about equally"),
            make("small", {}, "how often each byte value occurs"),
        ),
    );
}

/** Bars of bytes and times; their lengths are logarithms. */
function figures({ sent, received, computed, waited }: Lookup): HTMLElement[] {
    const bar = (name: string, number: number | undefined, words: string, most: number) => {
        const meter = make("i", {});
        const share = Math.log10(1 + (number ?? 0)) / Math.log10(most);
        meter.style.setProperty("--share", String(Math.min(share, 1)));
        return make("div", {}, make("dt", {}, name), make("dd", {}, meter, make("b", {}, words)));
    };
    const [million, minute] = [1e6, 1e7];
    const work = computed === undefined ? undefined : computed * 1000;
    return [
        bar("sent", sent, bytes(sent), million),
        bar("received", received, bytes(received), million),
        bar("server computed", work, computed === undefined ? "–" : time(computed), minute),
        bar("you waited", waited * 1000, time(waited), minute),
    ];
}
