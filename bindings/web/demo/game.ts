/** The game: a coin, two names, and somebody who watches the server. */

import { Adversary } from "./adversary.js";
import { make, the } from "./dom.js";
import { type Lookups, PLAIN } from "./lookups.js";
import { accuracy } from "./plot.js";
import { mode } from "./search.js";

/** Rounds of one press of the button. */
const ROUNDS = 100;

/** Guesses about one way to play. */
class Match {
    readonly right: number[] = [];
    readonly adversary = new Adversary();
    /** What a leaky page remembers. */
    readonly remembered = new Set<string>();
}

/** Without a leak, and with it. */
interface Matches {
    readonly honest: Match;
    readonly leaky: Match;
}

export class Game {
    readonly #lookups: Lookups;
    readonly #sides = [the<HTMLInputElement>("heads"), the<HTMLInputElement>("tails")] as const;
    readonly #leak = the<HTMLInputElement>("leak");
    readonly #play = the<HTMLButtonElement>("play");
    #matches: Matches = { honest: new Match(), leaky: new Match() };
    /** The rounds under way. */
    #run: symbol | undefined;

    constructor(names: readonly string[], lookups: Lookups) {
        this.#lookups = lookups;
        this.#sides.forEach((field, side) => {
            field.value = names[side] ?? "";
            // Another name is another game.
            field.addEventListener("change", () => this.#clear());
        });
        for (const radio of document.querySelectorAll("input[name=mode]")) {
            // Another scheme, too.
            radio.addEventListener("change", () => this.#clear());
        }
        this.#play.addEventListener("click", () => {
            if (this.#run) {
                this.#stop();
            } else {
                void this.#rounds();
            }
        });
        the("keys").replaceChildren(...names.map((value) => make("option", { value })));
        the("again").addEventListener("click", () => this.#clear());
        this.#draw();
    }

    #clear(): void {
        this.#stop();
        this.#matches = { honest: new Match(), leaky: new Match() };
        this.#draw();
    }

    #stop(): void {
        this.#run = undefined;
        this.#play.textContent = `Play ${ROUNDS} rounds`;
    }

    async #rounds(): Promise<void> {
        this.#play.textContent = "Stop";
        const run = (this.#run = Symbol());
        const matches = this.#matches;
        try {
            for (let round = 0; round < ROUNDS && this.#run === run; round += 1) {
                await this.#round(matches, this.#leak.checked);
                if (this.#matches === matches) {
                    this.#draw();
                }
            }
        } catch (error) {
            the("score").replaceChildren(make("span", { class: "wrong" }, String(error)));
        }
        if (this.#run === run) {
            this.#stop();
        }
    }

    async #round(matches: Matches, isLeaky: boolean): Promise<void> {
        const match = isLeaky ? matches.leaky : matches.honest;
        const coin = (crypto.getRandomValues(new Uint8Array(1))[0]! & 1) as 0 | 1;
        const key = this.#sides[coin].value.trim();
        const isKnown = isLeaky && match.remembered.has(key);
        const all = isKnown ? [] : (await this.#lookups.look(mode(), key)).sights;
        // Whoever watches two servers has what no operator may have.
        const sights = all.filter(({ server }) => server === 0);
        if (isLeaky && coin === 0) {
            match.remembered.add(key);
        }
        const isRight = match.adversary.guess(sights, coin) === coin;
        match.right.push((match.right.at(-1) ?? 0) + Number(isRight));
    }

    #draw(): void {
        const { honest, leaky } = this.#matches;
        const series = [
            { kind: "honest", name: "without a leak", right: honest.right },
            { kind: "leaky", name: "with the leak", right: leaky.right },
        ];
        const longest = Math.max(...series.map(({ right }) => right.length), 1);
        const rounds = Math.ceil(longest / ROUNDS) * ROUNDS;
        the("plot").replaceChildren(accuracy(series, rounds));
        const words = series.map(({ kind, name, right }) => {
            const percent = right.length ? Math.round((right.at(-1)! / right.length) * 100) : 0;
            const what = right.length ? `${percent} %` : "–";
            return make("span", { class: kind }, make("b", {}, what), ` right ${name}`);
        });
        the("score").replaceChildren(...words);
        const cast = mode();
        const queries = cast === PLAIN ? "ordinary requests" : this.#lookups.scheme(cast);
        const of = cast === "two" ? ", one server of two" : "";
        the("watched").textContent = `watches ${queries}${of}`;
    }
}
