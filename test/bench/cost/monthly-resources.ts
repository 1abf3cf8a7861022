/** Counts what has a fixed price per month in the production preset without the canary, by default also without backups. */
import { customMetrics } from "../../infra/custom-metrics.ts";
import { ownIdentity, synthesized } from "../../infra/template.ts";
import type { Measured } from "./measured.ts";

export async function monthlyResources(config = ownIdentity): Promise<Measured["resources"]> {
  const template = await synthesized({ ...config, watch: { ...config.watch, canary: false } });
  const count = (type: string): number => template.all(type).length;
  return {
    alarms: count("AWS::CloudWatch::Alarm"),
    metrics: customMetrics(template).size,
    dashboards: count("AWS::CloudWatch::Dashboard"),
    keys: count("AWS::KMS::Key"),
  };
}
