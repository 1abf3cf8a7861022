/** Tests the clients that three generators make for TypeScript from the OpenAPI documents. */
import { join } from "node:path";
import { build } from "esbuild";
import { beforeAll, expect, test } from "vitest";
import { OPENAPI_30_FILE, OPENAPI_FILE } from "../../infra/build/bundle.ts";
import { baseUrl, tokenOf } from "../harness/client.ts";
import { callsIn, installedTools, run, storyFacts } from "../harness/client-tools.ts";
import { newTeam } from "../harness/team.ts";

const names = ["hey-api", "oazapfts", "swagger-typescript-api"] as const;

/** Returns the command of each generator. It writes the client of a document into a folder. */
const commandsFor = (document: string, folder: string): readonly (readonly [string, ...string[]])[] => [
  ["openapi-ts", "--silent", "--input", document, "--output", `${folder}/hey-api`],
  ["oazapfts", document, `${folder}/oazapfts.ts`],
  [
    ...(["swagger-typescript-api", "generate", "--silent", "--path", document] as const),
    ...["--output", folder, "--name", "swagger-typescript-api.ts"],
  ],
];

let tools: string;
let calls: string;
const tool = (name: string): string => join(tools, "node_modules/.bin", name);

beforeAll(async () => {
  tools = await installedTools();
  calls = callsIn(tools);
}, 600_000);

test("the clients of both documents compile in strict mode, and requests of the clients of OpenAPI 3.1 get the expected answers", async () => {
  const commands = [...commandsFor(OPENAPI_FILE, "generated"), ...commandsFor(OPENAPI_30_FILE, "generated-3.0")];
  for (const [command, ...options] of commands) await run(tool(command), options, { cwd: calls });
  await run(tool("tsc"), ["--project", "tsconfig.json"], { cwd: calls });
  const { owner } = await newTeam();
  const env = { ...process.env, BASE_URL: baseUrl(), TOKEN: await tokenOf(owner.email) };
  for (const name of names) {
    const script = join(calls, `${name}.mjs`);
    await build({
      entryPoints: [join(calls, `${name}.ts`)],
      outfile: script,
      bundle: true,
      format: "esm",
      platform: "node",
    });
    const { stdout } = await run(process.execPath, [script], { env });
    expect(JSON.parse(stdout), name).toEqual(storyFacts(owner.email));
  }
}, 300_000);
