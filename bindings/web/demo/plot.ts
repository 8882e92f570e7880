/** Drawings: what bytes look like, and how often guesses were right. */

import { histogram } from "./bytes.js";
import { draw, make } from "./dom.js";

/** Pixels of an image at most. */
const MOST_PIXELS = 1 << 13;

/**
 * An image of bytes: each is a pixel, dark or light. Of long ones, the first. It is to be shown
 * `ratio` times as wide as high.
 */
export function tile(bytes: Uint8Array, name: string, ratio = 1): HTMLCanvasElement {
    const pixels = Math.min(bytes.length, MOST_PIXELS);
    const width = Math.ceil(Math.sqrt(pixels * ratio)) || 1;
    // The last line is full.
    const height = Math.floor(pixels / width) || 1;
    const canvas = make("canvas", {
        width: String(width),
        height: String(height),
        role: "img",
        "aria-label": name,
    });
    const context = canvas.getContext("2d");
    if (!context) {
        return canvas;
    }
    const image = context.createImageData(width, height);
    for (let place = 0; place < Math.min(bytes.length, width * height); place += 1) {
        // Eight shades, so that a picture of the page stays small.
        const value = ((bytes[place] ?? 0) >> 5) * 36;
        // From deep green to nearly white.
        image.data.set([value * 0.9, 50 + value * 0.78, 60 + value * 0.74, 255], place * 4);
    }
    context.putImageData(image, 0, 0);
    return canvas;
}

/** How often byte values occur, as bars. */
export function bars(bytes: Uint8Array, name: string): SVGElement {
    const bins = bytes.length > 4096 ? 64 : 16;
    const counts = histogram(bytes, bins);
    const top = Math.max(...counts, 1);
    const width = 256 / bins;
    const all = counts.map((count, place) => {
        const height = (count / top) * 60;
        const at = { x: place * width + 0.5, y: 64 - height, width: width - 1, height };
        return draw("rect", at);
    });
    return draw(
        "svg",
        { viewBox: "0 0 256 64", role: "img", "aria-label": name, preserveAspectRatio: "none" },
        ...all,
    );
}

/** Guesses, and how many of them were right after each. */
export interface Series {
    readonly kind: string;
    readonly name: string;
    readonly right: number[];
}

const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [440, 220, 44, 196, 10] as const;

/** How often guesses were right, over rounds; with the band in which mere guessers are. */
export function accuracy(series: readonly Series[], rounds: number): SVGElement {
    const x = (round: number): number => LEFT + (round / rounds) * (WIDTH - LEFT - 8);
    const y = (share: number): number => BOTTOM - share * (BOTTOM - TOP);
    const point = (round: number, share: number): string =>
        `${x(round).toFixed(1)},${y(share).toFixed(1)}`;
    const edge = (sign: number): string[] => {
        const points = [];
        for (let round = 1; round <= rounds; round += Math.max(1, Math.floor(round / 8))) {
            const off = Math.min(0.98 / Math.sqrt(round), 0.5);
            points.push(point(round, 0.5 + sign * off));
        }
        points.push(point(rounds, 0.5 + sign * (0.98 / Math.sqrt(rounds))));
        return points;
    };
    const band = draw("polygon", {
        class: "band",
        points: [...edge(1), ...edge(-1).reverse()].join(" "),
    });
    const lines = [0, 0.5, 1].flatMap((share) => [
        draw("line", { class: "grid", x1: LEFT, x2: WIDTH - 8, y1: y(share), y2: y(share) }),
        draw("text", { x: LEFT - 6, y: y(share) + 4, "text-anchor": "end" }, `${share * 100} %`),
    ]);
    const ends = [0, rounds].map((round) =>
        draw(
            "text",
            { x: x(round), y: HEIGHT - 8, "text-anchor": round ? "end" : "start" },
            round ? `${round} rounds` : "0",
        ),
    );
    const curves = series.flatMap(({ kind, right }) => {
        if (!right.length) {
            return [];
        }
        const points = right.map((count, round) => point(round + 1, count / (round + 1)));
        const [endX, endY] = points.at(-1)!.split(",") as [string, string];
        return [
            draw("polyline", { class: `curve ${kind}`, points: points.join(" ") }),
            draw("circle", { class: `end ${kind}`, cx: endX, cy: endY, r: 3.5 }),
        ];
    });
    const words = series.map(({ name, right }) => {
        const share = right.length ? (right.at(-1)! / right.length) * 100 : 50;
        return `${name}: right in ${share.toFixed(0)} % of ${right.length} rounds`;
    });
    return draw(
        "svg",
        { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": words.join("; ") },
        band,
        ...lines,
        ...ends,
        ...curves,
    );
}
