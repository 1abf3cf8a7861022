/** Writes the prospects of a synthetic company into a CSV file, which the benches import. */
import { createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ApiContext } from "#shared/context.ts";
import { csvText, decimal } from "#shared/prospects/csv/write.ts";
import { type Dictionary, loadDictionary } from "#shared/reference/dictionary.ts";
import { type BenchCompany, type Made, makeProspect } from "./prospects.ts";

/** Rows that are in memory at a time. */
const PORTION = 4_000;

const columns = "name,phone,email,lat,lng,address1,address2,city,state,zip,status,assignedToEmail,tags,notes".split(
  ",",
);

export async function writeCsvFile(context: ApiContext, company: BenchCompany, file: string): Promise<number> {
  const dictionary = await loadDictionary(context.table, company.id);
  let notes = 0;
  const text = function* (): Generator<string> {
    yield csvText([columns]);
    for (let at = 0; at < company.count; at += PORTION) {
      const made = Array.from({ length: Math.min(PORTION, company.count - at) }, (_, i) =>
        makeProspect(company, at + i),
      );
      notes += made.filter(({ note }) => note !== undefined).length;
      yield csvText(made.map((one) => cellsOf(one, dictionary)));
    }
  };
  await pipeline(Readable.from(text()), createWriteStream(file));
  return notes;
}

const cellsOf = ({ prospect, note }: Made, { statuses, tags, users }: Dictionary): string[] => [
  prospect.name ?? "",
  prospect.phoneNumber ?? "",
  prospect.emailAddress ?? "",
  ...[prospect.lat, prospect.lng].map((degrees) => (degrees === null ? "" : decimal(degrees))),
  prospect.address?.address1 ?? "",
  prospect.address?.address2 ?? "",
  prospect.address?.city ?? "",
  prospect.address?.state ?? "",
  prospect.address?.zip ?? "",
  statuses.get(prospect.statusId ?? 0)?.value ?? "",
  users.get(prospect.assignedToUserId ?? 0)?.email ?? "",
  prospect.tagIds.map((id) => tags.get(id)?.value ?? "").join(";"),
  note?.body ?? "",
];
