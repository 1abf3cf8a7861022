/** The local service of the API tests, in a process of its own because the test runner slows down the modules it loads. */
import { startLocal } from "../../infra/local/service.ts";

/** Retry gaps and debounce windows of minutes pass in seconds. */
const TIME_SCALE = 60;

const service = await startLocal({
  port: 0,
  webhookUrlPolicy: "local",
  timeScale: TIME_SCALE,
  allowedOrigins: ["https://app.example.com"],
  demo: true,
  enforceRights: true,
  verbose: process.env.LOG === "1",
});

async function end(exitCode: number): Promise<void> {
  await service.stop();
  // A refused call led to a 5xx; name its cause.
  for (const refusal of service.refusals) console.error(refusal);
  process.exit(exitCode);
}

// `disconnect` is the end of the test run for any reason: the service ends with it.
for (const event of ["SIGTERM", "disconnect"] as const) process.once(event, () => void end(0));
// Ctrl-C in a terminal reaches all its processes; the test run ends this one.
process.on("SIGINT", () => undefined);
process.on("message", (message) => {
  if (message === "uses") process.send?.({ uses: service.uses() });
});
void service.failed.then((reason) => {
  console.error(reason);
  return end(1);
});
process.send?.({ url: service.url, signingKey: service.signingKey });
