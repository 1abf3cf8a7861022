/** `npm start`: the whole service on this machine, until it is told to end. */
import { parseArgs } from "node:util";
import * as z from "zod/mini";
import { AllowedOrigins } from "../config.ts";
import { firstFault, Host, Port } from "./address.ts";
import { LocalError, messageOf } from "./error.ts";
import { type LocalOptions, type LocalService, startLocal } from "./service.ts";

const Positive = z.pipe(z.pipe(z.string(), z.transform(Number)), z.number().check(z.positive()));
const Count = z.pipe(z.pipe(z.string().check(z.regex(/^\d+$/)), z.transform(Number)), z.int());

const Settings = z.object({
  PORT: Port,
  HOST: Host,
  DATA_DIR: z._default(z.string().check(z.minLength(1)), ".local"),
  WEBHOOK_URL_POLICY: z._default(z.enum(["public", "local"]), "local"),
  LOCAL_TIME_SCALE: z._default(Positive, 1),
  ALLOWED_ORIGINS: AllowedOrigins,
  DYNAMODB_ENDPOINT: z.optional(z.url()),
  LOG: z.optional(z.string()),
  seed: z._default(Count, 0),
});

/** Throws a LocalError that names the flag or variable at fault. */
export function readOptions(args: readonly string[], env: NodeJS.ProcessEnv): LocalOptions {
  const flags = readFlags(args);
  const parsed = z.safeParse(Settings, { ...env, seed: flags.seed });
  if (!parsed.success) throw firstFault(parsed.error, ["seed"]);
  const settings = parsed.data;
  return {
    port: settings.PORT,
    host: settings.HOST,
    dataDir: flags.memory ? undefined : settings.DATA_DIR,
    fresh: flags.fresh,
    webhookUrlPolicy: settings.WEBHOOK_URL_POLICY,
    timeScale: settings.LOCAL_TIME_SCALE,
    allowedOrigins: settings.ALLOWED_ORIGINS,
    demo: true,
    seed: settings.seed,
    verbose: settings.LOG === "1",
    dynamoDbEndpoint: settings.DYNAMODB_ENDPOINT,
  };
}

function readFlags(args: readonly string[]): { fresh: boolean; memory: boolean; seed: string | undefined } {
  const options = {
    fresh: { type: "boolean", default: false },
    memory: { type: "boolean", default: false },
    seed: { type: "string" },
  } as const;
  try {
    const { fresh, memory, seed } = parseArgs({ args: [...args], options }).values;
    return { fresh, memory, seed };
  } catch (error) {
    throw new LocalError(`${messageOf(error)} (flags: --fresh, --memory, --seed N)`);
  }
}

async function announce({ url, outputs, tokenOf }: LocalService): Promise<void> {
  console.log(`API        ${url}/api      reference ${url}/docs      OpenAPI ${url}/openapi.json`);
  console.log(`Table      ${outputs.TableName} at ${outputs.DynamoDbEndpoint}`);
  console.log(`Queues     ${url}/local/queues      outputs ${url}/local/outputs`);
  for (const email of ["owner@acme.test", "rep@acme.test", "owner@globex.test"]) {
    const token = await tokenOf(email);
    if (token !== undefined) console.log(`\n# ${email}\nexport TOKEN=${token}`);
  }
  console.log(`\ncurl -H "Authorization: Bearer $TOKEN" ${url}/api/me\n`);
  console.log(`ready ${url}`);
}

const PARENT_CHECK_MS = 500;

/** npm that is killed takes nobody along: without it this process would go on unseen and hold the port. */
function whenAbandoned(stop: () => void): void {
  if (process.env.npm_lifecycle_event === undefined) return;
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    stop();
  }, PARENT_CHECK_MS);
  timer.unref();
}

async function main(): Promise<void> {
  // Before the service is ready there is nothing to finish: its child ends with this process.
  const exitAtOnce = (): never => process.exit(0);
  process.once("SIGINT", exitAtOnce).once("SIGTERM", exitAtOnce);
  const service = await startLocal(readOptions(process.argv.slice(2), process.env));
  await announce(service);
  process.off("SIGINT", exitAtOnce).off("SIGTERM", exitAtOnce);
  const ended = Promise.withResolvers<number>();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => {
      ended.resolve(0);
      process.once(signal, () => process.exit(1));
    });
  }
  whenAbandoned(() => ended.resolve(0));
  void service.failed.then((reason) => {
    console.error(reason);
    ended.resolve(1);
  });
  const code = await ended.promise;
  await service.stop();
  process.exit(code);
}

if (import.meta.main) {
  try {
    await main();
  } catch (error) {
    console.error(error instanceof LocalError ? error.message : error);
    process.exit(1);
  }
}
