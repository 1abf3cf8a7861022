/** Restores the rows of a company, so that a test with many kills creates its company only once. */
import type { FaultyDynamoDb } from "../harness/faulty-dynamodb.ts";

/** The returned function does not restore the counter of ids, which belongs to no company, so no id is given twice. */
export async function savepoint(db: FaultyDynamoDb, companyId: number): Promise<() => Promise<void>> {
  const rowsNow = () => db.keysOf(`C#${companyId}#`);
  const textOf = ({ pk, sk }: { pk: string; sk: string }): string => `${pk} ${sk}`;
  const keys = await rowsNow();
  const items = await db.direct.batchGet(keys);
  const kept = new Set(keys.map(textOf));
  return async () => {
    await db.direct.batchRemove((await rowsNow()).filter((key) => !kept.has(textOf(key))));
    await db.direct.batchPut(items.map((item) => ({ ...item, pk: String(item.pk), sk: String(item.sk) })));
  };
}
