/** Implements the execution environment of a function as a worker thread, which runs one invocation at a time with a time limit. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Worker } from "node:worker_threads";
import { messageOf } from "../../cli/command/error.ts";
import type { Refusal } from "../engines/table-guard.ts";
import type { LogLevel } from "../template/log-levels.ts";
import { logLine } from "./console.ts";

export interface Invocation {
  readonly type: "invoke";
  readonly event: string;
  readonly requestId: string;
  /** The time at which the invocation times out, in milliseconds since 1970. The handler computes its remaining time from it. */
  readonly deadline: number;
  readonly streamed: boolean;
}

/** `pull` requests the next chunk of a streamed response, and `break` says that no further chunk can be accepted. */
export type ToWorker =
  | Invocation
  | { readonly type: "pull" }
  | { readonly type: "break"; readonly reason: string }
  | { readonly type: "exit" };

interface FunctionFailure {
  readonly errorType: string;
  readonly errorMessage: string;
}

export type FromWorker =
  | { readonly type: "ready" }
  | { readonly type: "done"; readonly payload: string }
  | { readonly type: "failed"; readonly failure: FunctionFailure }
  | { readonly type: "head"; readonly metadata: string }
  | { readonly type: "chunk"; readonly data: Uint8Array }
  | { readonly type: "end" }
  | { readonly type: "log"; readonly line: string };

export interface WorkerData {
  readonly bundle: string;
  readonly functionName: string;
  readonly functionArn: string;
  readonly memoryMb: number;
  readonly compileCache: string | null;
  readonly logLevel: LogLevel;
}

/** The error of a failed invocation. `type` is Lambda's name of the error type, for example `Sandbox.Timedout`. */
export class InvocationError extends Error {
  readonly type: string;

  constructor(failure: FunctionFailure) {
    super(failure.errorMessage);
    this.name = "InvocationError";
    this.type = failure.errorType;
  }
}

/** The promise of `chunk` resolves when the client can accept the next chunk. So a function sends no faster than its client reads. */
export interface ResponseSink {
  head(metadata: string): void;
  chunk(data: Uint8Array): Promise<void>;
}

/** What an environment needs of its worker thread. Tests replace the thread with an object in their own process. */
export interface Thread {
  postMessage(message: ToWorker): void;
  on(event: "message", listener: (message: FromWorker) => void): unknown;
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "exit", listener: () => void): unknown;
  terminate(): Promise<unknown>;
}

export interface ThreadOptions {
  /** The function's file below `functions/`, without its extension. */
  readonly file: string;
  readonly worker: string;
  readonly data: WorkerData;
  readonly variables: Readonly<Record<string, string>>;
  /** Functions in the process of the service call it before each call of DynamoDB. Undefined if they may do everything. */
  readonly refusal?: Refusal | undefined;
  /** Receives output that the function did not write with `console`, for example the stack trace of a crash. */
  readonly onOutput: (text: string) => void;
}

interface EnvironmentOptions extends ThreadOptions {
  readonly startThread?: ((options: ThreadOptions) => Thread) | undefined;
  /** The time limit in milliseconds for loading the code of the function. */
  readonly initMs: number;
  readonly onLine: (line: string) => void;
}

/** The message of the log line of an error that the code of a function has not caught. */
export const UNCAUGHT = "Uncaught Exception";

/** The heap for new objects in an environment. With V8's default size, it would use about 50 MB. */
const YOUNG_GENERATION_MB = 16;

const run = promisify(execFile);
const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/**
 * Bundles `worker.ts`. Otherwise each environment would spend a quarter of its start time on removing the TypeScript types. esbuild runs as
 * a command, because its JavaScript API keeps a process until the service ends.
 */
export async function writeWorker(file: string): Promise<void> {
  const options = ["--bundle", "--platform=node", "--format=esm", "--log-level=warning", `--outfile=${file}`];
  await run(here("../../../node_modules/.bin/esbuild"), [here("./worker.ts"), ...options]);
}

