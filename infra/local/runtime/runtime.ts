/** Does the work of Lambda's runtime in one environment: loads the function once, and handles one invocation after the other. */
import { Writable } from "node:stream";
import type { FromWorker, Invocation, ToWorker, WorkerData } from "./environment.ts";

type Handler = (event: unknown, context: object) => unknown;
type StreamHandler = (event: unknown, stream: ResponseStream, context: object) => unknown;

const streaming = new WeakMap<Handler, StreamHandler>();

const isHandler = (value: unknown): value is Handler => typeof value === "function";

/** The body of a streamed response. It sends the next chunk only when the client can accept it. */
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

  break(reason: string): void {
    this.destroy(new Error(reason));
  }

  override _write(chunk: unknown, _encoding: BufferEncoding, done: () => void): void {
    this.#sendHead();
    this.#pulled = done;
    // Copies the chunk, because the message would otherwise contain the whole buffer of which the chunk is a part.
    this.#send({
      type: "chunk",
      data: new Uint8Array(chunk instanceof Uint8Array ? chunk : Buffer.from(String(chunk))),
    });
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

interface RuntimePort {
  postMessage(message: FromWorker): void;
  on(event: "message", listener: (message: ToWorker) => void): unknown;
}

interface Runtime {
  readonly port: RuntimePort;
  readonly data: WorkerData;
  readonly load: () => Promise<unknown>;
  /** Runs the handler, so that the log lines of the invocation get its request id. */
  readonly during: (requestId: string, work: () => Promise<void>) => Promise<void>;
}

export async function serveInvocations({ port, data, load, during }: Runtime): Promise<void> {
  Object.assign(globalThis, { awslambda });
  const handler = handlerOf(await load());
  let current: ResponseStream | undefined;
  const answer = async (invocation: Invocation): Promise<void> => {
    try {
      const event: unknown = JSON.parse(invocation.event);
      const streamHandler = streaming.get(handler);
      if (invocation.streamed !== (streamHandler !== undefined)) {
        throw new Error("the template and the function disagree on whether the response is streamed");
      }
      if (streamHandler === undefined) {
        const result = await handler(event, contextOf(invocation, data));
        port.postMessage({ type: "done", payload: JSON.stringify(result) ?? "null" });
        return;
      }
      const stream = new ResponseStream((message) => port.postMessage(message));
      current = stream;
      const ended = new Promise<void>((resolve, reject) => stream.once("finish", resolve).once("error", reject));
      await Promise.all([streamHandler(event, stream, contextOf(invocation, data)), ended]);
      port.postMessage({ type: "end" });
    } catch (error) {
      const { name, message } = error instanceof Error ? error : new Error(String(error));
      console.error(error);
      port.postMessage({ type: "failed", failure: { errorType: name, errorMessage: message } });
    }
  };
  port.on("message", (message) => {
    if (message.type === "pull") current?.pull();
    else if (message.type === "break") current?.break(message.reason);
    else if (message.type === "invoke") void during(message.requestId, () => answer(message));
  });
  port.postMessage({ type: "ready" });
}

const contextOf = (invocation: Invocation, data: WorkerData): object => ({
  awsRequestId: invocation.requestId,
  functionName: data.functionName,
  functionVersion: "$LATEST",
  invokedFunctionArn: data.functionArn,
  memoryLimitInMB: String(data.memoryMb),
  logGroupName: `/aws/lambda/${data.functionName}`,
  logStreamName: "local",
  callbackWaitsForEmptyEventLoop: true,
  getRemainingTimeInMillis: () => Math.max(0, invocation.deadline - Date.now()),
});
