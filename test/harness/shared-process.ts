/** Runs all functions in the process of the local service. This saves processor time, but a function that hangs is not ended. */
import { AsyncLocalStorage } from "node:async_hooks";
import { EventEmitter } from "node:events";
import { globSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { prepareRequest, SignatureV4 } from "@smithy/signature-v4";
import { instances } from "#shared/instance.ts";
import { root } from "../../infra/build/bundle.ts";
import { replaceConsole } from "../../infra/local/runtime/console.ts";
import type { FromWorker, Thread, ThreadOptions, ToWorker } from "../../infra/local/runtime/environment.ts";
import { serveInvocations } from "../../infra/local/runtime/runtime.ts";

interface Invoked {
  readonly requestId: string;
  readonly accessKey: string | undefined;
  readonly refusal: ThreadOptions["refusal"];
  readonly onLine: (line: string) => void;
  readonly onCrash: (error: Error) => void;
}

const invoked = new AsyncLocalStorage<Invoked>();

/** Passes each log line to `onLine` of the invocation that writes the line. Lines outside of an invocation go to standard error. */
function separateLogs(): void {
  replaceConsole(
    "INFO",
    () => invoked.getStore()?.requestId,
    (line) => {
      const invocation = invoked.getStore();
      if (invocation === undefined) process.stderr.write(`${line}\n`);
      else invocation.onLine(line);
    },
  );
}

const ACCESS_KEY = "AWS_ACCESS_KEY_ID";
/** The access key in the environment variables of all functions. A signature has the access key of the calling function instead. */
const SHARED_KEY = "all-functions";

/** Throws if the policy of the calling function does not allow this call of DynamoDB. */
function assertAllowed({ headers, body }: HttpRequest): void {
  const [service, operation = ""] = String(headers["x-amz-target"]).split(".");
  if (service !== "DynamoDB_20120810") return;
  const reason = invoked.getStore()?.refusal?.(accessKeyId(), operation, String(body));
  if (reason !== undefined) throw new Error(reason);
}

type HttpRequest = ReturnType<typeof prepareRequest>;
const accessKeyId = (): string => invoked.getStore()?.accessKey ?? SHARED_KEY;

/** Makes each signature name the calling function, whose rights the local servers check. These servers verify only presigned URLs. */
function nameFunctions(): void {
  const credentialProvider = async () => ({ accessKeyId: accessKeyId(), secretAccessKey: "local" });
  const { presign } = SignatureV4.prototype;
  Object.defineProperties(SignatureV4.prototype, {
    signRequest: {
      async value(request: HttpRequest): Promise<HttpRequest> {
        const prepared = prepareRequest(request);
        assertAllowed(prepared);
        const credential = `Credential=${accessKeyId()}/20260101/us-east-1/local/aws4_request`;
        const authorization = `AWS4-HMAC-SHA256 ${credential}, SignedHeaders=host, Signature=${"0".repeat(64)}`;
        const headers = { ...prepared.headers, "x-amz-date": "20260101T000000Z", authorization };
        return Object.assign(prepared, { headers });
      },
    },
    presign: {
      value(this: SignatureV4, ...args: readonly unknown[]): unknown {
        // The local server of S3 computes signatures too, outside of invocations. It keeps its own credentials.
        if (invoked.getStore() !== undefined) Object.assign(this, { credentialProvider });
        return Reflect.apply(presign, this, args);
      },
    },
  });
}

/** An uncaught error ends only the environment of its function, as in a worker thread. Outside of an invocation, it ends the service. */
function separateCrashes(): void {
  const crash = (error: unknown): void => {
    const invocation = invoked.getStore();
    if (invocation === undefined) throw error;
    invocation.onCrash(error instanceof Error ? error : new Error(String(error)));
  };
  for (const event of ["uncaughtException", "unhandledRejection"] as const) process.on(event, crash);
}

/** Matches the environment variables that have a different value in each function. */
const OWN = /^AWS_(?:LAMBDA_FUNCTION_|ACCESS_KEY_ID$)/;

/** Sets environment variables of this process, which all functions share. Throws if two functions need different values. */
function setVariables(variables: Readonly<Record<string, string>>, known: Map<string, string>): void {
  for (const [name, value] of Object.entries(variables)) {
    if (OWN.test(name)) continue;
    if (known.has(name) && known.get(name) !== value) throw new Error(`functions need different values of ${name}`);
    known.set(name, value);
    process.env[name] = value;
  }
}

/** The function that answers 405 is loaded from its bundle, because it reads a file that the build writes there. */
const BUNDLED = "method-not-allowed";
const sourceOf = (file: string): string => pathToFileURL(join(root, "functions", `${file}.ts`)).href;

/** Loads all functions before the first invocation, because a module may register a service when it is loaded, such as encryption. */
async function loadAll(): Promise<void> {
  const files = globSync("**/*.ts", { cwd: join(root, "functions") }).map((name) => name.replace(/\.ts$/, ""));
  await Promise.all(files.filter((file) => file !== BUNDLED).map((file) => import(sourceOf(file))));
}

/** Returns a replacement for `startThread`. Each call starts one environment of a Lambda function in this process, without a thread. */
export function sharedProcess(): (options: ThreadOptions) => Thread {
  separateLogs();
  separateCrashes();
  const known = new Map<string, string>();
  process.env[ACCESS_KEY] = SHARED_KEY;
  nameFunctions();
  let all: Promise<unknown> | undefined;
  return ({ file, data, variables, refusal }) => {
    setVariables(variables, known);
    const toService = new EventEmitter<{ message: [FromWorker]; error: [Error]; exit: [] }>();
    const toFunction = new EventEmitter<{ message: [ToWorker] }>();
    const accessKey = variables[ACCESS_KEY];
    const instance = {};
    const port = {
      postMessage: (message: FromWorker) => void toService.emit("message", message),
      on: (event: "message", listener: (message: ToWorker) => void) => toFunction.on(event, listener),
    };
    const onLine = (line: string): void => port.postMessage({ type: "log", line });
    const load = async (): Promise<unknown> => {
      all ??= loadAll();
      await all;
      return import(file === BUNDLED ? pathToFileURL(data.bundle).href : sourceOf(file));
    };
    const onCrash = (error: Error): void => void toService.emit("error", error);
    serveInvocations({
      port,
      data,
      load,
      during: (requestId, work) =>
        instances.run(instance, () => invoked.run({ requestId, accessKey, refusal, onLine, onCrash }, work)),
    }).catch(onCrash);
    return Object.assign(toService, {
      postMessage: (message: ToWorker) => void toFunction.emit("message", message),
      terminate: async () => void toFunction.removeAllListeners(),
    });
  };
}
