/** Starts the environments of a function, gives them to invocations, and ends those that are idle for too long. */
import path from "node:path";
import { LRUCache } from "lru-cache";
import { REGION } from "../servers/address.ts";
import { functionArn } from "../template/names.ts";
import type { FunctionSpec } from "../template/stack.ts";
import { Environment, InvocationError, type Thread, type ThreadOptions } from "./environment.ts";

/** Lambda's time limit for loading the code of a function. */
const INIT_TIMEOUT_MS = 10_000;

/** How long, and how many, environments stay idle: less than in Lambda, because a developer's machine has less memory (30 MB for each). */
const STANDARD_WARMTH = { idleMs: 2 * 60_000, most: 48 };

/** The idle environments of all functions, each with the function that ends it. Delete an environment when an invocation takes it. */
type WarmEnvironments = LRUCache<Environment, () => void>;

/** Ends an environment that is idle for `idleMs`. If more than `most` are idle, ends the one that is idle for the longest time. */
export const warmEnvironments = ({ idleMs, most } = STANDARD_WARMTH): WarmEnvironments =>
  new LRUCache({
    max: most,
    ttl: idleMs,
    ttlAutopurge: true,
    disposeAfter(end, _, reason) {
      if (reason !== "delete") end();
    },
  });

export interface FunctionHost {
  readonly variables: Readonly<Record<string, string>>;
  readonly worker: string;
  readonly startThread?: ((options: ThreadOptions) => Thread) | undefined;
  readonly refusal?: ThreadOptions["refusal"];
  readonly compileCache: string | null;
  readonly warm: WarmEnvironments;
  readonly log: (spec: FunctionSpec, line: string) => void;
  readonly onInvoked: (failed: boolean) => void;
  /** The time limit for loading the code of a function. By default, it is Lambda's. Tests set a shorter one. */
  readonly initTimeoutMs?: number;
}

const stopping = (): InvocationError =>
  new InvocationError({ errorType: "ServiceException", errorMessage: "the service is stopping" });

/** The environments of one function. Waiting invocations get free environments in the order of their arrival. */
export class Pool {
  readonly #spec: FunctionSpec;
  readonly #max: number;
  readonly #host: FunctionHost;
  readonly #all = new Set<Environment>();
  readonly #idle: Environment[] = [];
  readonly #waiting: PromiseWithResolvers<Environment>[] = [];
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
      this.#host.warm.delete(environment);
      if (environment.alive) return Promise.resolve(environment);
      this.#all.delete(environment);
    }
    const waiting = Promise.withResolvers<Environment>();
    this.#waiting.push(waiting);
    this.#startIfNeeded();
    return waiting.promise;
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
    this.#host.warm.set(environment, () => this.#reap(environment));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#idle.length = 0;
    for (const { reject } of this.#waiting.splice(0)) reject(stopping());
    await Promise.all([...this.#all].map((environment) => environment.end()));
  }

  /**
   * Starts an environment if more invocations wait than environments are starting. If an environment does not load the code in time, a
   * second one is started, whose time limit is the function's time-out, as in Lambda. Without the second try, requests would get 502 when a
   * busy machine starts many environments at once.
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
      refusal: this.#host.refusal,
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
        // The access key is the function's name, by which table-guard.ts and policies.ts find the function's IAM policies.
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
