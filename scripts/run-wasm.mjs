// Runs a WebAssembly program, compiled for wasm32-wasip1, under Node. Of the disk it sees the
// repository and nothing else. Called by check-wasm.sh.
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { WASI } from "node:wasi";

const [program, ...args] = process.argv.slice(2);
const repository = fileURLToPath(new URL("..", import.meta.url));
const wasi = new WASI({
  version: "preview1",
  args: [program, ...args],
  env: { PWD: process.cwd() },
  preopens: { [repository]: repository },
});
const module = await WebAssembly.compile(await readFile(program));
process.exitCode = wasi.start(await WebAssembly.instantiate(module, wasi.getImportObject()));
