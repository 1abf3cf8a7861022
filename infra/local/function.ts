/** A Lambda function on this machine: environments that are started on demand, kept warm for a while and reaped. */
import { randomUUID } from "node:crypto";
import path from "node:path";
import { Environment, InvocationError, type ResponseSink } from "./environment.ts";
import { endOf, type InvocationEnd, writeReport, writeStart } from "./invocation-log.ts";
import { functionArn, REGION } from "./names.ts";
import type { FunctionSpec } from "./stack.ts";
import type { WarmEnvironments } from "./warm.ts";

/** Lambda's limit for a buffered request or response. */
const PAYLOAD_LIMIT_BYTES = 6 * 1024 * 1024;
/** And for a streamed response. */
const STREAM_LIMIT_BYTES = 200 * 1024 * 1024;

export interface LocalFunction {
  readonly spec: FunctionSpec;
  /** How often it was called so far. */
  readonly calls: () => number;
  /** The JSON text of the answer. Throws InvocationError. */
  invoke(event: unknown, options?: InvokeOptions): Promise<string>;
  stop(): Promise<void>;
}

export interface InvokeOptions {
  readonly requestId?: string;
  /** Asks for a streamed response. */
  readonly sink?: ResponseSink;
}

export interface FunctionHost {
  /** Variables of every function beside its own: region, credentials and endpoints of the local servers. */
  readonly variables: Readonly<Record<string, string>>;
  /** What `writeWorker` made. */
  readonly worker: string;
  readonly compileCache: string | null;
  readonly warm: WarmEnvironments;
  /** A line for the log group of a function. */
  readonly log: (spec: FunctionSpec, line: string) => void;
  /** After every invocation, however it ended. */
  readonly onInvoked: (failed: boolean) => void;
}

export function createFunction(spec: FunctionSpec, maxEnvironments: number, host: FunctionHost): LocalFunction {
  const pool = new Pool(spec, Math.min(maxEnvironments, spec.ReservedConcurrentExecutions ?? maxEnvironments), host);
  const timeoutMs = spec.Timeout * 1000;
  let calls = 0;
  const write = (line: string): void => host.log(spec, line);
  return {
    spec,
    calls: () => calls,
    stop: () => pool.stop(),
    async invoke(event, { requestId = randomUUID(), sink } = {}) {
      calls++;
      const text = JSON.stringify(event);
      if (Buffer.byteLength(text) > PAYLOAD_LIMIT_BYTES) throw tooLarge("RequestTooLargeException", "request");
      const environment = await pool.take();
      const started = Date.now();
      const report = (end: InvocationEnd): void =>
        writeReport(spec, { requestId, durationMs: Date.now() - started, ...end }, write);
      let failed = true;
      writeStart(spec, requestId, write);
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
        host.onInvoked(failed);
      }
    },
  };
}

/** What comes after the limit breaks the response off, so that nothing short looks whole. */
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

const tooLarge = (errorType: string, what: string): InvocationError =>
  new InvocationError({ errorType, errorMessage: `the ${what} is larger than ${PAYLOAD_LIMIT_BYTES} bytes` });

const stopping = (): InvocationError =>
  new InvocationError({ errorType: "ServiceException", errorMessage: "the service is stopping" });

interface Waiting {
  resolve(environment: Environment): void;
  reject(error: unknown): void;
}

/** Who waits gets the first environment that is free, whether it was busy or is new. */
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
    // The one that was busy last: the others may then become idle enough to be reaped.
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

  #startIfNeeded(): void {
    if (this.#waiting.length <= this.#starting || this.#all.size >= this.#max) return;
    const environment = this.#start();
    this.#starting++;
    environment.ready.then(
      () => {
        this.#starting--;
        this.giveBack(environment);
      },
      (error: unknown) => {
        this.#starting--;
        this.#all.delete(environment);
        this.#waiting.shift()?.reject(error);
        this.#startIfNeeded();
      },
    );
  }

  #start(): Environment {
    const { name, directory, MemorySize, LoggingConfig, Environment: own } = this.#spec;
    const onLine = (line: string): void => this.#host.log(this.#spec, line);
    const environment = new Environment({
      worker: this.#host.worker,
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
        // Credentials of its own, as on Lambda: whoever checks rights knows the function by them.
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
