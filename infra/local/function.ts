/**
 * Runs a Lambda function on this machine in several environments (worker threads). An environment starts when an invocation needs it, and
 * ends after it was idle for some time.
 */
import { randomUUID } from "node:crypto";
import { totalmem } from "node:os";
import path from "node:path";
import { messageOf } from "../command/error.ts";
import { Environment, InvocationError, type ResponseSink, type Thread, type ThreadOptions } from "./environment.ts";
import { functionArn, REGION } from "./names.ts";
import type { FunctionSpec } from "./stack.ts";

/** Lambda's maximum size of a request and of a response that is not streamed. */
const PAYLOAD_LIMIT_BYTES = 6 * 1024 * 1024;
/** Lambda's time limit for loading the code of a function. */
const INIT_TIMEOUT_MS = 10_000;
/** Lambda's maximum size of a streamed response. */
const STREAM_LIMIT_BYTES = 200 * 1024 * 1024;

export interface LocalFunction {
  readonly spec: FunctionSpec;
  readonly calls: () => number;
  invoke(event: unknown, options?: InvokeOptions): Promise<string>;
  stop(): Promise<void>;
}

export interface InvokeOptions {
  readonly requestId?: string;
  /** Receives a streamed response. It is undefined if the caller expects the whole response as the result of `invoke`. */
  readonly sink?: ResponseSink;
  /** The company, or another client, whose slow readers must not hold all environments. */
  readonly holder?: string;
}

export interface FunctionHost {
  /** Environment variables that all functions get in addition to their own: credentials, and the addresses of the local servers. */
  readonly variables: Readonly<Record<string, string>>;
  readonly worker: string;
  readonly startThread?: ((options: ThreadOptions) => Thread) | undefined;
  readonly compileCache: string | null;
  readonly warm: WarmEnvironments;
  readonly log: (spec: FunctionSpec, line: string) => void;
  readonly onInvoked: (failed: boolean) => void;
  /** Lambda's limit by default. Tests set a shorter limit. */
  readonly initTimeoutMs?: number;
  /** Maximum number of environments of a function that serves requests. */
  readonly requestEnvironments?: number | undefined;
}

export function createFunction(spec: FunctionSpec, maxEnvironments: number, host: FunctionHost): LocalFunction {
  const max = Math.min(maxEnvironments, spec.ReservedConcurrentExecutions ?? maxEnvironments);
  const pool = new Pool(spec, max, host);
  const turnOf = createTurns(Math.max(1, max - 1));
  const timeoutMs = spec.Timeout * 1000;
  let calls = 0;
  const write = (line: string): void => host.log(spec, line);
  return {
    spec,
    calls: () => calls,
    stop: () => pool.stop(),
    async invoke(event, { requestId = randomUUID(), sink, holder } = {}) {
      calls++;
      const text = JSON.stringify(event);
      if (Buffer.byteLength(text) > PAYLOAD_LIMIT_BYTES) throw tooLarge("RequestTooLargeException", "request");
      const endTurn = sink === undefined || holder === undefined ? undefined : await turnOf(holder);
      const environment = await pool.take().catch((error: unknown) => {
        endTurn?.();
        throw error;
      });
      const started = Date.now();
      const report = (end: InvocationEnd): void =>
        writeReport(spec, { requestId, durationMs: Date.now() - started, ...end }, write);
      let failed = true;
      writeStart(requestId, write);
      try {
        const deadline = started + timeoutMs;
        const call = { type: "invoke", event: text, requestId, deadline, streamed: sink !== undefined } as const;
        const answer = await environment.invoke(call, timeoutMs, sink && limited(sink));
        if (Buffer.byteLength(answer) > PAYLOAD_LIMIT_BYTES)
          throw tooLarge("Function.ResponseSizeTooLarge", "response");
        failed = false;
        report({ status: "success" });
        return answer;
      } catch (error) {
        report(endOf(error));
        throw error;
      } finally {
        pool.giveBack(environment);
        endTurn?.();
        host.onInvoked(failed);
      }
    },
  };
}

/**
 * Returns a sink whose `chunk` fails when the response exceeds Lambda's size limit. The connection to the client then breaks, so the client
 * sees that the response is incomplete.
 */
function limited(sink: ResponseSink): ResponseSink {
  let bytes = 0;
  return {
    head: (metadata) => sink.head(metadata),
    chunk: async (data) => {
      bytes += data.length;
      if (bytes > STREAM_LIMIT_BYTES) throw new Error(`the response is larger than ${STREAM_LIMIT_BYTES} bytes`);
      await sink.chunk(data);
    },
  };
}

/**
 * Lets each holder have at most `most` turns at a time. Lambda has hundreds of environments for a function, but this machine has few, and a
 * reader that takes no bytes keeps one for seconds. Resolves with the function that ends the turn.
 */
