/** The scheduled smoke test. It signs in as the user of a separate company, runs the steps of story.ts, and logs one line. */
import { Metrics, MetricUnit } from "@aws-lambda-powertools/metrics";
import * as z from "zod/mini";
import { cognitoClient } from "#shared/aws/cognito.ts";
import { openParameters } from "#shared/aws/ssm.ts";
import { errorFields, log } from "#shared/log.ts";
import { apiAt, assert } from "#shared/smoke/api.ts";
import { accessToken, Credentials } from "#shared/smoke/sign-in.ts";
import { runSmoke } from "#shared/smoke/story.ts";

const Environment = z.object({
  API_URL: z.string(),
  /** `npm run canary` writes this SSM parameter. */
  CANARY_PARAMETER: z.string(),
  METRICS_NAMESPACE: z.string(),
  USER_POOL_ID: z.optional(z.string()),
  USER_POOL_CLIENT_ID: z.optional(z.string()),
});

const WEBHOOK_WAIT_MS = 30_000;

/** Throws if a step fails. Lambda then counts an error, for which an alarm exists. `webhookWaitMs` is the wait for the webhook. */
export async function canary(webhookWaitMs = WEBHOOK_WAIT_MS): Promise<void> {
  const settings = Environment.parse(process.env);
  const started = Date.now();
  let steps = 0;
  try {
    const api = apiAt(settings.API_URL, await signIn(settings));
    const [webhookMs] = await runSmoke({
      admin: api,
      rep: api,
      base: settings.API_URL,
      webhookWaitMs,
      prospects: 1,
      changes: 0,
      step: () => steps++,
      now: Date.now,
    });
    assert(webhookMs !== undefined, "no webhook was delivered");
    publish(settings.METRICS_NAMESPACE, webhookMs);
    log.info("smoke test passed", { steps, webhookMs, ms: Date.now() - started });
  } catch (error) {
    log.error("smoke test failed", { steps, ms: Date.now() - started, ...errorFields(error) });
    throw error;
  }
}

async function signIn({
  CANARY_PARAMETER,
  USER_POOL_ID,
  USER_POOL_CLIENT_ID,
}: z.output<typeof Environment>): Promise<string> {
  const stored: unknown = JSON.parse(await openParameters().read(CANARY_PARAMETER));
  const pool = { userPoolId: USER_POOL_ID, clientId: USER_POOL_CLIENT_ID };
  return accessToken(
    Credentials.parse({ ...pool, ...z.parse(z.record(z.string(), z.string()), stored) }),
    cognitoClient,
  );
}

/** Logs a line in CloudWatch's embedded metric format. CloudWatch makes a metric of it. */
function publish(namespace: string, webhookMs: number): void {
  const metrics = new Metrics({ namespace, serviceName: "canary" });
  metrics.addMetric("WebhookDelay", MetricUnit.Milliseconds, webhookMs);
  metrics.publishStoredMetrics();
}
