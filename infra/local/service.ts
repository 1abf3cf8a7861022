/**
 * Runs the whole service from the synthesized CloudFormation templates. The API and the console share one HTTP port. Only the DynamoDB
 * server is a separate process.
 */
import { setTimeout as wait } from "node:timers/promises";
import { bothEnded } from "#shared/all-ended.ts";
import { openTable } from "#shared/db/table.ts";
import { messageOf } from "../cli/command/error.ts";
import { createEdge, type Edge } from "../edge/local-edge.ts";
import { CONTROL_PREFIX, type Control, describeStack, ISSUER_PATH, type Outputs, serveControl } from "./control.ts";
import { openDataDir, openLog, temporaryDir } from "./data-dir.ts";
import { demoStreets } from "./demo/cities.ts";
import { demoRoles } from "./demo/users.ts";
import { connectDynamoDb, serverBinary } from "./engines/dynamodb.ts";
import { createStorage, depths, startEngines } from "./engines/engines.ts";
import { AUDIENCE, createIdentity, subjectOf } from "./engines/identity.ts";
import { fileRights, keyRefusal, statementsByFunction } from "./engines/policies.ts";
import { createSignIn } from "./engines/sign-in.ts";
import { guardRights, type Uses } from "./engines/table-guard.ts";
import { ensureStream } from "./engines/tables.ts";
import { createGateway, type Gateway } from "./gateway/gateway.ts";
import { originForm } from "./gateway/request.ts";
import { type LocalOptions, makeTemplates } from "./options.ts";
import { writeWorker } from "./runtime/environment.ts";
import { createFunctions, type LocalFunction } from "./runtime/function.ts";
import { warmEnvironments } from "./runtime/pool.ts";
import { documentsAt } from "./servers/clients.ts";
import { LocalError } from "./servers/error.ts";
import { bind } from "./servers/listener.ts";
import type { RunningSource } from "./sources/poller.ts";
import { openPositions } from "./sources/positions.ts";
import { startSources } from "./sources/sources.ts";
import { keyArn } from "./template/names.ts";
import { readStack } from "./template/stack.ts";

export type LocalService = Awaited<ReturnType<typeof startLocal>>;

