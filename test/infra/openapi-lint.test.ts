/** `npm run lint:openapi` can fail: what is taken out of the document or wrong in it is found. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { OPENAPI_FILE, root } from "../../infra/bundle.ts";

/** The linter's words on this text. */
function lint(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), "openapi-"));
  const file = join(folder, "openapi.json");
  writeFileSync(file, text);
  const command = ["lint", "--config", "infra/redocly.yaml", "--format", "summary", file];
  const { status, stdout, stderr } = spawnSync(join(root, "node_modules/.bin/redocly"), command, {
    cwd: root,
    encoding: "utf8",
    env: { ...process.env, REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" },
  });
  rmSync(folder, { recursive: true });
  return `exit ${status}\n${stdout}${stderr}`;
}

const document = readFileSync(OPENAPI_FILE, "utf8");

test.each([
  [
    "a missing description of an operation",
    "operation-description",
    /"summary": "Get a tag",\s*"description": [^\n]+,/,
    '"summary": "Get a tag",',
  ],
  ["a missing description of a parameter", "parameter-description", /"description": "From 1\. [^\n]+/, ""],
  ["a missing example of a parameter", "rule/parameter-example", /"example": "bannock 0142",/, ""],
  ["an answer without an example", "rule/body-example", /,\s*"example": "<!doctype html>"/, ""],
  ["an example that its schema refuses", "no-invalid-media-type-examples", /"total": 1,/, '"total": "one",'],
  ["a reference to nothing", "no-unresolved-refs", /schemas\/Note"/, 'schemas/Nota"'],
  [
    "an operation without security",
    "security-defined",
    /"security": \[\s*\{\s*"accessToken": \[\]\s*\}\s*\],\s*"tags"/,
    '"tags"',
  ],
])("%s is found", (_, rule, found, replacement) => {
  expect(document).toMatch(found);
  const words = lint(document.replace(found, replacement));
  expect(words).toContain("exit 1");
  expect(words).toContain(rule);
});

test("the document as it is passes", () => {
  expect(lint(document)).toContain("exit 0");
});
