/** The page of `privet demo --web`. */

import { PrivetError } from "@privet/client";
import * as api from "./api.js";
import { bytes, make, the, time } from "./dom.js";
import { Game } from "./game.js";
import { Lookups } from "./lookups.js";
import { card, Search } from "./search.js";

/** Asks servers that lie: one that is believed, and two of which one is caught. */
function showLies(search: Search, lookups: Lookups): void {
    const button = the<HTMLButtonElement>("lie");
    const ask = async (): Promise<void> => {
        const { key } = search;
        const believed = await lookups.look("believed", key);
        // Clients hold a few records from the start, about which no answer lies.
        const { value: truth } = await lookups.look("one", key);
        const shown = Object.entries(believed.value ?? {});
        const wrong = shown.filter(([field, text]) => text !== truth?.[field]);
        the("believed").replaceChildren(...card(believed, wrong.map(([field]) => field)));
        if (shown.length && !wrong.length) {
            the("believed").append(make("p", {}, "The liar left this one as it was."));
        }
        try {
            await lookups.look("caught", key);
            the("caught").replaceChildren(make("p", { class: "wrong" }, "It was believed."));
        } catch (error) {
            const words = error instanceof PrivetError ? error.name : "Error";
            the("caught").replaceChildren(
                make("h4", {}, "Refused"),
                make("p", {}, make("code", {}, `${words}:`), ` ${(error as Error).message}.`),
            );
        }
        // After this, a client never asks again.
        await lookups.forget("caught");
    };
    button.addEventListener("click", () => {
        button.disabled = true;
        void ask().finally(() => (button.disabled = false));
    });
    the("believed-scheme").textContent = `${lookups.scheme("believed")}, one server`;
    the("caught-scheme").textContent = `${lookups.scheme("caught")}, two servers, one lies`;
}

/** What each scheme costs for this table, and beside it what was measured on this page. */
async function showCosts(lookups: Lookups): Promise<void> {
    const all = await api.costs();
    const head = ["scheme", "before the first", "each lookup", "server computes"];
    const rows = all.map((cost) => {
        const { scheme, servers, first, lookup } = cost;
        const mine = lookups.made.filter((made) => lookups.scheme(made.cast) === scheme);
        const middle = (of: (made: (typeof mine)[number]) => number): number =>
            mine.map(of).sort((one, other) => one - other)[mine.length >> 1] ?? 0;
        const row = make(
            "tr",
            {},
            make(
                "th",
                { scope: "row" },
                scheme,
                make("small", {}, servers === 1 ? "1 server" : `${servers} servers`),
            ),
            make("td", {}, bytes(first.up + first.down)),
            make("td", {}, bytes(lookup.up + lookup.down)),
            make("td", {}, time(cost.answer_us / 1000)),
        );
        const measured = make(
            "tr",
            { class: "measured" },
            make("th", { scope: "row" }, make("small", {}, `measured, ${mine.length} times`)),
            make("td", {}, ""),
            make("td", {}, bytes(middle(({ sent, received }) => sent + received))),
            make("td", {}, time(middle(({ computed }) => (computed ?? 0) / servers))),
        );
        return mine.length ? [row, measured] : [row];
    });
    const heads = head.map((name) => make("th", { scope: "col" }, name));
    the("costs-table").replaceChildren(
        make(
            "table",
            {},
            make("thead", {}, make("tr", {}, ...heads)),
            make("tbody", {}, ...rows.flat()),
        ),
    );
}

async function begin(): Promise<void> {
    const [stage, keys] = await Promise.all([api.stage(), api.keys()]);
    const lookups = new Lookups(stage.casts);
    const count = `${stage.rows.toLocaleString("en")} ${stage.what}`;
    the("table").textContent = `${count}, their server, and you.`;
    the("key-label").textContent = `One of ${count}`;
    the("costs-of").textContent =
        `For this table. Computed from the speed of this machine, and of a usual browser; ` +
        `lines marked as measured are of your lookups on this page.`;
    const named = (): void => {
        the("lie-key").textContent = search.key;
    };
    const search = new Search(stage, keys, lookups, named);
    named();
    new Game(stage.examples.length > 1 ? stage.examples : keys.slice(0, 2), lookups);
    showLies(search, lookups);
    // Measuring the machine would disturb the lookups: it begins when somebody looks.
    const watch = new IntersectionObserver((entries) => {
        if (entries.some(({ isIntersecting }) => isIntersecting)) {
            void showCosts(lookups);
        }
    });
    watch.observe(the("costs"));
    await search.begin();
    document.body.setAttribute("data-ready", "");
}

begin().catch((error: unknown) => {
    the("result").replaceChildren(make("p", { class: "wrong" }, String(error)));
});
