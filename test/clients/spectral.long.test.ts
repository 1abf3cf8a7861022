/** Tests that Spectral, a linter that client developers use, finds no fault in the OpenAPI documents. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { OPENAPI_30_FILE, OPENAPI_FILE, root } from "../../infra/build/bundle.ts";
import { installedTools, run } from "../harness/client-tools.ts";

test("Spectral finds nothing in either document by its own rules", async () => {
  const spectral = join(await installedTools(), "node_modules/.bin/spectral");
  const ruleset = join(root, "test/clients/spectral.yaml");
  const options = ["lint", "--ruleset", ruleset, "--fail-severity", "hint", "--format", "text"];
  const { stdout } = await run(spectral, [...options, OPENAPI_FILE, OPENAPI_30_FILE]);
  expect(stdout).toContain("No results with a severity of 'hint' or higher found!");
}, 600_000);
