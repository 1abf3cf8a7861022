/** Tests that the rules of this project in `npm run lint:openapi` find missing and wrong examples. Redocly tests its own rules. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { OPENAPI_FILE, root } from "../../../infra/build/bundle.ts";

const document = readFileSync(OPENAPI_FILE, "utf8");

const faults = [
  ["a missing example of a parameter", "rule/parameter-example", /"example": 1024,/, ""],
  [
    "an example that clients would send as a filter",
    "rule/optional-parameter-example",
    /"name": "search",/,
    '"name": "search", "example": "bannock",',
  ],
  ["an answer without an example", "rule/body-example", /,\s*"example": "<!doctype html>"/, ""],
] as const;

/** One document has all faults. Each rule finds one of them, so that one run of the lint is enough. */
const file = join(mkdtempSync(join(tmpdir(), "openapi-")), "faulty.json");
writeFileSync(
  file,
  faults.reduce((text, [, , found, replacement]) => text.replace(found, replacement), document),
);
const command = ["lint", "--config", "infra/openapi/redocly.yaml", "--format", "checkstyle", file];
const { status, stdout, stderr } = spawnSync(join(root, "node_modules/.bin/redocly"), command, {
  cwd: root,
  encoding: "utf8",
  env: { ...process.env, REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" },
});

test.each(faults)("%s is found", (_, rule, found) => {
  expect(document).toMatch(found);
  expect(stdout + stderr).toMatch(new RegExp(`severity="error"[^\n]* source="${rule}"`));
  expect(status).toBe(1);
});
