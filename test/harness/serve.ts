/** The local service of the API tests, in a separate process because the test runner slows down the modules that it loads. */
import { startLocal } from "../../infra/local/service.ts";

/** The service divides its delays by this factor, so that retry gaps and debounce windows of minutes pass in seconds. */
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
  // A call that the function's rights did not allow led to a 5xx. Print its cause.
  for (const refusal of service.refusals) console.error(refusal);
  process.exit(exitCode);
}

// `disconnect` means that the test run has ended for any reason, so the service ends.
for (const event of ["SIGTERM", "disconnect"] as const) process.once(event, () => void end(0));
// Ctrl-C in a terminal signals all its processes. This process ignores the signal, because the test run ends it.
process.on("SIGINT", () => undefined);
process.on("message", (message) => {
  if (message === "uses") process.send?.({ uses: service.uses() });
});
void service.failed.then((reason) => {
  console.error(reason);
  return end(1);
});
process.send?.({ url: service.url, signingKey: service.signingKey });
