/** Defines the lists and the map pins of prospects that the benches measure. */
import type { Caller } from "#shared/auth/caller.ts";
import type { ApiContext } from "#shared/context.ts";
import { ListQuery } from "#shared/prospects/list/list.ts";
import { mapPins } from "#shared/prospects/list/pins.ts";
import { cityBbox } from "./places.ts";
import { type BenchCompany, RARE_NAME } from "./prospects.ts";

const parameters = (company: BenchCompany) => {
  const [, rep] = company.repIds;
  return {
    /** Without a filter, the prospects of a page are stored next to each other, so one Query reads many of them. */
    everything: {},
    /** The prospects of one rep among forty are scattered over the table, so the service reads each row separately. */
    "one rep": { assignedToUserId: String(rep) },
    "one status": { status: "Interested" },
    "map window": { bbox: cityBbox },
    "five filters": {
      bbox: cityBbox,
      status: "Interested,Go Back",
      tagId: "Referral,Solar",
      assignedToUserId: `${company.repIds.slice(0, 20).join()},unassigned`,
      dateFrom: "2024-06-01",
    },
    "common word": { search: "denver" },
    "rare word": { search: RARE_NAME },
    "two words": { search: "garcia landlord" },
    "phone digits": { search: "555-1" },
  };
};

export type ListName = keyof ReturnType<typeof parameters>;

export const listNames = [
  "everything",
  "one rep",
  "one status",
  "map window",
  "five filters",
  "common word",
  "rare word",
  "two words",
  "phone digits",
] as const satisfies readonly ListName[];

export const listQuery = (company: BenchCompany, name: ListName, page = 1): ListQuery =>
  ListQuery.parse({ ...parameters(company)[name], page: String(page) });

/** Returns all map pins of a company as pieces of JSON, and their number. */
export async function pinTexts(context: ApiContext, caller: Caller): Promise<{ texts: Buffer[]; pins: number }> {
  const texts = Array.from(await mapPins(context, caller, {}), (piece) => Buffer.from(piece));
  return { texts, pins: texts.reduce((sum, text) => sum + text.toString().split('"id"').length - 1, 0) };
}
