/** Tests `npm run senders` with deployments in a simulated AWS account. */
import { CloudFormationClient } from "@aws-sdk/client-cloudformation";
import { LambdaClient } from "@aws-sdk/client-lambda";
import { afterAll, expect, test } from "vitest";
import { switchSenders } from "../../../infra/cli/senders.ts";
import { eventFunctions } from "../../../infra/routes/routes.ts";
import { documentedDeployment } from "../../../infra/security/permissions.ts";
import { readConfig } from "../../../infra/settings/config.ts";
import { REGION } from "../../harness/cloud/account.ts";
import { serveCloud } from "../../harness/cloud/server.ts";
import { deployAll } from "../../harness/cloud/stacks.ts";
import { LOCAL } from "../../harness/faulty-dynamodb.ts";

const { cloud, endpoint, stop } = await serveCloud();
afterAll(() => stop());

// Two presets: the event source mapping of the delivery queue belongs to an alias in `production`, and to the function itself in `small`.
await deployAll(cloud, documentedDeployment());
await deployAll(cloud, readConfig({ stage: "tiny", alarmEmail: "operator@example.com" }));

/** Returns the names of the functions whose event source mapping is disabled. These functions get no messages. */
const stopped = (): string[] =>
  cloud.account.resources
    .filter(({ type, properties }) => type === "AWS::Lambda::EventSourceMapping" && properties.Enabled === false)
    .map(
      ({ properties }) => /Canvassing-(?:tiny-)?EventsEventsDeliver/.exec(String(properties.FunctionName))?.[0] ?? "",
    );

async function run(name: string, isOn: boolean): Promise<number> {
  const settings = { ...LOCAL, endpoint, region: REGION };
  let waited = 0;
  const wait = async (ms: number): Promise<void> => {
    waited += ms;
  };
  const context = { cloud: new CloudFormationClient(settings), lambda: new LambdaClient(settings), wait };
  await switchSenders(context, name, isOn);
  return waited;
}

test("the senders of one deployment stop and start, and no other function or deployment does", async () => {
  const functionMs = eventFunctions.deliver.timeoutSeconds * 1_000;
  expect(await run("Canvassing", false)).toBe(functionMs);
  expect(stopped()).toEqual(["Canvassing-EventsEventsDeliver"]);
  expect(await run("Canvassing", false)).toBe(functionMs);
  expect(await run("Canvassing-tiny", false)).toBe(functionMs);
  expect(stopped()).toEqual(["Canvassing-EventsEventsDeliver", "Canvassing-tiny-EventsEventsDeliver"]);
  expect(await run("Canvassing", true)).toBe(0);
  expect(stopped()).toEqual(["Canvassing-tiny-EventsEventsDeliver"]);
  expect(await run("Canvassing-tiny", true)).toBe(0);
  expect(stopped()).toEqual([]);
  await expect(run("Canvassing-other", false)).rejects.toThrow("Canvassing-other does not exist");
});
