/**
 * Runs the whole service from the synthesized CloudFormation templates. The API and the console share one HTTP port. Only the DynamoDB
 * server is a separate process.
 */
import { setTimeout as wait } from "node:timers/promises";
import { bothEnded } from "#shared/all-ended.ts";
import { openTable } from "#shared/db/table.ts";
import { messageOf } from "../command/error.ts";
import { documentsAt } from "./clients.ts";
import { CONTROL_PREFIX, describeStack, ISSUER_PATH, type Outputs, serveControl } from "./control.ts";
import { type DataDir, openDataDir, openLog, temporaryDir } from "./data-dir.ts";
import { demoUsers } from "./demo-users.ts";
import { connectDynamoDb, ensureStream, serverBinary } from "./dynamodb.ts";
import { createEdge, type Edge } from "./edge.ts";
import { writeWorker } from "./environment.ts";
import { LocalError } from "./error.ts";
import type { RunningSource } from "./event-source.ts";
import { type LocalFunction, WarmEnvironments } from "./function.ts";
import { createGateway } from "./gateway.ts";
import { createFunctions, startSources } from "./host.ts";
import { AUDIENCE, type Claims, createIdentity, type Identity, type SigningKey, subjectOf } from "./identity.ts";
import { bind, type Listener } from "./listener.ts";
import { type LocalOptions, makeTemplates } from "./options.ts";
import { fileRights, guardRights, type RightsGuard, type Uses } from "./rights.ts";
import { createStorage, depths, type StartedServers, serveKeys, startServers } from "./servers.ts";
import { createSignIn } from "./sign-in.ts";
import type { Depth } from "./sqs.ts";
import { readStack, type Stack } from "./stack.ts";
import { openPositions } from "./stream-source.ts";

export interface LocalService {
  readonly url: string;
  readonly outputs: Outputs;
  /** The private key of the token issuer as JWK (JSON Web Key). Tests use it to forge tokens. */
  readonly signingKey: SigningKey;
  /** Resolves with the reason if the DynamoDB server ends unexpectedly. The service then no longer works. */
  readonly failed: Promise<string>;
  failures(): number;
  /** The number of invocations of each function since the start. The keys are the functions' source files. */
  invocations(): Readonly<Record<string, number>>;
  flushAuthorizers(): void;
  mint(claims: Claims, options?: { expiresInSeconds?: number }): Promise<string>;
  tokenOf(email: string): Promise<string | undefined>;
  /** @param file the function's file below `functions/`, without its extension */
  invoke(file: string, event: unknown): Promise<unknown>;
  queues(): Promise<Readonly<Record<string, Depth>>>;
  /**
   * The DynamoDB calls that the functions' policies refused, as one line for each call. The list is empty if the option `enforceRights` is
   * off.
   */
  readonly refusals: readonly string[];
  /**
   * The DynamoDB actions that each function has executed since the start. The result is empty if the option `enforceRights` is off. See
   * `RightsGuard.uses` for the format.
   */
  uses(): Uses;
  stop(): Promise<void>;
}

/** Starts the service. If the start fails, it stops everything that it has already started, and throws the error. */
export async function startLocal(options: LocalOptions): Promise<LocalService> {
  const undo: (() => unknown)[] = [];
  const stop = async (): Promise<void> => {
    for (const step of undo.splice(0).reverse()) await step();
  };
  try {
    return await start(options, undo, stop);
  } catch (error) {
    await stop();
    throw error;
  }
}

type Undo = (() => unknown)[];

/** When the service stops, running invocations of event sources get this many milliseconds to finish. */
const DRAIN_MS = 3_000;

async function start(options: LocalOptions, undo: Undo, stop: () => Promise<void>): Promise<LocalService> {
  // Check the DynamoDB server first. Otherwise a user would see that it is missing only after the functions are built, which takes seconds.
  if (options.dynamoDbEndpoint === undefined) serverBinary();
  else await connectDynamoDb(options.dynamoDbEndpoint);
  const listener = await bind(options.port, options.host ?? "127.0.0.1");
  undo.push(() => listener.stop());
  const { dataDir, fresh = false } = options;
  const dir = dataDir === undefined ? temporaryDir() : await openDataDir(dataDir, fresh);
  undo.push(() => dir.release());
  options.onClaimed?.();
  const identity = await createIdentity(`${listener.url}${ISSUER_PATH}`, dir.signingKey);
  // `bothEnded` waits for both promises even if one of them fails, so that `undo` also stops the servers that start meanwhile.
  const build = bothEnded(makeTemplates(options, identity, listener.url, dir.assembly), writeWorker(dir.worker));
  const [servers, [templates]] = await bothEnded(startServers(options, dir, undo), build);
  const stack = readStack(templates, servers.queues.endpoint, dir.assembly);
  serveKeys(stack, servers, templates);
  const isNew = await createStorage(stack, servers, options);
  const outputs = describeStack(stack, {
    ...servers,
    kmsEndpoint: servers.kms.endpoint,
    apiUrl: listener.url,
    issuer: identity.issuer,
    audience: AUDIENCE,
  });
  await loadData(outputs, isNew, options);
  for (const table of stack.tables) await ensureStream(servers.dynamoDb, table);
  const guard =
    options.enforceRights === true
      ? await guardRights(servers.dynamoDbEndpoint, templates, stack.functions)
      : undefined;
  if (guard !== undefined) servers.files.enforce(fileRights(templates, stack.functions));
  undo.push(() => guard?.stop());
  return run({ options, undo, stop, listener, dir, identity, servers, stack, outputs, isNew, guard });
}

