/** Tests how the admin commands find the table. If a command reaches nothing, one sentence says what is missing and what to do. */
import { expect, test } from "vitest";
import { serveOnLoopback } from "../../../infra/local/servers/listener.ts";
import { runFile } from "./command-process.ts";

function run(command: string, env: NodeJS.ProcessEnv) {
  const [file = "", ...args] = command.split(" ");
  return runFile(`infra/cli/${file}`, args, env);
}

const NOT_HERE = "no local service answers at http://127.0.0.1:9: start it with npm start; and ";
const NO_REGION = "cannot be found without an AWS region: set AWS_REGION\n";
const NO_CREDENTIALS =
  "cannot be found without AWS credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY\n";

test.concurrent.each([
  ["company-index.ts verify --company 1", {}, 1, `${NOT_HERE}the stack Canvassing ${NO_REGION}`],
  ["company-index.ts rebuild --company 1 --stack Other", {}, 1, `the stack Other ${NO_REGION}`],
  ["company-index.ts verify --company 1 --stage test", {}, 1, `the stack Canvassing-test ${NO_REGION}`],
  ["dead-letters.ts list --stage test", {}, 1, `the stack Canvassing-test ${NO_REGION}`],
  ["webhooks.ts reconcile --company 1", {}, 1, `${NOT_HERE}the stack Canvassing ${NO_REGION}`],
  [
    "webhooks.ts reconcile --company 1",
    { AWS_REGION: "us-east-1" },
    1,
    `target: stack Canvassing in us-east-1\n${NOT_HERE}the stack Canvassing ${NO_CREDENTIALS}`,
  ],
  ["company.ts create --name A --owner a@b.test", {}, 1, `${NOT_HERE}the stack Canvassing ${NO_REGION}`],
  ["company.ts create --name A --owner a@b.test --sub x", {}, 1, `the stack Canvassing ${NO_REGION}`],
  ["company.ts create --name A --owner a@b.test --stage test", {}, 1, `the stack Canvassing-test ${NO_REGION}`],
  [
    "company.ts create --name A --owner a@b.test --stage test --stack Other",
    {},
    2,
    "--stage and --stack cannot be combined: --stage test means --stack Canvassing-test\n",
  ],
])("%s with %j", async (command, env, code, stderr) => {
  expect(await run(command, env)).toMatchObject({ code, stdout: "", stderr });
});

/** Runs a command next to a local service that answers every request so. Returns the output of the command. */
async function runBeside(status: number, body: string, command: string) {
  const service = await serveOnLoopback(async (_, response) => response.writeHead(status).end(body));
  const { stdout, stderr } = await run(command, { PORT: new URL(service.endpoint).port });
  const output = stdout + stderr;
  service.stop();
  return output.replaceAll(service.endpoint, "URL");
}

test("a command that meets a starting local service acts nowhere else", async () => {
  for (const command of ["company.ts check --company 1", "dead-letters.ts list", "smoke.ts"]) {
    const output = await runBeside(503, "the service is starting\n", command);
    expect(output).toContain('the local service at URL is starting: wait for the line "ready"');
  }
});

test("a command names the output that a service of another release lacks", async () => {
  const outputs = { TableName: "T", DynamoDbEndpoint: "http://127.0.0.1:9", SqsEndpoint: "http://127.0.0.1:9" };
  expect(await runBeside(200, JSON.stringify(outputs), "dead-letters.ts list")).toBe(
    "target: local service at URL\nURL has no output DeliveriesUrl, because it is of another release than this command\n",
  );
});
