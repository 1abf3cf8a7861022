/**
 * One execution environment of a function. It is a worker thread with separate environment variables, runs one invocation at a time, and
 * has a time limit.
 */
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { build } from "esbuild";
import type { LogLevel } from "./console.ts";
import { messageOf } from "./error.ts";

export interface Invocation {
  readonly type: "invoke";
  /** The event as JSON text. */
  readonly event: string;
  readonly requestId: string;
  /** The deadline in milliseconds since the epoch. */
  readonly deadline: number;
  /** Whether the caller asked for a response stream. */
  readonly streamed: boolean;
}

/** A message to the worker. `pull` means that the host has room for another chunk. */
export type ToWorker = Invocation | { readonly type: "pull" };

interface FunctionFailure {
  readonly errorType: string;
  readonly errorMessage: string;
}

export type FromWorker =
  | { readonly type: "ready" }
  | { readonly type: "done"; readonly payload: string }
  | { readonly type: "failed"; readonly failure: FunctionFailure }
  /** The status and the headers of a streamed response as JSON text. */
  | { readonly type: "head"; readonly metadata: string }
  | { readonly type: "chunk"; readonly data: Uint8Array }
  | { readonly type: "end" }
  /** A line of console output, in the form that Lambda would send to the log group. */
  | { readonly type: "log"; readonly line: string };

/** The data of a new environment, in addition to the environment variables. */
export interface WorkerData {
  readonly bundle: string;
  readonly functionName: string;
  readonly functionArn: string;
  readonly memoryMb: number;
  readonly compileCache: string | null;
  readonly logLevel: LogLevel;
}

/** The error of an invocation that returned no answer. `type` is Lambda's name of the error. */
export class InvocationError extends Error {
  readonly type: string;

  constructor(failure: FunctionFailure) {
    super(failure.errorMessage);
    this.name = "InvocationError";
    this.type = failure.errorType;
  }
}

/** Receives a streamed response. `chunk` resolves when there is room for the next chunk. */
export interface ResponseSink {
  head(metadata: string): void;
  chunk(data: Uint8Array): Promise<void>;
}

export interface EnvironmentOptions {
  /** The path of the file that `writeWorker` wrote. */
  readonly worker: string;
  readonly data: WorkerData;
  readonly variables: Readonly<Record<string, string>>;
  /** Called with each line of the function's console. */
  readonly onLine: (line: string) => void;
  /** Called with output that does not come from the console, for example the output of a crash. */
  readonly onOutput: (text: string) => void;
}

/** Lambda allows the code of a function this much time to load. */
const INIT_TIMEOUT_MS = 10_000;

/** The size of V8's memory for short-lived objects. With the default size, each environment would keep some 50 MB of such objects. */
const YOUNG_GENERATION_MB = 16;

/**
 * Writes `worker.ts` as one JavaScript file. Otherwise each environment would have to strip its types, which takes a quarter of a start.
 */
export async function writeWorker(file: string): Promise<void> {
  const entry = fileURLToPath(new URL("./worker.ts", import.meta.url));
  await build({ entryPoints: [entry], outfile: file, bundle: true, platform: "node", format: "esm" });
}

interface Running {
  readonly sink: ResponseSink | undefined;
  settle(payload: string): void;
  fail(error: InvocationError): void;
}

export class Environment {
  readonly ready: Promise<void>;
  alive = true;
  readonly #worker: Worker;
  readonly #onLine: (line: string) => void;
  #running: Running | undefined;

  constructor({ worker, data, variables, onLine, onOutput }: EnvironmentOptions) {
    this.#onLine = onLine;
    this.#worker = new Worker(worker, {
      env: { ...variables },
      workerData: data,
      stdout: true,
      stderr: true,
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: data.memoryMb, maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
    });
    this.#worker.stdout.setEncoding("utf8").on("data", onOutput);
    this.#worker.stderr.setEncoding("utf8").on("data", onOutput);
    this.ready = this.#run(undefined, Date.now() + INIT_TIMEOUT_MS, INIT_TIMEOUT_MS).then(() => undefined);
    this.#worker.on("message", (message: FromWorker) => this.#onMessage(message));
    this.#worker.on("error", (error) => this.#die("Runtime.ExitError", messageOf(error)));
    this.#worker.on("exit", () => this.#die("Runtime.ExitError", "the function's runtime ended before it answered"));
  }

  /** Returns the answer as JSON text. A streamed answer goes to `sink`, and the text is empty. Throws InvocationError. */
  invoke(invocation: Invocation, timeoutMs: number, sink?: ResponseSink): Promise<string> {
    const answer = this.#run(sink, invocation.deadline, timeoutMs);
    this.#send(invocation);
    return answer;
  }

  async end(): Promise<void> {
    this.#die("Runtime.ExitError", "the service is stopping");
    await this.#worker.terminate();
  }

  #send(message: ToWorker): void {
    this.#worker.postMessage(message);
  }

  #run(sink: ResponseSink | undefined, deadline: number, timeoutMs: number): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const timer = setTimeout(
      () => this.#die("Sandbox.Timedout", `Task timed out after ${(timeoutMs / 1000).toFixed(2)} seconds`),
      deadline - Date.now(),
    );
    this.#running = { sink, settle: resolve, fail: reject };
    return promise.finally(() => clearTimeout(timer));
  }

  #onMessage(message: FromWorker): void {
    if (message.type === "log") {
      this.#onLine(message.line);
      return;
    }
    const running = this.#running;
    if (running === undefined) return;
    if (message.type === "head") running.sink?.head(message.metadata);
    else if (message.type === "chunk") {
      const passed = running.sink?.chunk(message.data) ?? Promise.resolve();
      passed.then(
        () => this.#send({ type: "pull" }),
        (error: unknown) => this.#die("Runtime.StreamClosed", messageOf(error)),
      );
    } else {
      this.#running = undefined;
      if (message.type === "failed") running.fail(new InvocationError(message.failure));
      else running.settle(message.type === "done" ? message.payload : "");
    }
  }

  /** Ends the environment. An environment that crashed, hangs or lost the client of its stream is not used again. */
  #die(errorType: string, errorMessage: string): void {
    this.alive = false;
    const running = this.#running;
    this.#running = undefined;
    running?.fail(new InvocationError({ errorType, errorMessage }));
    void this.#worker.terminate();
  }
}
