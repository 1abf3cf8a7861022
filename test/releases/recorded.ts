/** The rows of the last release, which the folder `releases/` contains. */
import { unmarshall } from "@aws-sdk/util-dynamodb";
import * as z from "zod/mini";
import type { Item } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import { recorded } from "../../infra/release/releases.ts";
import { RecordedSchemas } from "../../infra/release/stored-schemas.ts";

const Shapes = z.object({
  companyId: z.number(),
  owner: z.string(),
  rows: z.array(z.record(z.string(), z.unknown())),
  schemas: RecordedSchemas,
});

const KeyOf = z.looseObject({ pk: z.string(), sk: z.string() });

export function lastShapes() {
  const { rows, ...rest } = Shapes.parse(recorded("shapes"));
  return { ...rest, rows: rows.map((row) => KeyOf.parse(itemOf(row))) };
}

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
