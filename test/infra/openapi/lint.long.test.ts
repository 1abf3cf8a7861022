/** Tests that `npm run lint:openapi` reports missing and wrong parts of an OpenAPI document. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { OPENAPI_FILE, root } from "../../../infra/build/bundle.ts";

const folder = mkdtempSync(join(tmpdir(), "openapi-"));

function lint(file: string): { status: number | null; words: string } {
  const command = ["lint", "--config", "infra/openapi/redocly.yaml", "--format", "checkstyle", file];
  const { status, stdout, stderr } = spawnSync(join(root, "node_modules/.bin/redocly"), command, {
    cwd: root,
    encoding: "utf8",
    env: { ...process.env, REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" },
  });
  return { status, words: stdout + stderr };
}

const document = readFileSync(OPENAPI_FILE, "utf8");

const faults = [
  [
    "a missing description of an operation",
    "operation-description",
    /"summary": "Get a tag",\s*"description": [^\n]+,/,
    '"summary": "Get a tag",',
  ],
  ["a missing description of a parameter", "parameter-description", /"description": "From 1\. [^\n]+/, ""],
  ["a missing example of a parameter", "rule/parameter-example", /"example": 1024,/, ""],
  [
    "an example that clients would send as a filter",
    "rule/optional-parameter-example",
    /"name": "search",/,
    '"name": "search", "example": "bannock",',
  ],
  ["an answer without an example", "rule/body-example", /,\s*"example": "<!doctype html>"/, ""],
  ["an example that its schema refuses", "no-invalid-media-type-examples", /"total": 1,/, '"total": "one",'],
  ["a reference to nothing", "no-unresolved-refs", /schemas\/Note"/, 'schemas/Nota"'],
  [
    "an operation without security",
    "security-defined",
    /"security": \[\s*\{\s*"accessToken": \[\]\s*\}\s*\],\s*"tags"/,
    '"tags"',
  ],
] as const;

/** One document has all faults. Each rule finds one of them, so that one run of the lint is enough. */
const file = join(folder, "faulty.json");
writeFileSync(
  file,
  faults.reduce((text, [, , found, replacement]) => text.replace(found, replacement), document),
);
const broken = lint(file);

test.each(faults)("%s is found", (_, rule, found) => {
  expect(document).toMatch(found);
  expect(broken.words).toMatch(new RegExp(`severity="error"[^\n]* source="${rule}"`));
  expect(broken.status).toBe(1);
});
