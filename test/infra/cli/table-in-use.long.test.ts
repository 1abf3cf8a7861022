/**
 * Tests how the admin commands find the table, and their error messages. If a command reaches neither a local service nor AWS, one sentence
 * must say what is missing and what the user should do. Wrong arguments must be explained before the usage.
 */
import { execFile, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { serveOnLoopback } from "../../../infra/local/servers/listener.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const nowhere = {
  PATH: process.env.PATH,
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
  HOME: "/nonexistent",
  AWS_EC2_METADATA_DISABLED: "true",
  PORT: "9",
};

const run = (command: string, env: NodeJS.ProcessEnv) =>
  spawnSync(process.execPath, command.split(" "), { cwd: root, encoding: "utf8", env: { ...nowhere, ...env } });

const NOT_HERE = "no local service answers at http://127.0.0.1:9: start it with npm start; and ";
const NO_REGION = "cannot be found without an AWS region: set AWS_REGION\n";
const NO_CREDENTIALS =
  "cannot be found without AWS credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY\n";

test.each([
  ["infra/cli/company-index.ts verify --company 1", {}, 1, `${NOT_HERE}the stack Canvassing ${NO_REGION}`],
  ["infra/cli/company-index.ts rebuild --company 1 --stack Other", {}, 1, `the stack Other ${NO_REGION}`],
  ["infra/cli/company-index.ts verify --company 1 --stage test", {}, 1, `the stack Canvassing-test ${NO_REGION}`],
  ["infra/cli/dead-letters.ts list --stage test", {}, 1, `the stack Canvassing-test ${NO_REGION}`],
  ["infra/cli/webhooks.ts reconcile --company 1", {}, 1, `${NOT_HERE}the stack Canvassing ${NO_REGION}`],
  [
    "infra/cli/webhooks.ts reconcile --company 1",
    { AWS_REGION: "us-east-1" },
    1,
    `target: stack Canvassing in us-east-1\n${NOT_HERE}the stack Canvassing ${NO_CREDENTIALS}`,
  ],
  ["infra/cli/company.ts create --name A --owner a@b.test", {}, 1, `${NOT_HERE}the stack Canvassing ${NO_REGION}`],
  ["infra/cli/company.ts create --name A --owner a@b.test --sub x", {}, 1, `the stack Canvassing ${NO_REGION}`],
  [
    "infra/cli/company.ts create --name A --owner a@b.test --stage test",
    {},
    1,
    `the stack Canvassing-test ${NO_REGION}`,
  ],
  [
    "infra/cli/company.ts create --name A --owner a@b.test --stage test --stack Other",
    {},
    2,
    "--stage and --stack cannot be combined: --stage test means --stack Canvassing-test\n",
  ],
])("%s with %j", (command, env, status, stderr) => {
  expect(run(command, env)).toMatchObject({ status, stdout: "", stderr });
});

/** Runs a command next to a local service that answers every request with this status and body. Returns the output of the command. */
async function runBeside(status: number, body: string, command: string) {
  const service = await serveOnLoopback(async (_, response) => response.writeHead(status).end(body));
  const env = { ...nowhere, PORT: new URL(service.endpoint).port };
  const { promise, resolve } = Promise.withResolvers<string>();
  execFile(process.execPath, command.split(" "), { cwd: root, env }, (_, stdout, stderr) => resolve(stdout + stderr));
  const output = await promise;
  service.stop();
  return output.replaceAll(service.endpoint, "URL");
}

test("a command that meets a starting local service acts nowhere else", async () => {
  for (const command of ["company.ts check --company 1", "dead-letters.ts list", "smoke.ts"]) {
    const output = await runBeside(503, "the service is starting\n", `infra/cli/${command}`);
    expect(output).toContain('the local service at URL is starting: wait for the line "ready"');
  }
});

test("a command names the output that a service of another release lacks", async () => {
  const outputs = { TableName: "T", DynamoDbEndpoint: "http://127.0.0.1:9", SqsEndpoint: "http://127.0.0.1:9" };
  expect(await runBeside(200, JSON.stringify(outputs), "infra/cli/dead-letters.ts list")).toBe(
    "target: local service at URL\nURL has no output DeliveriesUrl, because it is of another release than this command\n",
  );
});

test.each([
  "canary.ts create",
  "company-index.ts verify --company 1",
  "company.ts check --company 1",
  "company.ts create --name A --owner a@b.test",
  "dead-letters.ts list",
  "restore.ts verify --table Restored",
  "senders.ts stop",
  "webhooks.ts reconcile --company 1",
])("%s names the stack and the region in the first line", (command) => {
  const { stderr } = run(`infra/cli/${command} --stage test`, { AWS_REGION: "eu-west-1" });
  expect(stderr).toMatch(/^target: stack Canvassing-test in eu-west-1\n/);
});

test.each([
  ["company.ts suspend", "--company: is required\n"],
  ["company.ts create --name A", "--owner: is required\n"],
  ["company.ts crate --name A", "crate: unknown command\n"],
  ["company.ts", ""],
  ["company-index.ts verfy --company 1", "verfy: unknown command\n"],
  ["company-index.ts verify", "--company: is required\n"],
  ["dead-letters.ts redrive everything", "everything: no queue has this name\n"],
  ["restore.ts tabel --to X", "tabel: unknown command\n"],
  ["restore.ts delete --table Restored --as Other", "--as: this command has no such option\n"],
  ["senders.ts halt", "halt: unknown command\n"],
  ["canary.ts make", "make: unknown command\n"],
  ["company.ts suspend --company Acme", '--company: must be the id of a company, and not "Acme"\n'],
  ["restore.ts company --from Restored", "--company: is required\n"],
  ["restore.ts delete --tables Restored", "Unknown option '--tables': see npm run restore -- --help\n"],
])("%s explains what is wrong before the usage", (command, reason) => {
  const { status, stderr } = run(`infra/cli/${command}`, {});
  expect({ status, reason: stderr.split("usage:")[0] }).toEqual({ status: 2, reason });
});
