/** The rows of the last release, which the folder `releases/` contains. */
import { unmarshall } from "@aws-sdk/util-dynamodb";
import * as z from "zod/mini";
import { recorded } from "../../infra/release/releases.ts";

const Row = z.looseObject({ pk: z.string(), sk: z.string() });
const Shapes = z.object({
  companyId: z.number(),
  owner: z.string(),
  rows: z.array(z.record(z.string(), z.unknown())),
  schemas: z.record(z.string(), z.object({ shape: z.number(), schema: z.unknown() })),
});

/** Returns the recorded schemas and rows. The rows get a new time to live, because DynamoDB deletes rows whose time to live has passed. */
export function lastShapes() {
  const { rows, ...rest } = Shapes.parse(recorded("shapes"));
  const expiresAt = Math.floor(Date.now() / 1_000) + 30 * 24 * 3_600;
  // DynamoDB's JSON form contains binary values as base64, but unmarshall needs bytes.
  const withBytes = (name: string, value: unknown) =>
    name === "B" && typeof value === "string" ? Buffer.from(value, "base64") : value;
  const items = rows.map((row) => Row.parse(unmarshall(JSON.parse(JSON.stringify(row), withBytes))));
  return { ...rest, rows: items.map((row) => (row.expiresAt === undefined ? row : { ...row, expiresAt })) };
}
