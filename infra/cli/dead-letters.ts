/** `npm run dead-letters -- list | redrive QUEUE`: what failed by the service's own fault, and doing it again once that is mended. */
import { parseArgs } from "node:util";
import { DynamoDBStreamsClient } from "@aws-sdk/client-dynamodb-streams";
import * as z from "zod/mini";
import { clientConfig } from "#shared/aws/client-config.ts";
import { sqsClient } from "#shared/aws/sqs.ts";
import { STACK_NAME } from "../config.ts";
import { redoings, stations } from "./dead-letter-queues.ts";
import { countMessages, redrive } from "./redrive.ts";
import { tableInUse } from "./table-in-use.ts";

const usage = `npm run dead-letters -- list
    how many messages each queue of dead letters holds
npm run dead-letters -- redrive QUEUE
    does again what they say; what fails once more stays there, with the reason on stderr
    QUEUE is one of ${Object.keys(stations).join(", ")}
    [--stack NAME]   a deployed stack (default ${STACK_NAME}), even while a local service runs
exit code 0: done, 1: some messages failed again, 2: wrong usage, 3: anything else`;

const Command = z.union([
  z.tuple([z.literal("list")]),
  z.tuple([z.literal("redrive"), z.string().check(z.refine((name) => Object.hasOwn(stations, name)))]),
]);

async function main(): Promise<number> {
  const input = readInput();
  if (input === undefined) {
    console.error(`usage: ${usage}`);
    return 2;
  }
  const { stack, queue } = input;
  const inUse = await tableInUse(stack);
  const sqs = sqsClient(inUse.sqs);
  const redo = redoings(inUse, sqs, new DynamoDBStreamsClient(clientConfig(inUse.dynamoDb)));
  if (queue === undefined) {
    for (const { name, url } of Object.values(redo)) {
      console.log(`${name.padEnd(20)}${String(await countMessages(sqs, url)).padStart(9)}`);
    }
    return 0;
  }
  const { url, work } = redo[queue] ?? {};
  if (url === undefined || work === undefined) throw new Error(`${queue} is not in use on ${inUse.label}`);
  const { done, failed } = await redrive(sqs, url, work);
  console.log(`${queue} on ${inUse.label}: ${done} done again, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

/** Undefined: wrong usage. */
function readInput(): { queue: string | undefined; stack: string | undefined } | undefined {
  try {
    const { positionals, values } = parseArgs({ allowPositionals: true, options: { stack: { type: "string" } } });
    const [, queue] = z.parse(Command, positionals);
    return { queue, stack: values.stack };
  } catch {
    return undefined;
  }
}

process.exitCode = await main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : String(error));
  return 3;
});
