/** The state of the simulated stacks: their resources, outputs, events and status. */
import { randomUUID } from "node:crypto";
import type { Fields } from "../../infra/template.ts";
import { ACCOUNT, type Account, type Made, REGION } from "./account.ts";
import type { Resource, Template } from "./template.ts";

export interface StackEvent {
  readonly EventId: string;
  readonly StackId: string;
  readonly StackName: string;
  readonly LogicalResourceId: string;
  readonly PhysicalResourceId: string;
  readonly ResourceType: string;
  readonly ResourceStatus: string;
  readonly ResourceStatusReason: string | undefined;
  readonly Timestamp: string;
}

export interface Deployed {
  readonly made: Made;
  /** The resource's settings in the template of the last deployment. The settings in `made` differ from them after a drift. */
  readonly properties: Fields;
  readonly resource: Resource;
}

export interface Stack {
  readonly id: string;
  readonly name: string;
  readonly createdAt: string;
  updatedAt: string | undefined;
  status: string;
  reason: string | undefined;
  text: string;
  template: Template | undefined;
  terminationProtection: boolean;
  resources: ReadonlyMap<string, Deployed>;
  outputs: readonly {
    readonly OutputKey: string;
    readonly OutputValue: string;
    readonly ExportName: string | undefined;
  }[];
  imports: ReadonlySet<string>;
  readonly events: StackEvent[];
}

export interface Cloud {
  readonly account: Account;
  readonly stacks: Stack[];
}

export interface Plan {
  readonly text: string;
  readonly template: Template;
  readonly parameters: Fields;
  readonly importsExisting: boolean;
  readonly revertsDrift: boolean;
}

let ticks = Date.now();
/** Returns the current time. Two calls never return the same time, so that clients can sort events by time. */
export const now = (): string => {
  ticks = Math.max(ticks + 1, Date.now());
  return new Date(ticks).toISOString();
};

export function newStack(name: string): Stack {
  return {
    id: `arn:aws:cloudformation:${REGION}:${ACCOUNT}:stack/${name}/${randomUUID()}`,
    name,
    createdAt: now(),
    updatedAt: undefined,
    status: "REVIEW_IN_PROGRESS",
    reason: undefined,
    text: "{}",
    template: undefined,
    terminationProtection: false,
    resources: new Map(),
    outputs: [],
    imports: new Set(),
    events: [],
  };
}

interface Recorded {
  readonly id: string;
  readonly type: string;
  readonly physicalId: string;
  readonly status: string;
  readonly reason?: string | undefined;
}

export function record(stack: Stack, { id, type, physicalId, status, reason }: Recorded): void {
  stack.events.unshift({
    EventId: randomUUID(),
    StackId: stack.id,
    StackName: stack.name,
    LogicalResourceId: id,
    PhysicalResourceId: physicalId,
    ResourceType: type,
    ResourceStatus: status,
    ResourceStatusReason: reason,
    Timestamp: now(),
  });
}

export function setStatus(stack: Stack, status: string, reason?: string): void {
  stack.status = status;
  stack.reason = reason;
  record(stack, { id: stack.name, type: "AWS::CloudFormation::Stack", physicalId: stack.id, status, reason });
}
