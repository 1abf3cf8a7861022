/** Mirrors the records of a company in an SQLite file, without dependencies, for Node.js 22.18 or newer: `API_KEY=… node mirror.ts`. */
import { DatabaseSync } from "node:sqlite";
import { setTimeout as wait } from "node:timers/promises";

const { API_KEY, API_URL = "http://127.0.0.1:3000", FILE = "mirror.db" } = process.env;
type Item = { type: string; id: number; version: number; data?: object };
type Page = { phase: string; items: Item[]; cursor: string; hasMore: boolean; checksums?: Record<string, string> };

const db = new DatabaseSync(FILE);
db.exec(`CREATE TABLE IF NOT EXISTS records (type, id, version, generation, data, PRIMARY KEY (type, id));
  CREATE TABLE IF NOT EXISTS state (one PRIMARY KEY, cursor, generation); INSERT OR IGNORE INTO state VALUES (1, NULL, 0)`);
// A removed record keeps its row, and its data is null. A new generation begins when everything is read again.
const put = db.prepare(`INSERT INTO records VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE
  SET version = excluded.version, generation = excluded.generation, data = excluded.data
  WHERE excluded.generation > generation OR excluded.version >= version`);
const save = db.prepare("UPDATE state SET cursor = ?, generation = ? WHERE cursor IS ?");

/** Repeats the request for two minutes while the service is busy or the connection breaks. */
async function read(path: string): Promise<{ status: number; text: string }> {
  for (let seconds = 1; ; seconds *= 2) {
    const request = { headers: { Authorization: `Bearer ${API_KEY}` }, signal: AbortSignal.timeout(60_000) };
    const response = await fetch(API_URL + path, request).catch(() => undefined);
    const text = await response?.text().catch(() => undefined);
    const status = response?.status ?? 500;
    if (text !== undefined && status !== 429 && status < 500) return { status, text };
    if (seconds > 60) throw new Error(`no answer to ${path}: ${response?.status}`);
    await wait(Math.max(seconds, Number(response?.headers.get("Retry-After") ?? "")) * 1_000);
  }
}

const fnv1a = (hash: bigint, byte: number): bigint => BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);

function checksumOf(type: string): string {
  let sum = 0n;
  for (const { id, version } of db.prepare("SELECT * FROM records WHERE type = ? AND data IS NOT NULL").iterate(type)) {
    sum ^= Buffer.from(`${type}:${id}:${version}`).reduce(fnv1a, 0xcbf29ce484222325n);
  }
  return sum.toString(16).padStart(16, "0");
}

for (let differences = 0; ; ) {
  const { cursor = null, generation = 0 } = db.prepare("SELECT cursor, generation FROM state").get() ?? {};
  const query = new URLSearchParams({ limit: "1000", checksum: "true", ...(cursor && { cursor: String(cursor) }) });
  const { status, text } = await read(`/api/changes?${query}`);
  if (status === 410) {
    save.run(null, Number(generation) + 1, cursor);
    continue;
  }
  if (status !== 200) throw new Error(`${status} ${text}`);
  const page: Page = JSON.parse(text);
  db.exec("BEGIN IMMEDIATE");
  for (const { type, id, version, data } of page.items)
    put.run(type, id, version, generation, JSON.stringify(data) ?? null);
  // The snapshot is complete, so remove the records that it did not contain.
  if (page.phase === "changes" || !page.hasMore) db.prepare("DELETE FROM records WHERE generation < ?").run(generation);
  if (save.run(page.cursor, generation, cursor).changes === 0) throw new Error("another run has changed the file");
  db.exec("COMMIT");
  if (page.hasMore) continue;
  if (Object.entries(page.checksums ?? {}).every(([type, sum]) => checksumOf(type) === sum)) break;
  // A write at the same moment can cause a difference. After a second one, read everything again.
  if (++differences === 2) save.run(null, Number(generation) + 1, page.cursor);
  if (differences > 3) throw new Error("the records differ from those of the service");
}