/** Starts the local service. If the start fails, stops everything that it has already started, and throws the error. */
export async function startLocal(options: LocalOptions) {
  const steps: (() => unknown)[] = [];
  const stop = async (): Promise<void> => {
    for (const step of steps.splice(0).reverse()) await step();
  };
  try {
    const undo: Undo = (step) => void steps.push(step);
    return { ...(await run(await prepare(options, undo), undo)), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Adds a step that stops what was just started. The last added step runs first. */
type Undo = (step: () => unknown) => void;

type Parts = Awaited<ReturnType<typeof prepare>>;

/** Starts the engines, builds the functions, and loads the demo data. */
async function prepare(options: LocalOptions, undo: Undo) {
  // Check the DynamoDB server first. Otherwise a user would see that it is missing only after the functions are built, which takes seconds.
  if (options.dynamoDbEndpoint === undefined) serverBinary();
  else await connectDynamoDb(options.dynamoDbEndpoint);
  const listener = await bind(options.port, options.host ?? "127.0.0.1");
  undo(() => listener.stop());
  const { dataDir, fresh = false } = options;
  const dir = dataDir === undefined ? temporaryDir() : await openDataDir(dataDir, fresh);
  undo(() => dir.release());
  options.onClaimed?.();
  const identity = await createIdentity(`${listener.url}${ISSUER_PATH}`, dir.signingKey);
  // `bothEnded` waits for both promises even if one of them fails, so that `undo` also stops the servers that start meanwhile.
  const build = bothEnded(makeTemplates(options, identity, listener.url, dir.assembly), writeWorker(dir.worker));
  const [engines, [templates]] = await bothEnded(startEngines(options.dynamoDbEndpoint, dir, undo), build);
  const stack = readStack(templates, engines.queues.endpoint, dir.assembly);
  const { functions, keys } = stack;
  const statements = statementsByFunction(templates, functions);
  const keyArns = keys.map(({ name }) => keyArn(name));
  engines.kms.serve(keyArns, keyRefusal(statements));
  const isNew = await createStorage(engines, stack, fresh);
  const outputs = describeStack(stack, engines, { ApiUrl: listener.url, Issuer: identity.issuer, Audience: AUDIENCE });
  await loadData(outputs, isNew, options);
  for (const table of stack.tables) await ensureStream(engines.dynamoDb, table);
  const isGuarded = options.enforceRights === true;
  if (isGuarded) engines.queues.bucket.rights = fileRights(statements);
  const guard = isGuarded ? guardRights(statements, functions) : undefined;
  return { options, listener, dir, identity, engines, stack, outputs, isNew, guard };
}

/** Starts the functions and their event sources, and serves requests. */
async function run(parts: Parts, undo: Undo) {
  const { options, listener, dir, identity, engines, stack, outputs, guard } = parts;
  const log = openLog(dir.log, options.verbose === true);
  undo(() => log.close());
  const sources: RunningSource[] = [];
  let failures = 0;
  const functions = startFunctions(parts, undo, log.write, (failed) => {
    if (failed) failures++;
    for (const source of sources) source.kick();
  });
  const edge = edgeOf(parts);
  const gateway = createGateway(stack, functions, edge?.apiHeaders);
  const invocations = () => Object.fromEntries([...functions.values()].map(({ spec, calls }) => [spec.file, calls()]));
  const { flushAuthorizers } = gateway;
  const control = { ...signInOf(parts), queues: () => depths(engines, stack), invocations, flushAuthorizers };
  serve(parts, gateway, edge, control);
  const positions = openPositions(dir.positions, parts.isNew);
  sources.push(...(await startSources({ stack, functions, engines, positions, log: log.write })));
  undo(() => stopSources(sources));
  undo(() => listener.stop());
  undo(() => dir.markEnding());
  dir.markComplete();
  return {
    ...control,
    url: listener.url,
    outputs,
    /** The private key of the token issuer as JWK (JSON Web Key). Tests use it to forge tokens. */
    signingKey: identity.signingKey,
    /** Resolves with the reason if the DynamoDB server ends unexpectedly. */
    failed: engines.failed,
    failures: () => failures,
    /** The DynamoDB calls that the functions' policies refused, one line each. Empty without the option `enforceRights`. */
    refusals: guard?.refusals ?? [],
    /** The DynamoDB actions that each function has executed since the start. Empty without the option `enforceRights`. */
    uses: (): Uses => guard?.uses() ?? {},
    mint: identity.mint,
    /** @param file the function's file below `functions/`, without its extension */
    invoke: async (file: string, event: unknown): Promise<unknown> =>
      JSON.parse(await functionOf(functions, file).invoke(event)),
  };
}

function startFunctions(
  { options, dir, engines, stack, guard }: Parts,
  undo: Undo,
  write: (text: string) => void,
  onInvoked: (failed: boolean) => void,
): ReadonlyMap<string, LocalFunction> {
  const warm = warmEnvironments(options.warmth);
  const host = {
    variables: engines.variables,
    worker: dir.worker,
    startThread: options.startThread,
    refusal: guard?.refusal,
    compileCache: dir.compileCache,
    warm,
    log({ name, file, LoggingConfig }: LocalFunction["spec"], text: string) {
      options.onLogLine?.({ file, group: LoggingConfig.LogGroup ?? `/aws/lambda/${name}`, text });
      write(`${file} ${text}\n`);
    },
    onInvoked,
  };
  const functions = createFunctions(stack, host, options.requestEnvironments);
  undo(() => Promise.all([...functions.values()].map((one) => one.stop())));
  undo(() => warm.clear());
  return functions;
}

function signInOf({
  listener,
  identity,
  outputs,
}: Parts): Pick<Control, "identity" | "signIn" | "outputs" | "tokenOf"> {
  const table = openTable(outputs.TableName, documentsAt(outputs.DynamoDbEndpoint));
  const findSubject = (email: string): Promise<string | undefined> => subjectOf(table, email);
  const redirectUri = `${listener.url}/api/session/callback`;
  return {
    identity,
    signIn: createSignIn({ identity, redirectUri, roles: demoRoles, subjectOf: findSubject }),
    outputs,
    async tokenOf(email) {
      const sub = await findSubject(email);
      return sub === undefined ? undefined : identity.mint({ sub });
    },
  };
}

const DRAIN_MS = 3_000;

/**
 * Waits at most `DRAIN_MS` for running invocations. The next start repeats unfinished ones, because their messages and records are still in
 * the queues and streams.
 */
async function stopSources(running: readonly RunningSource[]): Promise<void> {
  const stopped = Promise.all(running.map((source) => source.stop()));
  await Promise.race([stopped, wait(DRAIN_MS, undefined, { ref: false })]);
}

function functionOf(functions: ReadonlyMap<string, LocalFunction>, file: string): LocalFunction {
  const found = [...functions.values()].find(({ spec }) => spec.file === file);
  if (found === undefined) throw new LocalError(`the template has no function ${file}`);
  return found;
}

function serve({ listener }: Parts, gateway: Gateway, edge: Edge | undefined, control: Control): void {
  listener.server.on("clientError", (error, socket) => gateway.refuse(error, socket));
  listener.serve((request, response) => {
    const { method = "GET", url = "/", headers } = request;
    const acceptEncoding = headers["accept-encoding"]?.toString();
    const page = { method, target: originForm(url), host: headers.host, acceptEncoding };
    if (url.startsWith(CONTROL_PREFIX)) void serveControl(control, request, response);
    else if (edge?.isForConsole(page)) void edge.serve(page, response);
    else void gateway.handle(request, response);
  });
}

function edgeOf({ options, stack, engines, identity }: Parts): Edge | undefined {
  const consoleUrl = stack.stage.Variables.consoleUrl;
  if (consoleUrl === undefined) return undefined;
  const streets = options.demo === true ? demoStreets() : undefined;
  return createEdge({
    consoleUrl,
    uploadOrigin: engines.queues.endpoint,
    settings: { issuer: identity.issuer, basemap: options.basemap, offline: true, streets },
  });
}

async function loadData(outputs: Outputs, isNew: boolean, options: LocalOptions): Promise<void> {
  const { seed = 0, onStep } = options;
  const demo = options.demo === true && isNew;
  if (!demo && seed === 0) return;
  const { loadDemo, loadSynthetic } = await import("./demo/demo.ts");
  try {
    if (demo) await loadDemo(outputs);
    if (seed > 0) await loadSynthetic(outputs, seed);
    onStep?.("loaded the demo data");
  } catch (error) {
    throw new LocalError(`the demo data cannot be loaded: ${messageOf(error)}`, { cause: error });
  }
}
