/** What a measurement stands on: tables, their servers, a web server, and browsers. */

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { brotliCompressSync } from "node:zlib";
import { chromium } from "playwright-core";

/** As scripts/measure-web.sh has made them. */
const { FOLDER, FAR, PRIVET } = process.env;
/** As line.py gives it. */
const FAR_ADDRESS = "10.0.0.2";
const DIST = path.join(import.meta.dirname, "../dist");
const PORTS = { plain: 7701, encrypted: 7702, second: 7703 };

const processes = [];
process.on("exit", () => processes.forEach((one) => one.kill()));

export function fail(what) {
    console.error(`measure-web: ${what}`);
    process.exit(1);
}

/** A table whose values say whose they are, and have one length. */
export class Table {
    #name;
    #length;
    #options;

    constructor(name, records, length, ...options) {
        this.#name = name;
        this.records = records;
        this.#length = length;
        this.#options = options;
    }

    key(record) {
        return this.#options.includes("--key") ? `key ${record}` : record;
    }

    value(record) {
        return String(record).padStart(this.#length, ".");
    }

    /** Its file, which is built when it is needed first. */
    async file() {
        const file = path.join(FOLDER, `${this.#name}.privet`);
        if (existsSync(file)) {
            return file;
        }
        console.error(`building a table: ${this.#name}`);
        const args = ["build", "-", "--format", "jsonl", "--raw-value", "value", "-o", file, "-q"];
        const build = spawn(PRIVET, [...args, ...this.#options], {
            stdio: ["pipe", "inherit", "inherit"],
        });
        processes.push(build);
        // If it ends early, its exit code says so.
        build.stdin.on("error", () => undefined);
        const ended = once(build, "exit");
        for (let first = 0; first < this.records; first += 1000) {
            let rows = "";
            for (let record = first; record < Math.min(first + 1000, this.records); record += 1) {
                const row = { key: this.key(record), value: this.value(record) };
                rows += `${JSON.stringify(row)}\n`;
            }
            if (!build.stdin.write(rows)) {
                await Promise.race([once(build.stdin, "drain"), ended]);
            }
        }
        build.stdin.end();
        if ((await ended)[0] !== 0) {
            fail(`no table ${this.#name}`);
        }
        return file;
    }
}

/** Starts a program at the far end of the line, which prints `sign` when it is ready. */
async function started(program, args, sign) {
    const one = spawn("ip", ["netns", "exec", FAR, program, ...args], {
        cwd: FOLDER,
        env: { ...process.env, HOME: FOLDER },
        stdio: ["ignore", "pipe", "pipe"],
    });
    processes.push(one);
    let said = "";
    one.on("exit", () => fail(`${program} ${args[0]} has ended: ${said}`));
    await new Promise((ready) => {
        const hear = (piece) => {
            said = (said + piece).slice(-2000);
            if (said.includes(sign)) {
                ready();
            }
        };
        one.stdout.on("data", hear);
        one.stderr.on("data", hear);
    });
    return one;
}

/** Starts servers of a table: some of "plain", "encrypted" and "second". Returns what ends them. */
export async function serving(table, scheme, names) {
    const file = await table.file();
    console.error(`starting: ${scheme}`);
    const servers = [];
    for (const name of names) {
        const tls = ["--tls-cert", "cert.pem", "--tls-key", "key.pem"];
        const args = [
            ...["serve", file, "--scheme", scheme, "--cache", FOLDER, "--scrub-rate", "0"],
            ...["--listen", `${FAR_ADDRESS}:${PORTS[name]}`],
            ...(name === "plain" ? ["--insecure"] : tls),
            ...["--web", "--web-origin", "https://page.localhost"],
            ...["--web-origin", "http://page.localhost"],
        ];
        servers.push(await started(PRIVET, args, "listening at"));
    }
    return async () => {
        for (const server of servers) {
            server.removeAllListeners("exit");
            server.kill();
            await once(server, "exit");
        }
    };
}

/** Pages, and the servers that they ask. */
export const PLACES = [
    {
        name: "one origin",
        page: "http://page.localhost",
        urls: ["http://page.localhost/server"],
        isOne: true,
    },
    {
        name: "two origins",
        page: "http://page.localhost",
        urls: [`http://server.localhost:${PORTS.plain}`],
    },
    {
        name: "one origin, TLS",
        page: "https://page.localhost",
        urls: ["https://page.localhost/server"],
        isOne: true,
    },
    {
        name: "two origins, TLS",
        page: "https://page.localhost",
        urls: [`https://server.localhost:${PORTS.encrypted}`],
    },
];
export const APART = PLACES[3];
export const APART_FROM_TWO = {
    name: "three origins, TLS",
    page: APART.page,
    urls: [...APART.urls, `https://second.localhost:${PORTS.second}`],
};

const SITE = `
    bind ${FAR_ADDRESS}
    handle_path /server/* {
        reverse_proxy h2c://${FAR_ADDRESS}:${PORTS.plain}
    }
    handle {
        root * site
        header Cache-Control max-age=3600
        file_server {
            precompressed br
        }
    }`;
const CADDYFILE = `{
    admin off
    auto_https off
}
http://page.localhost {${SITE}
}
https://page.localhost {
    tls cert.pem key.pem${SITE}
}
`;

/** How many bytes of a file of the package the site sends. */
export const received = (file) =>
    statSync(path.join(FOLDER, "site/privet", `${path.relative(DIST, file)}.br`)).size;

/** The programs in WebAssembly that the package has, the smallest first. */
export const programs = () =>
    readdirSync(DIST, { recursive: true })
        .filter((name) => name.endsWith(".wasm"))
        .map((name) => path.join(DIST, name))
        .sort((one, other) => statSync(one).size - statSync(other).size);

/** Of the certificate's key: by it, a browser trusts the certificate. */
let digest;

/** Starts the web server, which has the page and leads to a server behind one of its paths. */
export async function front() {
    const site = path.join(FOLDER, "site");
    cpSync(import.meta.dirname, site, { recursive: true });
    cpSync(DIST, path.join(site, "privet"), { recursive: true });
    const page = path.join(site, "page.html");
    const [smallest] = programs();
    const html = readFileSync(page, "utf8").replace("PROGRAM", path.basename(smallest));
    writeFileSync(page, html);
    for (const name of readdirSync(site, { recursive: true })) {
        if (/\.(html|js|wasm)$/.test(name)) {
            const file = path.join(site, name);
            // Compressed as far as that goes.
            writeFileSync(`${file}.br`, brotliCompressSync(readFileSync(file)));
        }
    }
    // For how fast the line is.
    writeFileSync(path.join(site, "filler.html"), `<!doctype html><!--${" ".repeat(2e6)}-->`);
    const names = ["page", "server", "second"].map((name) => `DNS:${name}.localhost`).join();
    openssl(
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 " +
            `-keyout key.pem -out cert.pem -subj /CN=localhost -addext subjectAltName=${names}`,
    );
    const key = openssl("pkey -in key.pem -pubout -outform der");
    digest = openssl("dgst -sha256 -binary", key).toString("base64");
    writeFileSync(path.join(FOLDER, "Caddyfile"), CADDYFILE);
    const args = ["run", "--adapter", "caddyfile", "--config", "Caddyfile"];
    await started("caddy", args, "serving initial configuration");
}

function openssl(args, input) {
    const stdio = ["pipe", "pipe", "ignore"];
    return execFileSync("openssl", args.split(" "), { cwd: FOLDER, input, stdio });
}

/** A browser with an empty profile, at the near end of the line. */
export function launched() {
    return chromium.launch({
        executablePath: path.join(FOLDER, "browser"),
        args: [
            `--host-resolver-rules=MAP *.localhost ${FAR_ADDRESS}`,
            `--ignore-certificate-errors-spki-list=${digest}`,
        ],
    });
}

/** A page in a browser of its own, which looks `key` up. */
export async function opened({ page: origin, urls }, key, options = {}) {
    const browser = await launched();
    const page = await browser.newPage();
    const asked = encodeURIComponent(JSON.stringify({ urls, key, options }));
    await page.goto(`${origin}/page.html#${asked}`);
    return { browser, page };
}
