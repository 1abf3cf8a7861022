/** Reads and damages the copy of the user's data that the field mode keeps in the browser. */
import type { Page } from "playwright-core";
import * as z from "zod/mini";

/** Returns a script for the page. The expression may use the stores of the field mode: `state`, `records` and `outbox`. */
const inDatabase = (expression: string): string => `(async () => {
  const answer = (request) => new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  const { name } = (await indexedDB.databases()).find(({ name }) => name.startsWith("canvassing-field"));
  const db = await answer(indexedDB.open(name));
  const transaction = db.transaction(["state", "records", "outbox"], "readwrite");
  const [state, records, outbox] = ["state", "records", "outbox"].map((store) => transaction.objectStore(store));
  const result = await (${expression});
  db.close();
  return result;
})()`;

const Copy = z.object({
  generation: z.number(),
  waiting: z.number(),
  records: z.array(z.object({ type: z.string(), id: z.number(), generation: z.number(), data: z.unknown() })),
});
type Copy = z.infer<typeof Copy>;

export async function copyOf(page: Page): Promise<Copy> {
  const read = `Promise.all([answer(state.get("state")), answer(outbox.count()), answer(records.getAll())])
    .then(([{ generation }, waiting, records]) => ({ generation, waiting, records }))`;
  return Copy.parse(await page.evaluate(inDatabase(read)));
}

export async function loseRecord(page: Page, type: string, id: number): Promise<void> {
  await page.evaluate(inDatabase(`answer(records.delete(${JSON.stringify([type, id])}))`));
}

/** Returns the records of the copy by their types, in the same form in which `listsOf` returns the records of the service. */
export function listsIn({ records }: Copy): Record<string, unknown[]> {
  const ofType = (type: string) => records.filter((record) => record.type === type).map(({ data }) => data);
  const types = ["prospects", "notes", "appointments", "territories", "statuses", "tags", "users"];
  return Object.fromEntries(types.map((type) => [type, ofType(type)]));
}
