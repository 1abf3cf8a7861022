/** Measures the costs of loading and of flushing the index of a company with 100 000 prospects. */

import { companyIndex } from "#shared/company-index/read/company-index.ts";
import { contextOn } from "#shared/context.ts";
import { metered } from "#shared/db/meter.ts";
import { ListQuery, listProspects } from "#shared/prospects/list/list.ts";
import { mapPins } from "#shared/prospects/list/pins.ts";
import { prospectItem } from "#shared/prospects/stored.ts";
import { bytesOf } from "../../harness/item-bytes.ts";
import { taken } from "../clock.ts";
import { makeProspect } from "../prospects.ts";
import { type Stage, setStage } from "../stage.ts";
import { type BenchTable, startBenchTable } from "../table.ts";
import { flushedUnits } from "../write-budgets.ts";
import type { Load, Measured } from "./measured.ts";

export const LOADED_PROSPECTS = 100_000;
/** Number of creates whose flushes and merges are measured. */
export const CREATES = 16_384;
const SAMPLES = 1_000;

type IndexCosts = Pick<Measured, "loads" | "storedBytes" | "rowTextBytes"> & {
  readonly background: Pick<Measured["background"], "readUnits" | "writeUnits">;
};

export async function indexCosts(): Promise<IndexCosts> {
  const table = await startBenchTable();
  try {
    const stage = await setStage(table, LOADED_PROSPECTS);
    const loads = {
      list: await loadOf(table, stage, {}),
      pins: await loadOf(table, stage, "pins"),
      search: await loadOf(table, stage, { search: "garcia" }),
    };
    const { readUnits, writeUnits } = await flushedUnits(stage, CREATES);
    return {
      loads,
      background: { readUnits: readUnits / CREATES, writeUnits: writeUnits / CREATES },
      ...rowBytes(stage, loads.search),
    };
  } finally {
    await table.stop();
  }
}

async function loadOf(table: BenchTable, stage: Stage, what: Record<string, string> | "pins"): Promise<Load> {
  const query = ListQuery.parse({ ...(what === "pins" ? {} : what), pageSize: "1" });
  await stage.fill(query);
  let pieces = 0;
  const read = async (): Promise<{ bytes: number; readUnits: number }> => {
    const open = table.open();
    pieces = 0;
    const batchGet: typeof open.batchGet = (keys, how) => {
      pieces += keys.filter(({ pk }) => pk.includes("#XS#")).length;
      return open.batchGet(keys, how);
    };
    const context = contextOn({ ...open, batchGet }, stage.clock);
    const { usage } = await metered(async () => {
      if (what === "pins") await mapPins(context, stage.caller, {});
      else await listProspects(context, stage.caller, query);
    });
    return { bytes: companyIndex(context.table).cachedBytes, readUnits: usage.readUnits };
  };
  await read();
  let cpuMs = Number.POSITIVE_INFINITY;
  let result = { bytes: 0, readUnits: 0 };
  for (let i = 0; i < 3; i++) {
    const run = await taken(async () => {
      result = await read();
    });
    cpuMs = Math.min(cpuMs, run.cpuMs);
  }
  return { ...result, cpuMs, pieces };
}

/**
 * Returns the mean bytes of a prospect (its row, its note, and its share of the stored index) and the mean length of the JSON text in its
 * row.
 */
function rowBytes({ company }: Stage, { readUnits }: Load): Pick<IndexCosts, "storedBytes" | "rowTextBytes"> {
  let bytes = 0;
  let textBytes = 0;
  for (let i = 0; i < SAMPLES; i++) {
    const { prospect, note } = makeProspect(company, i * Math.floor(company.count / SAMPLES));
    const item = prospectItem(prospect);
    bytes += bytesOf(item) + (note === undefined ? 0 : bytesOf(note));
    textBytes += String(item.fields).length;
  }
  // One read unit reads 8 KB if the read is eventually consistent. The read units of loading the whole index therefore give its size.
  return {
    storedBytes: bytes / SAMPLES + (readUnits * 8_192) / company.count,
    rowTextBytes: textBytes / SAMPLES,
  };
}
