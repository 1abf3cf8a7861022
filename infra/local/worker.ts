/**
 * Runs inside the worker thread of a function, and does the work of Lambda's runtime. It loads the function's bundle once, and then handles
 * one invocation after the other.
 */
import module from "node:module";
import { Writable } from "node:stream";
import { pathToFileURL } from "node:url";
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { replaceConsole } from "./console.ts";
import type { FromWorker, Invocation, ToWorker, WorkerData } from "./environment.ts";

type Handler = (event: unknown, context: object) => unknown;
type StreamHandler = (event: unknown, stream: ResponseStream, context: object) => unknown;

const streaming = new WeakMap<Handler, StreamHandler>();

const isHandler = (value: unknown): value is Handler => typeof value === "function";

/**
 * The data that environment.ts passes to this thread. It is not validated, because loading a schema library would double the start time of
 * the thread.
 */
const data: WorkerData = workerData;

/**
 * The body of a streamed response. It sends the next chunk only when the client can accept it. So a function sends no faster than its
 * client reads.
 */
class ResponseStream extends Writable {
  #metadata: string | undefined;
  #pulled: (() => void) | undefined;
  readonly #send: (message: FromWorker) => void;

  constructor(send: (message: FromWorker) => void) {
    super();
    this.#send = send;
  }

  describe(metadata: unknown): void {
    this.#metadata = JSON.stringify(metadata);
  }

  pull(): void {
    const pulled = this.#pulled;
    this.#pulled = undefined;
    pulled?.();
  }

  setContentType(type: string): void {
    this.describe({ statusCode: 200, headers: { "Content-Type": type } });
  }

  override _write(chunk: unknown, _encoding: BufferEncoding, done: () => void): void {
    this.#sendHead();
    this.#pulled = done;
    this.#send({ type: "chunk", data: chunk instanceof Uint8Array ? chunk : Buffer.from(String(chunk)) });
  }

  override _final(done: () => void): void {
    this.#sendHead();
    done();
  }

  #sendHead(): void {
    if (this.#metadata !== undefined) this.#send({ type: "head", metadata: this.#metadata });
    this.#metadata = undefined;
  }
}

/** The global object `awslambda` of Lambda's runtime. Functions mark streaming handlers with it. */
const awslambda = {
  streamifyResponse(handler: StreamHandler): Handler {
    const marked = (): never => {
      throw new Error("a streaming function was called without a stream");
    };
    streaming.set(marked, handler);
    return marked;
  },
  HttpResponseStream: {
    from(stream: ResponseStream, metadata: unknown): ResponseStream {
      stream.describe(metadata);
      return stream;
    },
  },
};

function handlerOf(loaded: unknown): Handler {
  if (typeof loaded === "object" && loaded !== null && "handler" in loaded && isHandler(loaded.handler)) {
    return loaded.handler;
  }
  throw new Error("the bundle does not export a function `handler`");
}

let current: ResponseStream | undefined;
let requestId: string | undefined;

async function serve(port: MessagePort): Promise<void> {
  Object.assign(globalThis, { awslambda });
  if (data.compileCache !== null) module.enableCompileCache(data.compileCache);
  const send = (message: FromWorker): void => port.postMessage(message);
  // Log lines use the same port as the result of an invocation, so they arrive before the result.
  replaceConsole(
    data.logLevel,
    () => requestId,
    (line) => send({ type: "log", line }),
  );
  const loaded: unknown = await import(pathToFileURL(data.bundle).href);
  const handler = handlerOf(loaded);
  port.on("message", (message: ToWorker) => {
    if (message.type === "pull") current?.pull();
    else void answer(handler, message, send);
  });
  send({ type: "ready" });
}

async function answer(handler: Handler, invocation: Invocation, send: (message: FromWorker) => void): Promise<void> {
  try {
    requestId = invocation.requestId;
    const event: unknown = JSON.parse(invocation.event);
    const streamHandler = streaming.get(handler);
    if (invocation.streamed !== (streamHandler !== undefined)) {
      throw new Error("the template and the function disagree on whether the response is streamed");
    }
    if (streamHandler === undefined) {
      const result = await handler(event, contextOf(invocation));
      send({ type: "done", payload: JSON.stringify(result) ?? "null" });
    } else {
      const stream = new ResponseStream(send);
      current = stream;
      const ended = new Promise<void>((resolve, reject) => stream.once("finish", resolve).once("error", reject));
      await Promise.all([streamHandler(event, stream, contextOf(invocation)), ended]);
      send({ type: "end" });
    }
  } catch (error) {
    const { name, message } = error instanceof Error ? error : new Error(String(error));
    console.error(error);
    send({ type: "failed", failure: { errorType: name, errorMessage: message } });
  }
}

function contextOf(invocation: Invocation): object {
  return {
    awsRequestId: invocation.requestId,
    functionName: data.functionName,
    functionVersion: "$LATEST",
    invokedFunctionArn: data.functionArn,
    memoryLimitInMB: String(data.memoryMb),
    logGroupName: `/aws/lambda/${data.functionName}`,
    logStreamName: "local",
    callbackWaitsForEmptyEventLoop: true,
    getRemainingTimeInMillis: () => Math.max(0, invocation.deadline - Date.now()),
  };
}

if (parentPort === null) throw new Error("this file runs in a worker thread only");
await serve(parentPort);
