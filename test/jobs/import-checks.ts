/** Makes CSV files for import jobs, and checks what a job has left in the table. */
import { expect } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import type { ApiContext } from "#shared/context.ts";
import { exportProspects } from "#shared/prospects/csv/export.ts";
import type { FileForm } from "#shared/prospects/csv/format.ts";
import { csvText } from "#shared/prospects/csv/write.ts";
import { listAddresses } from "#shared/prospects/list/addresses.ts";
import { ListQuery, listProspects } from "#shared/prospects/list/list.ts";
import type { FaultyDynamoDb } from "../harness/faulty-dynamodb.ts";
import { checkIndex, readAllProspects } from "../harness/index-oracle.ts";
import type { Company } from "../harness/warm-function.ts";
import type { FaultyJobs } from "./faulty-jobs.ts";

async function addressesOf(context: ApiContext, companyId: number): Promise<readonly unknown[]> {
  const owner = { companyId, userId: 1, role: "owner", permissions: [] } as const;
  return (await listAddresses(context, owner, { after: 0, limit: 500 })).addresses;
}

/** Returns the streamed export of all prospects that the caller may see. */
export async function exportedText(context: ApiContext, caller: Caller, form?: FileForm): Promise<string> {
  return (await Array.fromAsync(await exportProspects(context, caller, {}, form))).join("");
}

const header = ["name", "lat", "lng", "address1", "city", "state", "zip", "status", "tags", "notes"];
/**
 * Returns a CSV file with `count` valid rows. Each row has an address, a status and two tags, and every third row has a note. In
 * addition, `faults` invalid rows follow. The names of the prospects begin with `name`, and the notes end with `more`.
 */
export const fileOf = (count: number, faults = 0, name = "n", more = ""): Buffer =>
  Buffer.from(
    csvText([
      header,
      ...Array.from({ length: count }, (_, i) => [
        ...[`${name}${i}`, "39.7", `-104.${i}`, `${i} Main St`, "Denver", "CO", "80202", "New", "hail;new roof"],
        i % 3 === 0 ? `note ${i}${more}` : "",
      ]),
      ...Array.from({ length: faults }, (_, i) => [`bad${i}`, "", "", "", "", "", "", "No such status", "", ""]),
    ]),
  );

export function importChecks(db: FaultyDynamoDb, harness: FaultyJobs) {
  const list = (context: ApiContext, { caller }: Company, search?: string) =>
    listProspects(context, caller, ListQuery.parse({ pageSize: "500", search }));

  /** Expects this number of prospects with different names. Returns the names on the first page of the list. */
  async function expectDifferent(company: Company, count: number): Promise<readonly unknown[]> {
    const context = harness.sound();
    const { companyId } = company.caller;
    const { items, total } = await list(context, company);
    const names = items.map(({ name }) => name);
    const shown = Math.min(count, 500);
    expect([total, new Set(names).size]).toEqual([count, shown]);
    expect((await readAllProspects(context.table, companyId)).prospects).toHaveLength(count);
    expect(await checkIndex(context.table, companyId)).toEqual([]);
    expect(await addressesOf(context, companyId)).toHaveLength(shown);
    return names;
  }

  /** Expects one prospect for each valid row of `fileOf`, in the order of the file. */
  async function expectOnce(company: Company, count: number): Promise<void> {
    const names = await expectDifferent(company, count);
    expect(names).toEqual(Array.from({ length: names.length }, (_, i) => `n${i}`));
  }

  async function expectNothing(company: Company): Promise<void> {
    const context = harness.sound();
    const { companyId } = company.caller;
    expect((await list(context, company)).total).toBe(0);
    expect((await readAllProspects(context.table, companyId)).prospects).toEqual([]);
    expect(await addressesOf(context, companyId)).toEqual([]);
  }

  /**
   * Returns the keys of the company's rows, so that a test finds rows that a killed import has left behind. The result does not contain the
   * rows that an import may leave: reference data, idempotency keys, records of imports, the search index, the log of the users' activity,
   * and ranges of reserved ids.
   */
  async function left({ caller: { companyId } }: Company): Promise<string[]> {
    const found = await db.keysOf(`C#${companyId}#`);
    return found
      .map(({ pk, sk }) => `${pk} ${sk}`)
      .filter((key) => !/#(?:REF|IK#\d+|M#\d+|ML|FL|XM|X|[PA]R) /.test(key));
  }

  return { list, expectDifferent, expectOnce, expectNothing, left };
}