/** Milliseconds within which the thread ends itself. Only a thread that computes without a pause for longer is ended by force. */
const EXIT_MS = 10_000;

class FunctionThread extends Worker {
  readonly #exited = new Promise<number>((resolve) => this.once("exit", resolve));

  /**
   * Lets the thread end itself between two tasks. If a thread is ended by force while it creates a zlib stream, Node.js aborts the whole
   * process (`close before init` in node_zlib.cc).
   */
  override async terminate(): Promise<number> {
    this.postMessage({ type: "exit" } satisfies ToWorker);
    const timer = setTimeout(() => void super.terminate(), EXIT_MS);
    const code = await this.#exited;
    clearTimeout(timer);
    return code;
  }
}

function startWorker({ worker, data, variables, onOutput }: ThreadOptions): Thread {
  const thread = new FunctionThread(worker, {
    env: { ...variables },
    workerData: data,
    stdout: true,
    stderr: true,
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: data.memoryMb, maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
  });
  thread.stdout.setEncoding("utf8").on("data", onOutput);
  thread.stderr.setEncoding("utf8").on("data", onOutput);
  return thread;
}

interface Running extends PromiseWithResolvers<string> {
  readonly sink: ResponseSink | undefined;
}

export class Environment {
  readonly ready: Promise<void>;
  alive = true;
  readonly #thread: Thread;
  readonly #onLine: (line: string) => void;
  #running: Running | undefined;

  constructor({ startThread = startWorker, initMs, onLine, ...options }: EnvironmentOptions) {
    this.#onLine = onLine;
    this.#thread = startThread(options);
    this.ready = this.#run(undefined, Date.now() + initMs, initMs).then(() => undefined);
    this.#thread.on("message", (message: FromWorker) => this.#onMessage(message));
    this.#thread.on("error", (error) => {
      // A crash between two invocations makes no invocation fail, so this line is its only trace.
      onLine(logLine("ERROR", undefined, [UNCAUGHT, error]));
      this.#die("Runtime.ExitError", messageOf(error));
    });
    this.#thread.on("exit", () => this.#die("Runtime.ExitError", "the function's runtime ended before it answered"));
  }

  /** Invokes the function. A streamed response goes to `sink`, and the returned JSON is then empty. Rejects with an InvocationError. */
  invoke(invocation: Invocation, timeoutMs: number, sink?: ResponseSink): Promise<string> {
    const answer = this.#run(sink, invocation.deadline, timeoutMs);
    this.#send(invocation);
    return answer;
  }

  async end(): Promise<void> {
    this.#die("Runtime.ExitError", "the service is stopping");
    await this.#thread.terminate();
  }

  #send(message: ToWorker): void {
    this.#thread.postMessage(message);
  }

  #run(sink: ResponseSink | undefined, deadline: number, timeoutMs: number): Promise<string> {
    const running = { sink, ...Promise.withResolvers<string>() };
    const timer = setTimeout(
      () => this.#die("Sandbox.Timedout", `Task timed out after ${(timeoutMs / 1000).toFixed(2)} seconds`),
      deadline - Date.now(),
    );
    this.#running = running;
    return running.promise.finally(() => clearTimeout(timer));
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
      // Send nothing if this invocation has ended meanwhile, because the thread may already run another one.
      const send = (answer: ToWorker): void => {
        if (this.#running === running) this.#send(answer);
      };
      passed.then(
        () => send({ type: "pull" }),
        (error: unknown) => send({ type: "break", reason: messageOf(error) }),
      );
    } else {
      this.#running = undefined;
      if (message.type === "failed") running.reject(new InvocationError(message.failure));
      else running.resolve(message.type === "done" ? message.payload : "");
    }
  }

  /** Ends the environment after a crash or a time-out, because its state is unknown. The next invocation gets another environment. */
  #die(errorType: string, errorMessage: string): void {
    this.alive = false;
    const running = this.#running;
    this.#running = undefined;
    running?.reject(new InvocationError({ errorType, errorMessage }));
    void this.#thread.terminate();
  }
}
