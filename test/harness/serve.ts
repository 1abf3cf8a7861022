/** Starts the local service in a process of its own, because vitest slows down the modules that it loads into its processes. */
import { UNCAUGHT } from "../../infra/local/runtime/environment.ts";
import { startLocal } from "../../infra/local/service.ts";
import { watchLogs } from "./log-leaks.ts";
import { sharedProcess } from "./shared-process.ts";
import { startTileServer } from "./tile-server.ts";

/** The service divides its delays, for example those of webhook retries, by this factor, so that tests wait less. */
const TIME_SCALE = 60;

/** The request limits of the service and of each company: high, because the tests of one file send the requests of thousands of reps. */
const REQUESTS = { perSecond: 10_000, burst: 20_000 } as const;

/** True if each function runs in worker threads from its bundle, which takes three times the processor time. */
const asDeployed = process.argv.includes("--deployed");
const enforceRights = asDeployed || process.argv.includes("--rights");
const logs = watchLogs();
/** Errors that no code has caught. A crash of a function may fail no request, so no test would notice it. */
const crashes: string[] = [];
/** The log lines of requests that got a 500 or 503. They are printed at the end, because such an answer has only a constant text. */
const failed: string[] = [];
const { endpoint: tiles } = await startTileServer();
const service = await startLocal({
  port: 0,
  webhookUrlPolicy: "local",
  timeScale: TIME_SCALE,
  allowedOrigins: ["https://app.example.com"],
  throttles: { requests: REQUESTS, company: REQUESTS },
  demo: true,
  basemap: { light: `${tiles}/light`, dark: `${tiles}/dark`, origins: [] },
  ...(asDeployed ? { asDeployed } : { startThread: sharedProcess() }),
  enforceRights,
  // Starting an environment (a worker thread) costs as much as ten requests, so idle environments are kept. The streamed answers of a
  // company may occupy all environments of a function but one. With three environments, two such answers can run at the same time.
  requestEnvironments: 3,
  warmth: { idleMs: 20 * 60_000, most: 128 },
  onLogLine: ({ file, text }) => {
    logs.add(file, text);
    if (text.includes(`"message":"${UNCAUGHT}`)) crashes.push(`${file} has crashed: ${text}`);
    if (/"code":"(?:unavailable|internal)"/.test(text)) failed.push(`${file} failed: ${text.slice(0, 1_000)}`);
  },
  verbose: process.env.LOG === "1",
});

async function end(exitCode: number): Promise<void> {
  await service.stop();
  // `refusals` are the requests that IAM policies do not allow. A test sees only a status 5xx, so the reasons are printed here.
  for (const line of [...service.refusals, ...failed]) console.error(line);
  process.exit(exitCode);
}

// `disconnect` means that the test process has ended.
for (const event of ["SIGTERM", "disconnect"] as const) process.once(event, () => void end(0));
// Ctrl-C signals all processes. SIGINT is ignored, because the test process still needs the service, and later ends it with SIGTERM.
process.on("SIGINT", () => undefined);
process.on("message", (message) => {
  if (message === "uses") process.send?.({ uses: service.uses(), faults: [...logs.leaks, ...crashes] });
});
void service.failed.then((reason) => {
  console.error(reason);
  return end(1);
});
process.send?.({ url: service.url, signingKey: service.signingKey });
