/**
 * Tests that the OpenAPI documents work with public tools: Spectral finds no fault in them, and three generators make clients that work.
 */
import { join } from "node:path";
import { build } from "esbuild";
import { beforeAll, expect, test } from "vitest";
import { OPENAPI_30_FILE, OPENAPI_FILE, root } from "../../infra/build/bundle.ts";
import { baseUrl, tokenOf } from "../harness/client.ts";
import { callsIn, installedTools, run } from "../harness/client-tools.ts";
import { newTeam } from "../harness/team.ts";

/** The command of each generator. It writes the client into the folder `generated`. */
const generators = {
  "hey-api": ["openapi-ts", "--silent", "--input", OPENAPI_30_FILE, "--output", "generated/hey-api"],
  oazapfts: ["oazapfts", OPENAPI_30_FILE, "generated/oazapfts.ts"],
  "swagger-typescript-api": [
    ...["swagger-typescript-api", "generate", "--silent", "--path", OPENAPI_30_FILE],
    ...["--output", "generated", "--name", "swagger-typescript-api.ts"],
  ],
} as const;

let tools: string;
let calls: string;
const tool = (name: string): string => join(tools, "node_modules/.bin", name);

beforeAll(async () => {
  tools = await installedTools();
  calls = callsIn(tools);
}, 600_000);

test("Spectral finds nothing in either document by its own rules", async () => {
  const ruleset = join(root, "test/clients/spectral.yaml");
  const options = ["lint", "--ruleset", ruleset, "--fail-severity", "hint", "--format", "text"];
  const { stdout } = await run(tool("spectral"), [...options, OPENAPI_FILE, OPENAPI_30_FILE]);
  expect(stdout).toContain("No results with a severity of 'hint' or higher found!");
});

test("the clients of three generators compile in strict mode, and their requests get the expected answers", async () => {
  for (const [command, ...options] of Object.values(generators)) await run(tool(command), options, { cwd: calls });
  await run(tool("tsc"), ["--project", "tsconfig.json"], { cwd: calls });
  const { owner } = await newTeam();
  const env = { ...process.env, BASE_URL: baseUrl(), TOKEN: await tokenOf(owner.email) };
  for (const name of Object.keys(generators)) {
    const script = join(calls, `${name}.mjs`);
    await build({
      entryPoints: [join(calls, `${name}.ts`)],
      outfile: script,
      bundle: true,
      format: "esm",
      platform: "node",
    });
    const { stdout } = await run(process.execPath, [script], { env });
    expect(JSON.parse(stdout), name).toEqual({
      email: owner.email,
      lat: 39.7392,
      city: "Denver",
      isTagged: true,
      isListed: true,
      status: "Interested",
      notes: ["Wants a quote."],
      assignedTo: null,
      isInFeed: true,
      isSamePolygon: true,
      isRemoved: true,
    });
  }
}, 300_000);
