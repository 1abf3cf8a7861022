/** Finds the custom metrics of a deployment. Each of them has a monthly price, no matter how many log filters write it. */
import { canary } from "../../../infra/routes/routes.ts";
import { at, listed, type Template } from "../template.ts";

/** The metric that the scheduled smoke test writes into its own log lines (embedded metric format). */
const EMBEDDED = "WebhookDelay";

/** Returns the names of the metrics that CloudWatch extracts from log lines. Throws an error if a metric has dimensions. */
export function customMetrics(template: Template): Set<string> {
  return new Set([
    ...(Object.values(template.resources).some(({ Metadata }) => Metadata.file === canary.file) ? [EMBEDDED] : []),
    ...template.all("AWS::Logs::MetricFilter").flatMap(({ properties }) => {
      const [metric] = listed(properties.MetricTransformations);
      const name = String(at(metric, "MetricName"));
      if (at(metric, "Dimensions") !== undefined) throw new Error(`${name} has dimensions`);
      return [name];
    }),
  ]);
}