function createTurns(most: number): (holder: string) => Promise<() => void> {
  const held = new Map<string, number>();
  const waiting = new Map<string, (() => void)[]>();
  return async (holder) => {
    const count = held.get(holder) ?? 0;
    if (count < most) held.set(holder, count + 1);
    else await new Promise<void>((resolve) => waiting.set(holder, [...(waiting.get(holder) ?? []), resolve]));
    return () => {
      // A turn passes to the next one that waits.
      const [next, ...others] = waiting.get(holder) ?? [];
      if (others.length > 0) waiting.set(holder, others);
      else waiting.delete(holder);
      if (next !== undefined) next();
      else held.set(holder, (held.get(holder) ?? 1) - 1);
    };
  };
}

const tooLarge = (errorType: string, what: string): InvocationError =>
  new InvocationError({ errorType, errorMessage: `the ${what} is larger than ${PAYLOAD_LIMIT_BYTES} bytes` });

const stopping = (): InvocationError =>
  new InvocationError({ errorType: "ServiceException", errorMessage: "the service is stopping" });

interface Waiting {
  resolve(environment: Environment): void;
  reject(error: unknown): void;
}

/** The environments of one function. Waiting invocations get free environments in the order of their arrival. */
class Pool {
  readonly #spec: FunctionSpec;
  readonly #max: number;
  readonly #host: FunctionHost;
  readonly #all = new Set<Environment>();
  readonly #idle: Environment[] = [];
  readonly #waiting: Waiting[] = [];
  #starting = 0;
  #stopped = false;

  constructor(spec: FunctionSpec, max: number, host: FunctionHost) {
    this.#spec = spec;
    this.#max = max;
    this.#host = host;
  }

