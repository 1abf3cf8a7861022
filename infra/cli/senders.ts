/** Implements `npm run senders -- stop | start`, which stops the functions that send webhooks, or lets them work again. */
import { setTimeout as wait } from "node:timers/promises";
import {
  type CloudFormationClient,
  DescribeStackResourcesCommand,
  GetTemplateCommand,
  TemplateStage,
} from "@aws-sdk/client-cloudformation";
import {
  GetEventSourceMappingCommand,
  type LambdaClient,
  paginateListEventSourceMappings,
  UpdateEventSourceMappingCommand,
} from "@aws-sdk/client-lambda";
import * as z from "zod/mini";
import { eventFunctions } from "../routes/routes.ts";
import { stackNameOf } from "../settings/names.ts";
import { cloudFormationClient, lambdaClient } from "./clients.ts";
import { command, runCommands } from "./command/options.ts";
import { chosenStack, deployedTable, stackInput, stackUsage } from "./table-in-use.ts";

const usage = `npm run senders -- stop
    sends no more webhooks; deliveries wait in the queue and in the table, and none is lost
npm run senders -- start
    sends the waiting webhooks
${stackUsage}
exit code 0: done, 1: failed, 2: wrong usage`;

interface SendersContext {
  readonly cloud: CloudFormationClient;
  readonly lambda: LambdaClient;
  readonly wait: (ms: number) => Promise<unknown>;
}

const { file, timeoutSeconds } = eventFunctions.deliver;
const Sender = z.object({
  Type: z.literal("AWS::Lambda::Function"),
  Properties: z.object({ Description: z.literal(file) }),
});
const Deployed = z.object({ Resources: z.record(z.string(), z.unknown()) });
const POLL_MS = 2_000;

/** Disables or enables the event source mapping. A reserved concurrency of 0 would stop senders too, but make messages dead letters. */
export async function switchSenders(context: SendersContext, stackName: string, isOn: boolean): Promise<void> {
  const { lambda } = context;
  const UUID = await mappingOf(context, await functionOf(context, stackName));
  await lambda.send(new UpdateEventSourceMappingCommand({ UUID, Enabled: isOn }));
  const wanted = isOn ? "Enabled" : "Disabled";
  while ((await lambda.send(new GetEventSourceMappingCommand({ UUID }))).State !== wanted) await context.wait(POLL_MS);
  // Wait, because an invocation that has already begun may send webhooks until its time-out.
  if (!isOn) await context.wait(timeoutSeconds * 1_000);
}

/** Returns the name of the deliverer's function. Finds it by its description in the template, because all deployments have the same one. */
async function functionOf({ cloud }: SendersContext, StackName: string): Promise<string> {
  const { TemplateBody = "{}" } = await cloud.send(
    new GetTemplateCommand({ StackName, TemplateStage: TemplateStage.Original }),
  );
  const { Resources } = Deployed.parse(JSON.parse(TemplateBody));
  const LogicalResourceId = Object.keys(Resources).find((id) => z.safeParse(Sender, Resources[id]).success);
  if (LogicalResourceId === undefined) throw new Error(`the stack ${StackName} has no function ${file}`);
  const { StackResources = [] } = await cloud.send(new DescribeStackResourcesCommand({ StackName, LogicalResourceId }));
  const found = StackResources.find((one) => one.LogicalResourceId === LogicalResourceId);
  return z.string().parse(found?.PhysicalResourceId);
}

/** Returns the id of the mapping. Lists all mappings, because Lambda's filter by function name does not find the mappings of an alias. */
async function mappingOf({ lambda }: SendersContext, name: string): Promise<string> {
  for await (const { EventSourceMappings = [] } of paginateListEventSourceMappings({ client: lambda }, {})) {
    const found = EventSourceMappings.find(({ FunctionArn = "" }) => FunctionArn.split(":")[6] === name);
    if (found?.UUID !== undefined) return found.UUID;
  }
  throw new Error(`the function ${name} reads no queue`);
}

const switching = (isOn: boolean) =>
  command(z.strictObject(stackInput), async (input) => {
    const stack = chosenStack(input) ?? stackNameOf(undefined);
    const { dynamoDb } = await deployedTable(stack);
    const context = { cloud: cloudFormationClient(dynamoDb), lambda: lambdaClient(dynamoDb), wait };
    await switchSenders(context, stack, isOn);
    console.log(`the senders of stack ${stack} ${isOn ? "work" : "are stopped"}`);
    return 0;
  });

if (import.meta.main) {
  await runCommands(usage, { stop: switching(false), start: switching(true) });
}
