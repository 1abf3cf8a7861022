/** Generates api.ts, the types of the API, from docs/openapi.json. With `--check`, fails if api.ts is out of date. */
import { readFileSync, writeFileSync } from "node:fs";
import openapiTS, { astToString, COMMENT_HEADER, STRING, tsIntersection, tsLiteral, tsUnion } from "openapi-typescript";
import ts from "typescript";

const file = new URL("api.ts", import.meta.url);

/** `string & {}` accepts every text. Unlike `string`, it does not absorb the known values of a union, so editors still propose them. */
const anyText = tsIntersection([STRING, ts.factory.createTypeLiteralNode([])]);

const types = await openapiTS(new URL("../openapi.json", import.meta.url), {
  rootTypes: true,
  rootTypesNoSchemaPrefix: true,
  defaultNonNullable: false,
  transform: (schema) => {
    const values: unknown = "x-extensible-enum" in schema && schema["x-extensible-enum"];
    return Array.isArray(values) && schema.type === "string"
      ? tsUnion([...values.map(tsLiteral), ts.factory.createParenthesizedType(anyText)])
      : undefined;
  },
});
const text = `${COMMENT_HEADER}${astToString(types)}`;

if (!process.argv.includes("--check")) writeFileSync(file, text);
else if (readFileSync(file, "utf8") !== text) {
  console.error("docs/client/api.ts is stale; run `npm run client`");
  process.exitCode = 1;
}
