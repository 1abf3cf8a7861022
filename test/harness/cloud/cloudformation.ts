/** The actions of the simulated CloudFormation that the command `cdk` and the AWS SDK use. */
import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { Fields } from "../../infra/template.ts";
import { ACCOUNT, type Account, REGION } from "./account.ts";
import { detectionOf, driftsOf } from "./drift.ts";
import { type Cloud, newStack, now, type Plan, type Stack } from "./stack-state.ts";
import { deploy, destroy, importable } from "./stacks.ts";
import { readTemplate, type Template, ValidationError } from "./template.ts";
import type { XmlValue } from "./xml.ts";

interface ChangeSet {
  readonly id: string;
  readonly name: string;
  readonly stack: Stack;
  readonly plan: Plan;
  readonly changes: readonly XmlValue[];
  readonly status: "CREATE_COMPLETE" | "FAILED";
  readonly reason: string | undefined;
  executed: boolean;
}

export interface CloudFormation extends Cloud {
  readonly changeSets: ChangeSet[];
  /** The action of each request so far, in order. */
  readonly calls: string[];
}

export const openCloudFormation = (account: Account): CloudFormation => ({
  account,
  stacks: [],
  changeSets: [],
  calls: [],
});

/** The parameters of a request in AWS's query protocol, for example `Parameters.member.1.ParameterKey`. */
export type Query = ReadonlyMap<string, string>;

type Action = (cloud: CloudFormation, query: Query) => XmlValue;

export const actions: Readonly<Record<string, Action>> = {
  DescribeStacks(cloud, query) {
    const name = query.get("StackName");
    const stacks = name === undefined ? cloud.stacks.filter(isLive) : [stackOf(cloud, name)];
    return { Stacks: stacks.map(describeStack) };
  },
  ListStackResources: (cloud, query) => ({
    StackResourceSummaries: resourcesOf(stackOf(cloud, query.get("StackName"))),
  }),
  DescribeStackResources: (cloud, query) => ({ StackResources: resourcesOf(stackOf(cloud, query.get("StackName"))) }),
  DescribeStackEvents: (cloud, query) => ({
    StackEvents: stackOf(cloud, query.get("StackName")).events.map((one) => ({ ...one })),
  }),
  GetTemplate: (cloud, query) => ({ TemplateBody: stackOf(cloud, query.get("StackName")).text }),
  UpdateTerminationProtection(cloud, query) {
    const stack = stackOf(cloud, query.get("StackName"));
    stack.terminationProtection = query.get("EnableTerminationProtection") === "true";
    return { StackId: stack.id };
  },
  DeleteStack(cloud, query) {
    const stack = cloud.stacks.find((one) => isLive(one) && isNamed(one, query.get("StackName")));
    if (stack === undefined) return {};
    if (stack.terminationProtection) {
      throw new ValidationError(`Stack [${stack.name}] cannot be deleted while TerminationProtection is enabled`);
    }
    destroy(cloud, stack);
    return {};
  },
  DetectStackDrift: (cloud, query) => ({ StackDriftDetectionId: stackOf(cloud, query.get("StackName")).id }),
  DescribeStackDriftDetectionStatus: (cloud, query) =>
    detectionOf(cloud, stackOf(cloud, query.get("StackDriftDetectionId"))),
  DescribeStackResourceDrifts: (cloud, query) => ({
    StackResourceDrifts: driftsOf(cloud, stackOf(cloud, query.get("StackName"))).map(({ described }) => described),
  }),
  CreateChangeSet: (cloud, query) => createChangeSet(cloud, query),
  DescribeChangeSet(cloud, query) {
    const { id, name, stack, status, reason, changes, executed } = changeSetOf(cloud, query);
    return {
      ChangeSetId: id,
      ChangeSetName: name,
      StackId: stack.id,
      StackName: stack.name,
      Status: status,
      StatusReason: reason,
      ExecutionStatus: executed ? "EXECUTE_COMPLETE" : status === "FAILED" ? "UNAVAILABLE" : "AVAILABLE",
      Changes: changes,
      CreationTime: now(),
    };
  },
  ExecuteChangeSet(cloud, query) {
    const changeSet = changeSetOf(cloud, query);
    if (changeSet.status === "FAILED" || changeSet.executed) {
      throw new ValidationError(`ChangeSet [${changeSet.id}] cannot be executed in its current status`);
    }
    changeSet.executed = true;
    deploy(cloud, changeSet.stack, changeSet.plan);
    // The execution makes the other change sets of the stack obsolete, so they are deleted.
    const others = cloud.changeSets.filter(({ stack }) => stack !== changeSet.stack);
    cloud.changeSets.splice(0, cloud.changeSets.length, ...others);
    return {};
  },
  DeleteChangeSet(cloud, query) {
    const found = cloud.changeSets.find((one) => isChangeSet(one, query));
    if (found !== undefined) cloud.changeSets.splice(cloud.changeSets.indexOf(found), 1);
    return {};
  },
};