interface Parts {
  readonly options: LocalOptions;
  readonly undo: Undo;
  readonly stop: () => Promise<void>;
  readonly listener: Listener;
  readonly dir: DataDir;
  readonly identity: Identity;
  readonly servers: StartedServers;
  readonly stack: Stack;
  readonly outputs: Outputs;
  readonly isNew: boolean;
  readonly guard: RightsGuard | undefined;
}

async function run(parts: Parts): Promise<LocalService> {
  const { options, undo, listener, dir, identity, servers, stack, outputs, guard } = parts;
  const log = openLog(dir.log, options.verbose === true);
  undo.push(() => log.close());
  const running: RunningSource[] = [];
  const warm = new WarmEnvironments(options.warmth);
  let failures = 0;
  const functions = createFunctions(stack, {
    variables: { ...servers.variables, ...(guard !== undefined && { AWS_ENDPOINT_URL_DYNAMODB: guard.endpoint }) },
    worker: dir.worker,
    startThread: options.startThread,
    compileCache: dir.compileCache,
    requestEnvironments: options.requestEnvironments,
    warm,
    log({ name, file, LoggingConfig }, text) {
      options.onLogLine?.({ file, group: LoggingConfig.LogGroup ?? `/aws/lambda/${name}`, text });
      // All functions write to one log file. The function's source file at the beginning of each line shows which function wrote it.
      log.write(`${file} ${text}\n`);
    },
    onInvoked(failed) {
      if (failed) failures++;
      for (const source of running) source.kick();
    },
  });
  undo.push(() => Promise.all([...functions.values()].map((one) => one.stop())));
  undo.push(() => warm.stop());
  const findSubject = subjects(parts);
  const directory = { tokenOf: tokens(parts, findSubject), queues: () => depths(stack, servers) };
  const redirectUri = `${listener.url}/api/session/callback`;
  const signIn = createSignIn({ identity, redirectUri, users: demoUsers, subjectOf: findSubject });
  const edge = createEdge(stack, new URL(servers.files.endpoint).origin, identity.issuer, options.basemap);
  const gateway = createGateway(stack, functions, edge?.apiRequest);
  const { flushAuthorizers } = gateway;
  const invocations = (): Record<string, number> =>
    Object.fromEntries([...functions.values()].map(({ spec, calls }) => [spec.file, calls()]));
  serve(listener, gateway, edge, {
    identity,
    signIn,
    outputs: () => outputs,
    invocations,
    flushAuthorizers,
    ...directory,
  });
  const positions = openPositions(dir.positions, parts.isNew);
  running.push(...(await startSources(stack, functions, servers, positions, log.write)));
  undo.push(() => stopSources(running));
  undo.push(() => listener.stop());
  undo.push(() => dir.markEnding());
  dir.markComplete();
  return {
    ...directory,
    url: listener.url,
    outputs,
    signingKey: identity.signingKey,
    failed: servers.failed,
    failures: () => failures,
    invocations,
    flushAuthorizers,
    refusals: guard?.refusals ?? [],
    uses: () => guard?.uses() ?? {},
    mint: identity.mint,
    invoke: async (file, event) => JSON.parse(await functionOf(functions, file).invoke(event)),
    stop: parts.stop,
  };
}

/**
 * Stops the event sources, and waits at most `DRAIN_MS` for running invocations. Unfinished invocations are repeated after a restart,
 * because their messages and records are still in the queues and streams.
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

type FindSubject = (email: string) => Promise<string | undefined>;

function subjects({ outputs }: Parts): FindSubject {
  const table = openTable(outputs.TableName, documentsAt(outputs.DynamoDbEndpoint));
  return (email) => subjectOf(table, email);
}

function tokens({ identity }: Parts, findSubject: FindSubject): LocalService["tokenOf"] {
  return async (email) => {
    const sub = await findSubject(email);
    return sub === undefined ? undefined : identity.mint({ sub });
  };
}

type ServeControl = Parameters<typeof serveControl>[0];

function serve(
  listener: Listener,
  gateway: ReturnType<typeof createGateway>,
  edge: Edge | undefined,
  control: ServeControl,
): void {
  listener.server.on("clientError", (error, socket) => gateway.refuse(error, socket));
  listener.serve((request, response) => {
    if (request.url?.startsWith(CONTROL_PREFIX) === true) void serveControl(control, request, response);
    else if (edge?.isForConsole(request)) void edge.serve(request, response);
    else void gateway.handle(request, response);
  });
}

async function loadData(outputs: Outputs, isNew: boolean, options: LocalOptions): Promise<void> {
  const { seed = 0, onStep } = options;
  const demo = options.demo === true && isNew;
  if (!demo && seed === 0) return;
  const { loadDemo, loadSynthetic } = await import("./demo.ts");
  try {
    if (demo) await loadDemo(outputs);
    if (seed > 0) await loadSynthetic(outputs, seed);
    onStep?.("loaded the demo data");
  } catch (error) {
    throw new LocalError(`the demo data cannot be loaded: ${messageOf(error)}`, { cause: error });
  }
}
