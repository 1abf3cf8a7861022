/** Counts the resources of a deployment that have a fixed price a month, without those of the scheduled smoke test (canary). */
import { customMetrics } from "../../infra/stack/custom-metrics.ts";
import { ownIdentity, synthesized } from "../../infra/template.ts";
import type { Measured } from "./measured.ts";

/** The default of `config` has the capacity of the preset `production`, but no backups. */
export async function monthlyResources(config = ownIdentity): Promise<Measured["resources"]> {
  const template = await synthesized({ ...config, watch: { ...config.watch, canary: false } });
  const count = (type: string): number => template.all(type).length;
  return {
    alarms: count("AWS::CloudWatch::Alarm"),
    metrics: customMetrics(template).size,
    dashboards: count("AWS::CloudWatch::Dashboard"),
    keys: count("AWS::KMS::Key"),
    queues: template.all("AWS::Lambda::EventSourceMapping").filter(({ properties }) => "ScalingConfig" in properties)
      .length,
  };
}
