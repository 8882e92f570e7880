/** Pictures of the page, for the documents and to look at: `demo-pictures.mjs FOLDER [ARG…]`. */

import path from "node:path";
import { chromium } from "playwright-core";
import { demo, idle } from "./demo.mjs";

const [folder, ...args] = process.argv.slice(2);
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium-headless-shell";
const program = await demo(...args);
let browser;
try {
    if (!program.url) {
        throw new Error(program.complaint);
    }
    browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
    for (const width of [390, 1280]) {
        for (const colorScheme of ["light", "dark"]) {
            await pictures(width, colorScheme);
        }
    }
} finally {
    await browser?.close();
    await program.end();
}

async function pictures(width, colorScheme) {
    // At this height, nothing is cut that matters.
    const viewport = { width, height: width < 1000 ? 844 : 712 };
    const page = await browser.newPage({ viewport, colorScheme });
    const picture = (name, options = {}) =>
        page.screenshot({
            path: path.join(folder, `demo-${name}-${width}-${colorScheme}.png`),
            ...options,
        });
    await page.goto(program.url);
    await idle(page);
    const { examples } = await (await program.ask("/api/stage")).json();
    for (const key of [examples[1], examples[0], examples[0]]) {
        await page.fill("#key", key);
        await page.click("#look");
        await idle(page);
    }
    await picture("top");
    await page.check("input[value=plain]", { force: true });
    await idle(page);
    await picture("plain");
    await page.check("input[value=two]", { force: true });
    await idle(page);
    for (const isLeaky of [false, true]) {
        await page.setChecked("#leak", isLeaky);
        await page.click("#play");
        await page.waitForFunction(
            () => document.querySelector("#play").textContent === "Play 100 rounds",
            undefined,
            { timeout: 240_000 },
        );
    }
    await page.click("#lie");
    await page.waitForSelector("#lie:not([disabled])");
    await page.locator("#costs-title").scrollIntoViewIfNeeded();
    await page.waitForSelector("#costs-table td", { timeout: 120_000 });
    await picture("all", { fullPage: true });
    await page.close();
}