const isLive = ({ status }: Stack): boolean => status !== "DELETE_COMPLETE";
const isNamed = ({ id, name }: Stack, wanted: string | undefined): boolean => id === wanted || name === wanted;

/** Returns the stack with this id or name. A deleted stack can be found only by its id. */
function stackOf({ stacks }: CloudFormation, name: string | undefined): Stack {
  const found =
    stacks.find((stack) => stack.id === name) ?? stacks.find((stack) => isLive(stack) && stack.name === name);
  if (found === undefined) throw new ValidationError(`Stack with id ${name} does not exist`);
  return found;
}

const describeStack = (stack: Stack): XmlValue => ({
  StackId: stack.id,
  StackName: stack.name,
  StackStatus: stack.status,
  StackStatusReason: stack.reason,
  CreationTime: stack.createdAt,
  LastUpdatedTime: stack.updatedAt,
  EnableTerminationProtection: stack.terminationProtection,
  Outputs: stack.outputs.map((output) => ({ ...output })),
  Parameters: [],
  Capabilities: ["CAPABILITY_NAMED_IAM"],
  Tags: [],
});

const resourcesOf = (stack: Stack): XmlValue[] =>
  [...stack.resources].map(([id, { made }]) => ({
    LogicalResourceId: id,
    PhysicalResourceId: made.id,
    ResourceType: made.type,
    ResourceStatus: "CREATE_COMPLETE",
    LastUpdatedTimestamp: stack.updatedAt ?? stack.createdAt,
    Timestamp: stack.updatedAt ?? stack.createdAt,
  }));

const isChangeSet = ({ id, name, stack }: ChangeSet, query: Query): boolean => {
  const wanted = query.get("ChangeSetName");
  return id === wanted || (name === wanted && isNamed(stack, query.get("StackName")));
};

function changeSetOf(cloud: CloudFormation, query: Query): ChangeSet {
  const found = cloud.changeSets.find((one) => isChangeSet(one, query));
  if (found === undefined)
    throw new ValidationError(`ChangeSet [${query.get("ChangeSetName")}] does not exist`, "ChangeSetNotFound");
  return found;
}