  take(): Promise<Environment> {
    if (this.#stopped) return Promise.reject(stopping());
    // Take the environment that became idle last. The environments that have been idle for longer then stay idle until they are ended.
    for (let environment = this.#idle.pop(); environment !== undefined; environment = this.#idle.pop()) {
      this.#host.warm.remove(environment);
      if (environment.alive) return Promise.resolve(environment);
      this.#all.delete(environment);
    }
    const { promise, resolve, reject } = Promise.withResolvers<Environment>();
    this.#waiting.push({ resolve, reject });
    this.#startIfNeeded();
    return promise;
  }

  giveBack(environment: Environment): void {
    if (!environment.alive) {
      this.#all.delete(environment);
      this.#startIfNeeded();
      return;
    }
    const next = this.#waiting.shift();
    if (next !== undefined) {
      next.resolve(environment);
      return;
    }
    this.#idle.push(environment);
    this.#host.warm.add(environment, () => this.#reap(environment));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#idle.length = 0;
    for (const { reject } of this.#waiting.splice(0)) reject(stopping());
    await Promise.all([...this.#all].map((environment) => environment.end()));
  }

  /**
   * Starts an environment if more invocations wait than environments are starting. If the environment does not load the code within the
   * limit, a second environment is started. It may take as long as the function's time-out. Lambda does the same. Without the second try,
   * requests would get 502 when a busy machine starts many environments at once.
   */
  #startIfNeeded(isSecondTry = false): void {
    if (this.#waiting.length <= this.#starting || this.#all.size >= this.#max) return;
    const environment = this.#start(
      isSecondTry ? this.#spec.Timeout * 1000 : (this.#host.initTimeoutMs ?? INIT_TIMEOUT_MS),
    );
    this.#starting++;
    environment.ready.then(
      () => {
        this.#starting--;
        this.giveBack(environment);
      },
      (error: unknown) => {
        this.#starting--;
        this.#all.delete(environment);
        if (!isSecondTry) return this.#startIfNeeded(true);
        this.#waiting.shift()?.reject(error);
        this.#startIfNeeded();
      },
    );
  }

  #start(initMs: number): Environment {
    const { name, file, directory, MemorySize, LoggingConfig, Environment: own } = this.#spec;
    const onLine = (line: string): void => this.#host.log(this.#spec, line);
    const environment = new Environment({
      file,
      worker: this.#host.worker,
      startThread: this.#host.startThread,
      initMs,
      data: {
        bundle: path.join(directory, "index.mjs"),
        functionName: name,
        functionArn: functionArn(name),
        memoryMb: MemorySize,
        compileCache: this.#host.compileCache,
        logLevel: LoggingConfig.ApplicationLogLevel,
      },
      variables: {
        ...this.#host.variables,
        // The access key is the function's name. The checks in rights.ts find the IAM policies of the calling function by this name.
        AWS_ACCESS_KEY_ID: name,
        ...lambdaVariables(this.#spec),
        ...own?.Variables,
      },
      onLine,
      onOutput: (text) => text.split("\n").filter(Boolean).forEach(onLine),
    });
    this.#all.add(environment);
    return environment;
  }

  #reap(environment: Environment): void {
    this.#idle.splice(this.#idle.indexOf(environment), 1);
    this.#all.delete(environment);
    void environment.end();
  }
}

const lambdaVariables = ({ name, MemorySize, LoggingConfig }: FunctionSpec): Record<string, string> => ({
  AWS_REGION: REGION,
  AWS_DEFAULT_REGION: REGION,
  AWS_LAMBDA_FUNCTION_NAME: name,
  AWS_LAMBDA_FUNCTION_VERSION: "$LATEST",
  AWS_LAMBDA_FUNCTION_MEMORY_SIZE: String(MemorySize),
  AWS_LAMBDA_LOG_FORMAT: LoggingConfig.LogFormat,
  AWS_LAMBDA_LOG_LEVEL: LoggingConfig.ApplicationLogLevel,
  TZ: ":UTC",
});

/** Limits how long environments stay idle after an invocation, and how many may be idle. */
export interface Warmth {
  readonly idleMs: number;
  /** The share of this machine's memory that all idle environments together may use, from 0 to 1. */
  readonly memoryShare: number;
  /** The maximum number of idle environments, even if `memoryShare` allows more. But 24 may always be idle, even if the memory is small. */
  readonly most: number;
}

/**
 * Lambda keeps idle environments for longer than two minutes. A developer's machine has less memory, so idle environments end earlier here.
 */
const STANDARD_WARMTH: Warmth = { idleMs: 2 * 60_000, memoryShare: 1 / 8, most: 96 };
const TYPICAL_BYTES = 30_000_000;
const CHECK_MS = 10_000;

/** Returns the maximum number of idle environments of all functions together. */
const maxIdle = ({ memoryShare, most }: Warmth): number =>
  Math.max(24, Math.min(most, Math.floor((totalmem() * memoryShare) / TYPICAL_BYTES)));

interface Idle {
  readonly since: number;
  readonly reap: () => void;
}

/**
 * The idle environments of all functions. An environment is ended after it has been idle for `idleMs`. If there are more than `#max`, the
 * environment that has been idle for the longest time is ended.
 */
export class WarmEnvironments {
  readonly #idle = new Map<Environment, Idle>();
  readonly #timer: NodeJS.Timeout;
  readonly #max: number;

  constructor(warmth: Warmth = STANDARD_WARMTH) {
    this.#max = maxIdle(warmth);
    this.#timer = setInterval(() => this.#reap(Date.now() - warmth.idleMs), CHECK_MS).unref();
  }

  /** @param reap ends the environment. It is called after the environment has been removed from the idle environments. */
  add(environment: Environment, reap: () => void): void {
    this.#idle.set(environment, { since: Date.now(), reap });
    if (this.#idle.size > this.#max) this.#reapFirst();
  }

  remove(environment: Environment): void {
    this.#idle.delete(environment);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#idle.clear();
  }

  #reap(idleSince: number): void {
    for (const { since } of this.#idle.values()) {
      if (since > idleSince) return;
      this.#reapFirst();
    }
  }

  #reapFirst(): void {
    const [first] = this.#idle;
    if (first === undefined) return;
    this.#idle.delete(first[0]);
    first[1].reap();
  }
}

/**
 * The result of an invocation. `error` means that the handler threw an error. `failure` means that the runtime failed, for example by a
 * crash.
 */
interface InvocationEnd {
  readonly status: "success" | "failure" | "error" | "timeout";
  readonly errorType?: string;
  /** The message of the error that ended the invocation. Lambda's own log lines do not have this field. */
  readonly reason?: string;
}

function endOf(error: unknown): InvocationEnd {
  if (!(error instanceof InvocationError)) return { status: "failure", reason: messageOf(error) };
  const { type: errorType, message: reason } = error;
  if (errorType === "Sandbox.Timedout") return { status: "timeout", errorType, reason };
  return { status: errorType.startsWith("Runtime.") ? "failure" : "error", errorType, reason };
}

type Write = (line: string) => void;

function writeStart(requestId: string, write: Write): void {
  system("platform.start", { requestId, version: "$LATEST" }, write);
}

interface Report extends InvocationEnd {
  readonly requestId: string;
  readonly durationMs: number;
}

function writeReport(spec: FunctionSpec, { durationMs, ...report }: Report, write: Write): void {
  const metrics = { durationMs, billedDurationMs: durationMs, memorySizeMB: spec.MemorySize };
  system("platform.report", { ...report, metrics }, write);
}

/**
 * Writes one of Lambda's system log lines. It ignores the function's system log level, so that developers see each invocation. A deployment
 * writes only the lines of failed invocations.
 */
function system(type: string, record: object, write: Write): void {
  write(JSON.stringify({ time: new Date().toISOString(), type, record }));
}
