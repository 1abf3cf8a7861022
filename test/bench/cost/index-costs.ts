/** Measures the costs of loading the index of a company with 100 000 prospects. */
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
import type { Load, Measured } from "./measured.ts";

const LOADED_PROSPECTS = 100_000;
const SAMPLES = 1_000;

export async function indexCosts(): Promise<Pick<Measured, "loads" | "storedBytes">> {
  const table = await startBenchTable();
  try {
    const stage = await setStage(table, LOADED_PROSPECTS);
    const loads = {
      list: await loadOf(table, stage, {}),
      pins: await loadOf(table, stage, "pins"),
      search: await loadOf(table, stage, { search: "garcia" }),
    };
    return { loads, storedBytes: storedBytes(stage, loads.search) };
  } finally {
    await table.stop();
  }
}

async function loadOf(table: BenchTable, stage: Stage, what: Record<string, string> | "pins"): Promise<Load> {
  const query = ListQuery.parse({ ...(what === "pins" ? {} : what), pageSize: "1" });
  await stage.fill(query);
  const read = async (): Promise<{ bytes: number; readUnits: number }> => {
    const context = contextOn(table.open(), stage.clock);
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
  return { ...result, cpuMs };
}

/** The mean bytes of a prospect: its row, its note, and its share of the stored index. */
function storedBytes({ company }: Stage, { readUnits }: Load): number {
  let bytes = 0;
  for (let i = 0; i < SAMPLES; i++) {
    const { prospect, note } = makeProspect(company, i * Math.floor(company.count / SAMPLES));
    bytes += bytesOf(prospectItem(prospect)) + (note === undefined ? 0 : bytesOf(note));
  }
  // An eventually consistent read unit reads 8 KB, so the read units of loading the whole index give its size.
  return bytes / SAMPLES + (readUnits * 8_192) / company.count;
}
