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

export class Game {
    readonly #lookups: Lookups;
    readonly #sides = [the<HTMLInputElement>("heads"), the<HTMLInputElement>("tails")] as const;
    readonly #leak = the<HTMLInputElement>("leak");
    readonly #play = the<HTMLButtonElement>("play");
    #matches = { private: new Match(), leaky: new Match() };
    #isPlaying = false;

    constructor(names: readonly string[], lookups: Lookups) {
        this.#lookups = lookups;
        this.#sides.forEach((field, side) => {
            field.value = names[side] ?? "";
            // Another name is another game.
            field.addEventListener("change", () => this.#clear());
        });
        this.#play.addEventListener("click", () => {
            this.#isPlaying = !this.#isPlaying;
            if (this.#isPlaying) {
                void this.#rounds();
            }
        });
        the("keys").replaceChildren(...names.map((value) => make("option", { value })));
        the("again").addEventListener("click", () => this.#clear());
        this.#draw();
    }

    #clear(): void {
        this.#isPlaying = false;
        this.#matches = { private: new Match(), leaky: new Match() };
        this.#draw();
    }

    async #rounds(): Promise<void> {
        this.#play.textContent = "Stop";
        const matches = this.#matches;
        try {
            for (let round = 0; round < ROUNDS && this.#isPlaying; round += 1) {
                await this.#round(this.#leak.checked ? matches.leaky : matches.private);
                if (this.#matches === matches) {
                    this.#draw();
                }
            }
        } catch (error) {
            the("score").replaceChildren(make("span", { class: "wrong" }, String(error)));
        }
        this.#isPlaying = false;
        this.#play.textContent = `Play ${ROUNDS} rounds`;
    }

    async #round(match: Match): Promise<void> {
        const coin = (crypto.getRandomValues(new Uint8Array(1))[0]! & 1) as 0 | 1;
        const key = this.#sides[coin].value.trim();
        const isLeaky = match === this.#matches.leaky;
        const isKnown = isLeaky && match.remembered.has(key);
        const cast = mode() === PLAIN ? "one" : mode();
        const all = isKnown ? [] : (await this.#lookups.look(cast, key)).sights;
        // Whoever watches two servers has what no operator may have.
        const sights = all.filter(({ server }) => server === 0);
        if (isLeaky && coin === 0) {
            match.remembered.add(key);
        }
        const isRight = match.adversary.guess(sights, coin) === coin;
        match.right.push((match.right.at(-1) ?? 0) + Number(isRight));
    }

    #draw(): void {
        const series = Object.entries(this.#matches).map(([name, { right }]) => ({ name, right }));
        const longest = Math.max(...series.map(({ right }) => right.length), 1);
        const rounds = Math.ceil(longest / ROUNDS) * ROUNDS;
        the("plot").replaceChildren(accuracy(series, rounds));
        const words = series.map(({ name, right }) => {
            const percent = right.length ? Math.round((right.at(-1)! / right.length) * 100) : 0;
            const what = right.length ? `${percent} %` : "–";
            const of = name === "private" ? "right without a leak" : "right with the leak";
            return make("span", { class: name }, make("b", {}, what), ` ${of}`);
        });
        the("score").replaceChildren(...words);
    }
}
