/** The local service of the API suite in a process of its own: what a test runner does to modules costs it nothing here. */
import { startLocal } from "../../infra/local/service.ts";

/** Retry gaps and windows of minutes pass in seconds. */
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
  // Answered by a 5xx where it happened; named here, so that nobody has to guess.
  for (const refusal of service.refusals) console.error(refusal);
  process.exit(exitCode);
}

// The second is the test run's own end, however that comes: no service stays behind it.
for (const event of ["SIGTERM", "disconnect"] as const) process.once(event, () => void end(0));
// Ctrl-C in a terminal is for all processes there, and the test run ends this one itself.
process.on("SIGINT", () => undefined);
process.on("message", (message) => {
  if (message === "uses") process.send?.({ uses: service.uses() });
});
void service.failed.then((reason) => {
  console.error(reason);
  return end(1);
});
process.send?.({ url: service.url, signingKey: service.signingKey });
