/**
 * Implements `npm run migrate -- status|run|rollback`. It rewrites the rows of prospects in a different shape (version of the stored
 * fields): `run` in the shape of this release, and `rollback` in the shape of release 0.1.0.
 */
import { setTimeout as wait } from "node:timers/promises";
import { paginateScan } from "@aws-sdk/lib-dynamodb";
import * as z from "zod/mini";
import { dynamoClient } from "#shared/aws/dynamodb.ts";
import { systemClock } from "#shared/clock.ts";
import * as keys from "#shared/db/keys.ts";
import { type Progress, readProgress, reshapeProspects } from "#shared/prospects/reshape.ts";
import type { ProspectShape } from "#shared/prospects/stored.ts";
import { CompanyId, wholeNumber } from "../command/accepted.ts";
import { argumentsOf, checked, runCommand, unknownCommand } from "../command/options.ts";
import { chosenStack, stackOptions, stackUsage } from "./chosen-stack.ts";
import { type TableInUse, tableInUse } from "./table-in-use.ts";

const usage = `npm run migrate -- status|run|rollback
    status    shows how far each company has come
    run       rewrites the rows of prospects in shape 2, the shape of this release
    rollback  rewrites them in shape 1, the shape of release 0.1.0; deploy with -c prospectShape=1 before
    [--company N]            one company (default: all companies, one after another)
    [--units-per-second N]   maximum capacity units of the table per second (default 500)
${stackUsage}
Companies stay in use meanwhile. A command that was interrupted continues where it has ended.
exit code 0: success, 1: functions keep writing the other shape, an unknown company or any other error, 2: wrong usage`;

const Command = z.tuple([z.enum(["status", "run", "rollback"])]);
const Input = z.object({
  company: z.optional(CompanyId),
  stage: z.optional(z.string()),
  stack: z.optional(z.string()),
  "units-per-second": z._default(wholeNumber(1, 999_999), 500),
});

function readInput() {
  const text = { type: "string" } as const;
  const options = { company: text, "units-per-second": text, ...stackOptions };
  const { positionals, values } = argumentsOf(options, usage);
  const command = z.safeParse(Command, positionals);
  if (!command.success) throw unknownCommand(positionals, usage);
  const input = checked(Input, values, usage);
  return { ...input, command: command.data[0], stack: chosenStack(input) };
}

const Company = z.object({ pk: z.string() });

/** Yields the ids of all companies. No row lists them, so this function scans the whole table. The scan costs half a read unit per 4 KB. */
async function* companies({ outputs, dynamoDb }: TableInUse): AsyncGenerator<number> {
  const pages = paginateScan(
    { client: dynamoClient(dynamoDb) },
    {
      TableName: z.string().parse(outputs.TableName),
      FilterExpression: "sk = :company",
      ExpressionAttributeValues: { ":company": "COMPANY" },
      ProjectionExpression: "pk",
    },
  );
  for await (const { Items = [] } of pages) {
    for (const item of Items) {
      const [, id] = /^C#(\d+)#REF$/.exec(Company.parse(item).pk) ?? [];
      if (id !== undefined) yield Number(id);
    }
  }
}

async function* chosen(inUse: TableInUse, company: number | undefined): AsyncGenerator<number> {
  if (company === undefined) return yield* companies(inUse);
  if ((await inUse.table.get(keys.company(company))) === undefined) {
    throw new Error(`${inUse.label} has no company ${company}`);
  }
  yield company;
}

const describe = ({ target: shape, state, pass, block, rewritten }: Progress): string =>
  state === "completed"
    ? `shape ${shape}, completed, ${rewritten} rows rewritten`
    : `shape ${shape}, pass ${pass}, blocks below ${block} done, ${rewritten} rows rewritten`;

const REPORT_EVERY_MS = 2_000;

/** Returns a function that prints a line to stderr. It drops lines, so that it prints at most one line every two seconds. */
function reporter(): (line: string) => void {
  let last = Date.now();
  return (line) => {
    if (Date.now() - last < REPORT_EVERY_MS) return;
    last = Date.now();
    console.error(line);
  };
}

async function main(): Promise<number> {
  const { command, company, stack, "units-per-second": unitsPerSecond } = readInput();
  const inUse = await tableInUse(stack);
  const { table } = inUse;
  const shape: ProspectShape = command === "rollback" ? 1 : 2;
  const report = reporter();
  let exitCode = 0;
  for await (const id of chosen(inUse, company)) {
    if (command === "status") {
      const progress = await readProgress(table, id);
      console.log(`company ${id}: ${progress === undefined ? "never migrated" : describe(progress)}`);
      continue;
    }
    const progress = (one: Progress) => report(`company ${id}: ${describe(one)}`);
    const reached = await reshapeProspects({ table, clock: systemClock, wait }, id, shape, {
      unitsPerSecond,
      progress,
    });
    console.log(`company ${id}: ${describe(reached)}`);
    if (reached.state === "completed") continue;
    console.error(`company ${id}: functions keep writing the other shape; deploy with -c prospectShape=${shape} first`);
    exitCode = 1;
  }
  return exitCode;
}

await runCommand(main);
