/** Elements of the page, and how numbers are written. */

/** The element of this id, which the page has. */
export function the<Kind extends HTMLElement>(id: string): Kind {
    const found = document.getElementById(id);
    if (!found) {
        throw new Error(`the page has no ${id}`);
    }
    return found as Kind;
}

type Content = string | Node;

/** An element with attributes and content. Text stays text. */
export function make<Name extends keyof HTMLElementTagNameMap>(
    name: Name,
    attributes: Record<string, string> = {},
    ...content: Content[]
): HTMLElementTagNameMap[Name] {
    const element = document.createElement(name);
    for (const [name, value] of Object.entries(attributes)) {
        element.setAttribute(name, value);
    }
    element.append(...content);
    return element;
}

/** The same for drawings. */
export function draw(
    name: string,
    attributes: Record<string, string | number> = {},
    ...content: Content[]
): SVGElement {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [name, value] of Object.entries(attributes)) {
        element.setAttribute(name, String(value));
    }
    element.append(...content);
    return element;
}

/** Three digits at most, and commas between thousands. */
function short(number: number): string {
    const digits = number >= 100 ? 0 : number >= 10 ? 1 : 2;
    return Number(number.toFixed(digits)).toLocaleString("en");
}

/** As `34.1 KB`. */
export function bytes(count: number): string {
    const units = ["B", "KB", "MB", "GB"];
    let unit = 0;
    while (count >= 999.5 && unit < units.length - 1) {
        count /= 1000;
        unit += 1;
    }
    return `${unit ? short(count) : count.toLocaleString("en")} ${units[unit]}`;
}

/** As `2.3 ms`. */
export function time(milliseconds: number): string {
    if (milliseconds < 1) {
        return `${short(milliseconds * 1000)} µs`;
    }
    return milliseconds < 1000 ? `${short(milliseconds)} ms` : `${short(milliseconds / 1000)} s`;
}
