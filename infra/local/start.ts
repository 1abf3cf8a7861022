/** Implements `npm start`: it runs the whole service on this machine until a signal ends it. */
import { messageOf } from "../cli/command/error.ts";
import { exitCodes, WrongUsage } from "../cli/command/options.ts";
import { onSignal } from "../cli/command/signals.ts";
import { addDemoWebhooks } from "./demo/webhooks.ts";
import { readOptions } from "./options.ts";
import { LocalError, unwritable } from "./servers/error.ts";
import type { LocalService } from "./service.ts";

async function announce({ url, outputs, tokenOf }: LocalService): Promise<void> {
  for (const email of ["owner@acme.test", "rep@acme.test", "owner@globex.test"]) {
    const token = await tokenOf(email);
    if (token !== undefined) console.log(`\n# ${email}\nexport TOKEN=${token}`);
  }
  console.log(`\ncurl -H "Authorization: Bearer $TOKEN" ${url}/api/me\n`);
  console.log(`DynamoDB   ${outputs.DynamoDbEndpoint}      table ${outputs.TableName}`);
  console.log(`Queues     ${url}/local/queues      outputs ${url}/local/outputs`);
  // The tokens fill a screen, so these addresses come after them.
  console.log(`API        ${url}/api      reference ${url}/docs      OpenAPI ${url}/openapi.json`);
  console.log(`Console    ${url}/`);
  console.log(`ready ${url}`);
}

function stepPrinter(): (step: string) => void {
  let since = performance.now();
  return (step) => {
    const now = performance.now();
    console.log(`${step} in ${((now - since) / 1_000).toFixed(1)} s`);
    since = now;
  };
}

/** Builds the console. The service also starts if the build fails, because the API does not need the console. */
async function builtConsole(): Promise<void> {
  const { buildConsole } = await import("../build/console.ts");
  const onStep = stepPrinter();
  try {
    if (await buildConsole()) onStep("built the console");
  } catch (error) {
    console.error(`the console could not be built, and the API works without it: ${messageOf(error)}`);
  }
}

const PARENT_CHECK_MS = 500;

/**
 * Calls `stop` when the npm process that started this process has ended. If npm is killed with SIGKILL, it does not end its child
 * processes, and the service would continue to use the port.
 */
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
  // Until the service has started, a signal ends this process and the DynamoDB server at once. The next start replaces demo data that is
  // incomplete then.
  const exitAtOnce = (): never => process.exit(0);
  process.on("SIGINT", exitAtOnce).on("SIGTERM", exitAtOnce);
  const options = readOptions(process.argv.slice(2), process.env);
  // Importing `service.ts` takes half a second. So it is imported after the options are read, and a wrong option is reported at once.
  const { startLocal } = await import("./service.ts");
  let built = Promise.resolve();
  // Build the console only after the port and the data directory are claimed, so that a refused start only prints the reason.
  const onClaimed = (): void => {
    built = builtConsole();
  };
  const service = await startLocal({ ...options, onStep: stepPrinter(), onClaimed });
  await built;
  if (options.demoWebhooks) await addDemoWebhooks(service);
  await announce(service);
  const ended = Promise.withResolvers<number>();
  onSignal(
    () => ended.resolve(0),
    () => process.exit(1),
  );
  process.off("SIGINT", exitAtOnce).off("SIGTERM", exitAtOnce);
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
    const isPlain = error instanceof LocalError || error instanceof WrongUsage;
    console.error(isPlain ? error.message : (unwritable(error) ?? error));
    process.exit(error instanceof WrongUsage ? exitCodes.wrongUsage : exitCodes.failed);
  }
}
