/** Finds the custom metrics of a deployment. Each of them has a monthly price, no matter how many log filters write it. */
import { canary } from "../../infra/routes/routes.ts";
import { attemptResults } from "../../infra/stack/dashboard.ts";
import { at, listed, type Template } from "./template.ts";

/** The metric that the scheduled smoke test writes into its own log lines (embedded metric format). */
const EMBEDDED = "WebhookDelay";

/** Returns the names and dimensions of the metrics that CloudWatch extracts from log lines. */
export function customMetrics(template: Template): Set<string> {
  return new Set([
    ...(Object.values(template.resources).some(({ Metadata }) => Metadata.file === canary.file) ? [EMBEDDED] : []),
    ...template.all("AWS::Logs::MetricFilter").flatMap(({ properties }) => {
      const [metric] = listed(properties.MetricTransformations);
      const name = String(at(metric, "MetricName"));
      const dimensions = at(metric, "Dimensions");
      if (dimensions === undefined) return [name];
      if (JSON.stringify(dimensions) !== JSON.stringify([{ Key: "Result", Value: "$.message.result" }]))
        throw new Error(`${name} has unknown dimensions`);
      return attemptResults.map((result) => `${name} ${result}`);
    }),
  ]);
}
