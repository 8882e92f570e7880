/** Whoever watches the server, and guesses which of two names was looked up. */

import type { Sight } from "./api.js";
import { agreement } from "./bytes.js";

/** What is measured of a round; `undefined` where there was nothing to measure. */
type Features = (number | undefined)[];

/** How often a number came, its mean, and the sum of squares around it. */
class Moments {
    #count = 0;
    #mean = 0;
    #squares = 0;

    add(value: number): void {
        this.#count += 1;
        const off = value - this.#mean;
        this.#mean += off / this.#count;
        this.#squares += off * (value - this.#mean);
    }

    /** Whether it says anything. */
    get isKnown(): boolean {
        return this.#count >= 2;
    }

    /** The logarithm of how likely this value is, as by a bell curve. */
    likely(value: number): number {
        // A value that never changed is not certain to stay: the floor is a thousandth of it.
        const floor = (Math.abs(this.#mean) / 1000) ** 2 + 1e-9;
        const variance = Math.max(this.#squares / (this.#count - 1), floor);
        return -((value - this.#mean) ** 2 / variance + Math.log(variance)) / 2;
    }
}

/**
 * A naive Bayes classifier. It guesses, is told the truth, and so learns from round to round. Each
 * name has its own picture of each feature.
 */
export class Adversary {
    readonly #pictures = [new Map<number, Moments>(), new Map<number, Moments>()] as const;
    readonly #latest: [Uint8Array?, Uint8Array?] = [];
    #ended = 0;

    /** Guesses from what was seen in a round: 0 or 1. Then it learns which it was. */
    guess(sights: readonly Sight[], truth: 0 | 1): 0 | 1 {
        const features = this.#features(sights);
        const score = (side: 0 | 1): number => {
            let sum = 0;
            features.forEach((value, place) => {
                const picture = this.#pictures[side].get(place);
                const other = this.#pictures[side ? 0 : 1].get(place);
                if (value !== undefined && picture?.isKnown && other?.isKnown) {
                    sum += picture.likely(value);
                }
            });
            return sum;
        };
        const [one, other] = [score(0), score(1)];
        // Who knows nothing tosses a coin.
        const guess = one === other ? (Math.random() < 0.5 ? 0 : 1) : one > other ? 0 : 1;
        features.forEach((value, place) => {
            if (value !== undefined) {
                const pictures = this.#pictures[truth];
                const picture = pictures.get(place) ?? new Moments();
                picture.add(value);
                pictures.set(place, picture);
            }
        });
        if (sights[0]) {
            this.#latest[truth] = sights[0].bytes;
        }
        this.#ended = sights.at(-1)?.at ?? this.#ended;
        return guess;
    }

    #features(sights: readonly Sight[]): Features {
        const [first] = sights;
        const queries = sights.map(({ bytes }) => bytes);
        const alike = (latest?: Uint8Array): number | undefined =>
            first && latest && agreement(first.bytes, latest);
        const length = queries.reduce((sum, { length }) => sum + length, 0);
        const sum = queries.reduce((sum, bytes) => bytes.reduce((sum, byte) => sum + byte, sum), 0);
        const pause = first && this.#ended ? first.at - this.#ended : undefined;
        return [
            // Number and length of the queries.
            sights.length,
            length,
            // Pauses before and between them, of which few are long.
            pause && Math.log(Math.max(pause, 1)),
            first && Math.log(1 + (sights.at(-1)?.at ?? 0) - first.at),
            // Their bytes: the mean, the likeness to earlier ones, and some by themselves.
            length ? sum / length : undefined,
            alike(this.#latest[0]),
            alike(this.#latest[1]),
            ...[0, 1, 2, 3, 8, 16, 32, 64].map((place) => first?.bytes[place]),
        ];
    }
}
