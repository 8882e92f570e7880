/** The field for a name, completed from the list of all names, which the page has. */

import { make } from "./dom.js";

/** How many names are offered. */
const MOST_OFFERED = 8;

/** Names that begin so, and then those that have it elsewhere; capitals do not count. */
export function matching(keys: readonly string[], typed: string): string[] {
    const wanted = typed.toLowerCase();
    const [first, others]: [string[], string[]] = [[], []];
    for (const key of wanted ? keys : []) {
        const at = key.toLowerCase().indexOf(wanted);
        if (at === 0) {
            first.push(key);
        } else if (at > 0 && others.length < MOST_OFFERED) {
            others.push(key);
        }
        if (first.length === MOST_OFFERED) {
            break;
        }
    }
    return [...first, ...others].slice(0, MOST_OFFERED);
}

/** Offers names below the field while somebody types. Nothing of it leaves the page. */
export function completed(
    field: HTMLInputElement,
    list: HTMLUListElement,
    keys: readonly string[],
    chosen: () => void,
): void {
    let at = -1;
    const show = (offered: string[]): void => {
        at = -1;
        list.replaceChildren(
            ...offered.map((key, number) => {
                const id = `match-${number}`;
                const item = make("li", { role: "option", id, "aria-selected": "false" }, key);
                // Before the field loses the focus.
                item.addEventListener("pointerdown", (event) => {
                    event.preventDefault();
                    take(key);
                    chosen();
                });
                return item;
            }),
        );
        list.hidden = !offered.length;
        field.setAttribute("aria-expanded", String(!list.hidden));
        field.removeAttribute("aria-activedescendant");
    };
    const take = (key: string): void => {
        field.value = key;
        show([]);
    };
    const move = (step: number): void => {
        const items = [...list.children];
        at = (at + step + items.length + (at < 0 && step < 0 ? 1 : 0)) % items.length;
        items.forEach((item, number) => item.setAttribute("aria-selected", String(number === at)));
        const active = items[at];
        if (active) {
            field.setAttribute("aria-activedescendant", active.id);
        }
    };
    field.addEventListener("input", () => show(matching(keys, field.value.trim())));
    field.addEventListener("blur", () => show([]));
    field.addEventListener("keydown", (event) => {
        if (event.key === "Escape") {
            show([]);
        } else if (list.hidden) {
            return;
        } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
            event.preventDefault();
            move(event.key === "ArrowDown" ? 1 : -1);
        } else if (event.key === "Enter" && at >= 0) {
            // The form is sent with it.
            take(list.children[at]?.textContent ?? field.value);
        } else if (event.key === "Enter") {
            show([]);
        }
    });
}
