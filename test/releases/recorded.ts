/** The rows that each release has written. The folder `releases/` contains them. */
import { readFileSync } from "node:fs";
import { unmarshall } from "@aws-sdk/util-dynamodb";
import * as z from "zod/mini";
import type { Item } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import { releaseFile, releases } from "../../infra/release/releases.ts";

const Recorded = z.object({
  companyId: z.number(),
  owner: z.string(),
  rows: z.array(z.record(z.string(), z.unknown())),
  answers: z.record(z.string(), z.unknown()),
  schemas: z.record(z.string(), z.object({ shape: z.number(), schema: z.unknown() })),
});

export interface RecordedRelease extends Omit<z.infer<typeof Recorded>, "rows"> {
  readonly version: string;
  readonly rows: readonly (Key & Item)[];
}

const KeyOf = z.looseObject({ pk: z.string(), sk: z.string() });

export const recordedReleases = (): RecordedRelease[] =>
  releases().map(({ version }) => {
    const { rows, ...rest } = Recorded.parse(JSON.parse(readFileSync(releaseFile(version, "shapes"), "utf8")));
    return { version, ...rest, rows: rows.map((row) => KeyOf.parse(itemOf(row))) };
  });

/** Converts a recorded row to an item. DynamoDB's JSON form contains binary values as base64, but unmarshall needs bytes. */
function itemOf(row: Readonly<Record<string, unknown>>): Item {
  return unmarshall(
    JSON.parse(JSON.stringify(row), (name, value: unknown) =>
      name === "B" && typeof value === "string" ? Buffer.from(value, "base64") : value,
    ),
  );
}

/** Returns the rows with a new time to live. Otherwise DynamoDB could delete rows whose recorded time to live has passed. */
export function alive(rows: readonly (Key & Item)[]): (Key & Item)[] {
  const inAMonth = Math.floor(Date.now() / 1_000) + 30 * 24 * 3_600;
  return rows.map((row) => (row.expiresAt === undefined ? row : { ...row, expiresAt: inAMonth }));
}
