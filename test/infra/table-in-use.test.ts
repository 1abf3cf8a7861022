/**
 * Tests the message of the admin commands when they reach neither a local service nor AWS. It must be one sentence that says what is
 * missing and what to do.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
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
  ["infra/cli/company-index.ts verify --company 1", {}, 3, `${NOT_HERE}the stack Canvassing ${NO_REGION}`],
  ["infra/cli/company-index.ts rebuild --company 1 --stack Other", {}, 3, `the stack Other ${NO_REGION}`],
  ["infra/cli/company-index.ts verify --company 1 --stage test", {}, 3, `the stack Canvassing-test ${NO_REGION}`],
  ["infra/cli/dead-letters.ts list --stage test", {}, 3, `the stack Canvassing-test ${NO_REGION}`],
  ["infra/cli/webhooks.ts reconcile --company 1", {}, 3, `${NOT_HERE}the stack Canvassing ${NO_REGION}`],
  [
    "infra/cli/webhooks.ts reconcile --company 1",
    { AWS_REGION: "us-east-1" },
    3,
    `${NOT_HERE}the stack Canvassing ${NO_CREDENTIALS}`,
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
    1,
    "--stage and --stack cannot be combined: --stage test means --stack Canvassing-test\n",
  ],
])("%s with %j", (command, env, status, stderr) => {
  expect(run(command, env)).toMatchObject({ status, stdout: "", stderr });
});
