/** Runs inside the worker thread of one execution environment, and serves the invocations of its function. */
import module from "node:module";
import { pathToFileURL } from "node:url";
import { parentPort, workerData } from "node:worker_threads";
import { replaceConsole } from "./console.ts";
import type { ToWorker, WorkerData } from "./environment.ts";
import { serveInvocations } from "./runtime.ts";

/** environment.ts passes this data. It is not validated, because a schema library would double the start time of the thread. */
const data: WorkerData = workerData;

if (parentPort === null) throw new Error("this file runs in a worker thread only");
const port = parentPort;
if (data.compileCache !== null) module.enableCompileCache(data.compileCache);
port.on("message", ({ type }: ToWorker) => {
  if (type === "exit") process.exit();
});
let requestId: string | undefined;
// Log lines use the same port as the result of an invocation, so they arrive before the result.
replaceConsole(
  data.logLevel,
  () => requestId,
  (line) => port.postMessage({ type: "log", line }),
);
await serveInvocations({
  port,
  data,
  load: () => import(pathToFileURL(data.bundle).href),
  during: (id, work) => {
    requestId = id;
    return work();
  },
});