/** The states in which a stack can be updated. */
const STABLE = new Set(["CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "IMPORT_COMPLETE"]);

const NO_CHANGES =
  "The submitted information didn't contain changes. Submit different information to create a change set.";

function createChangeSet(cloud: CloudFormation, query: Query): XmlValue {
  const stackName = query.get("StackName") ?? "";
  const type = query.get("ChangeSetType") ?? "UPDATE";
  const plan = planOf(cloud, query);
  const existing = cloud.stacks.find((one) => isLive(one) && isNamed(one, stackName));
  if (type === "CREATE" && existing !== undefined && existing.status !== "REVIEW_IN_PROGRESS") {
    throw new ValidationError(`Stack [${stackName}] already exists and cannot be created again with the changeSet`);
  }
  if (type === "UPDATE" && existing === undefined) throw new ValidationError(`Stack [${stackName}] does not exist`);
  if (type === "UPDATE" && existing !== undefined && !STABLE.has(existing.status)) {
    throw new ValidationError(`Stack:${existing.id} is in ${existing.status} state and can not be updated.`);
  }
  const stack = existing ?? newStack(stackName);
  if (existing === undefined) cloud.stacks.push(stack);
  const changes = changesOf(cloud, stack, plan);
  const name = query.get("ChangeSetName") ?? "";
  const changeSet: ChangeSet = {
    id: `arn:aws:cloudformation:${REGION}:${ACCOUNT}:changeSet/${name}/${randomUUID()}`,
    name,
    stack,
    plan,
    changes,
    status: changes.length === 0 ? "FAILED" : "CREATE_COMPLETE",
    reason: changes.length === 0 ? NO_CHANGES : undefined,
    executed: false,
  };
  cloud.changeSets.push(changeSet);
  return { Id: changeSet.id, StackId: stack.id };
}

/**
 * Returns the resources that differ between the stack's template and the new template. If the plan reverts drifts, it returns all
 * resources. If the templates differ only outside of their resources, the result contains one entry without a resource.
 */
function changesOf(cloud: CloudFormation, stack: Stack, plan: Plan): XmlValue[] {
  const before: Template["Resources"] = stack.template?.Resources ?? {};
  const after = plan.template.Resources;
  const changed = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (id) => plan.revertsDrift || !isDeepStrictEqual(before[id], after[id]),
  );
  const changes = changed.map((id) => ({
    Type: "Resource",
    ResourceChange: {
      Action:
        before[id] === undefined
          ? importable(cloud, plan, id)
            ? "Import"
            : "Add"
          : after[id] === undefined
            ? "Remove"
            : "Modify",
      LogicalResourceId: id,
      PhysicalResourceId: stack.resources.get(id)?.made.id,
      ResourceType: (after[id] ?? before[id])?.Type,
      Scope: [],
      Details: [],
    },
  }));
  if (changes.length > 0 || isDeepStrictEqual(stack.template, plan.template)) return changes;
  return [{ Type: "Resource" }];
}

function planOf({ account }: CloudFormation, query: Query): Plan {
  const url = query.get("TemplateURL");
  const text = url === undefined ? (query.get("TemplateBody") ?? "") : storedText(account, url);
  const template = readTemplate(text, (address) => storedText(account, address));
  if (/"AWS::IAM::/.test(text) && ![...query.values()].some((value) => /^CAPABILITY_(?:NAMED_)?IAM$/.test(value))) {
    throw new ValidationError("Requires capabilities : [CAPABILITY_IAM]");
  }
  return {
    text,
    template,
    parameters: parametersOf(account, template, query),
    importsExisting: query.get("ImportExistingResources") === "true",
    revertsDrift: query.get("DeploymentMode") === "REVERT_DRIFT",
  };
}

/** Returns the text of the object at a URL of S3. The bucket's name is in the host or in the path. */
function storedText({ objects }: Account, url: string): string {
  const { hostname, pathname } = new URL(url);
  const bucket = hostname.split(".s3.")[0] ?? "";
  const [, key = ""] = /^\/(.+)$/.exec(decodeURIComponent(pathname)) ?? [];
  const isInHost = objects.has(bucket);
  const [first = "", ...rest] = key.split("/");
  const text = isInHost ? objects.get(bucket)?.get(key) : objects.get(first)?.get(rest.join("/"));
  if (text === undefined) throw new ValidationError(`S3 error: Access Denied or no object at ${url}`);
  return text.toString("utf8");
}

function parametersOf(account: Account, { Parameters }: Template, query: Query): Fields {
  const given = new Map<string, string>();
  for (const [key, name] of query) {
    const [, index] = /^Parameters\.member\.(\d+)\.ParameterKey$/.exec(key) ?? [];
    const value = query.get(`Parameters.member.${index}.ParameterValue`);
    if (index !== undefined && value !== undefined) given.set(name, value);
  }
  const values = Object.entries(Parameters).map(([name, { Type, Default }]) => {
    const value = given.get(name) ?? Default;
    if (value === undefined) throw new ValidationError(`Parameters: [${name}] must have values`);
    if (!Type.startsWith("AWS::SSM::Parameter::Value<")) return [name, value] as const;
    const stored = account.parameters.get(String(value));
    if (stored === undefined)
      throw new ValidationError(`Unable to fetch parameters [${String(value)}] from parameter store for this account.`);
    return [name, stored] as const;
  });
  return Object.fromEntries(values);
}
