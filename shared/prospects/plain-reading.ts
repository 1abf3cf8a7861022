/** Reads every prospect of a company from its rows: exact, strongly consistent, and as dear as the company is large. */

import * as z from "zod/mini";
import { StoredAppointment } from "#shared/appointments/schema.ts";
import { keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { StoredProspect } from "#shared/prospects/stored.ts";

/** Partitions read at once. */
const PARALLEL = 16;

const Range = z.object({ from: z.int(), to: z.int() });

export interface CompanyProspects {
  /** Those that are not deleted, in no order. */
  readonly prospects: StoredProspect[];
  readonly appointmentsOf: ReadonlyMap<number, StoredAppointment[]>;
}

/** A prospect's range is recorded before its row is written, so no row is missed. */
export async function readAllProspects(table: Table, companyId: number): Promise<CompanyProspects> {
  const blocks: number[] = [];
  for await (const item of table.query(keys.prospectRanges(companyId))) {
    const { from, to } = Range.parse(item);
    for (let block = from; block <= to; block++) blocks.push(block);
  }
  const prospects: StoredProspect[] = [];
  const appointmentsOf = new Map<number, StoredAppointment[]>();

  async function readBlocks(): Promise<void> {
    for (let block = blocks.pop(); block !== undefined; block = blocks.pop()) {
      for await (const item of table.query(keys.prospectBlock(companyId, block))) {
        if (item.deletedAt !== undefined) continue;
        if (item.type === "prospect") prospects.push(StoredProspect.parse(item));
        else if (item.type === "appointment") keepAppointment(StoredAppointment.parse(item));
      }
    }
  }
  function keepAppointment(appointment: StoredAppointment): void {
    const list = appointmentsOf.get(appointment.prospectId) ?? [];
    list.push(appointment);
    appointmentsOf.set(appointment.prospectId, list);
  }
  await Promise.all(Array.from({ length: PARALLEL }, readBlocks));
  return { prospects, appointmentsOf };
}
