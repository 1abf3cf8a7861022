/** The drift detection of the simulated CloudFormation. It compares the settings of resources with the template of the last deployment. */

import { differences, find } from "./account.ts";
import { type Cloud, now, type Stack } from "./stack-state.ts";
import type { XmlValue } from "./xml.ts";

const text = (value: unknown): string => JSON.stringify(value) ?? "";

/**
 * Returns a description of each resource of the stack. The description lists each setting of the template whose value in the account
 * differs from its value in the template.
 */
export const driftsOf = ({ account }: Cloud, stack: Stack): { status: string; described: XmlValue }[] =>
  [...stack.resources].map(([LogicalResourceId, { made, properties }]) => {
    const actual = find(account, made.type, made.id)?.properties;
    const drifted = differences(actual ?? {}, properties).filter((name) => name in properties);
    const status = actual === undefined ? "DELETED" : drifted.length > 0 ? "MODIFIED" : "IN_SYNC";
    const described = {
      StackId: stack.id,
      LogicalResourceId,
      PhysicalResourceId: made.id,
      ResourceType: made.type,
      StackResourceDriftStatus: status,
      PropertyDifferences: drifted.map((name) => ({
        PropertyPath: `/${name}`,
        ExpectedValue: text(properties[name]),
        ActualValue: text(actual?.[name]),
        DifferenceType: actual !== undefined && name in actual ? "NOT_EQUAL" : "REMOVE",
      })),
      Timestamp: now(),
    };
    return { status, described };
  });

export function detectionOf(cloud: Cloud, stack: Stack): XmlValue {
  const drifted = driftsOf(cloud, stack).filter(({ status }) => status !== "IN_SYNC").length;
  return {
    StackId: stack.id,
    StackDriftDetectionId: stack.id,
    StackDriftStatus: drifted > 0 ? "DRIFTED" : "IN_SYNC",
    DetectionStatus: "DETECTION_COMPLETE",
    DriftedStackResourceCount: drifted,
    Timestamp: now(),
  };
}
