/** What programs see of the package, wherever they run. */

export { Answer, Client } from "./client.js";
export type { ConnectOptions, GetManyOptions, GetOptions, Key, Progress } from "./client.js";
export * from "./errors.js";
export type { Kind, Stats, Table } from "./types.js";
export { Value } from "./values.js";
