/** The stacks of the simulated CloudFormation: deployments with their rollback, imports of existing resources, and deletions. */
import { randomUUID } from "node:crypto";
import type { DeployConfig } from "../../../infra/settings/config.ts";
import { dataStackName, stackNameOf } from "../../../infra/settings/names.ts";
import type { CloudFormationTemplate, TemplateResource } from "../../../infra/synth.ts";
import { type Fields, isFields, synthesized } from "../../infra/template.ts";
import * as account from "./account.ts";
import { ACCOUNT, type Account, type Made, REGION } from "./account.ts";
import { evaluate, inOrder, type Scope } from "./template.ts";

interface Deployed {
  readonly made: Made;
  /** The resource's settings in the template of the last deployment. The settings in `made` differ from them after an import. */
  readonly properties: Fields;
  readonly resource: TemplateResource;
}

interface StackEvent {
  readonly logicalId: string;
  readonly made: Made | undefined;
  readonly status: string;
}

export interface Stack {
  readonly id: string;
  readonly name: string;
  status: string;
  /** The reason why the last deployment has failed. Empty if it has succeeded. */
  reason: string;
  template: CloudFormationTemplate | undefined;
  isProtected: boolean;
  resources: ReadonlyMap<string, Deployed>;
  outputs: readonly { readonly name: string; readonly value: string; readonly exportName: string | undefined }[];
  /** The names of the exports of other stacks that this stack uses. */
  imports: ReadonlySet<string>;
  readonly events: StackEvent[];
}

export interface Cloud {
  readonly account: Account;
  readonly stacks: Stack[];
}

export const newCloud = (): Cloud => ({ account: { resources: [], failing: new Set() }, stacks: [] });

/** The options of `cdk deploy` that change what CloudFormation does. */
interface Options {
  readonly importsExisting?: boolean;
  readonly revertsDrift?: boolean;
}

interface Plan extends Options {
  readonly template: CloudFormationTemplate;
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
const isLive = ({ status }: Stack): boolean => status !== "DELETE_COMPLETE";

export const liveStack = ({ stacks }: Cloud, name: string): Stack | undefined =>
  stacks.find((stack) => stack.name === name && isLive(stack));

/** Returns the templates for these settings, each with the name of its stack, in the order of their deployment. */
export async function stacksFor(config: DeployConfig): Promise<[name: string, template: CloudFormationTemplate][]> {
  const { data, service } = (await synthesized(config)).stacks;
  const name = stackNameOf(config.stage);
  return [
    [dataStackName(name), data],
    [name, service],
  ];
}

/** Deploys the data stack and the service stack with these settings. Throws if a deployment fails. */
export async function deployAll(cloud: Cloud, config: DeployConfig): Promise<void> {
  for (const [name, template] of await stacksFor(config)) deployStack(cloud, name, template);
}

/** Creates the stack, or updates it if it exists. Throws if the deployment fails. */
export function deployStack(
  cloud: Cloud,
  name: string,
  template: CloudFormationTemplate,
  options: Options = {},
): Stack {
  const existing = liveStack(cloud, name);
  // Like `cdk`, this function deletes a stack whose creation has failed, and creates it again.
  if (existing?.status === "ROLLBACK_COMPLETE") destroy(cloud, existing);
  const stack = liveStack(cloud, name) ?? newStack(name);
  if (!cloud.stacks.includes(stack)) cloud.stacks.push(stack);
  deploy(cloud, stack, { template, ...options });
  if (stack.reason !== "") throw new Error(`${name} is ${stack.status}: ${stack.reason}`);
  return stack;
}

const newStack = (name: string): Stack => ({
  id: `arn:aws:cloudformation:${REGION}:${ACCOUNT}:stack/${name}/${randomUUID()}`,
  name,
  status: "REVIEW_IN_PROGRESS",
  reason: "",
  template: undefined,
  isProtected: name.endsWith("-Data"),
  resources: new Map(),
  outputs: [],
  imports: new Set(),
  events: [],
});

/** Returns the existing resource that the deployment imports for this resource of the template. Undefined if there is none to import. */
function importable(cloud: Cloud, { importsExisting }: Plan, { Type, Properties, DeletionPolicy }: TemplateResource) {
  // CloudFormation can import a resource only if the template contains its name as a literal string.
  const name = account.givenName(Type, Properties);
  if (importsExisting !== true || name === undefined || !isRetained(DeletionPolicy)) return undefined;
  const found = account.find(cloud.account, Type, name);
  return found?.stackId === undefined ? found : undefined;
}

/** Deploys the template of the plan. If the change of one resource fails, undoes the changes of all resources, as CloudFormation does. */
function deploy(cloud: Cloud, stack: Stack, plan: Plan): void {
  const { template } = plan;
  const isNew = stack.template === undefined;
  const undo: (() => void)[] = [];
  const next = new Map<string, Deployed>();
  const imports = new Set<string>();
  const scope = scopeOf(cloud, stack, next, imports);
  try {
    for (const id of inOrder(template.Resources)) {
      const resource = template.Resources[id];
      if (resource === undefined) continue;
      const { deployed, revert } = place({ cloud, stack, plan, id, resource, scope });
      next.set(id, deployed);
      undo.push(revert);
    }
    const outputs = outputsOf(template, scope);
    checkExports(cloud, stack, outputs);
    stack.outputs = outputs;
  } catch (error) {
    const left = undo.toReversed().filter((step) => !isDone(step));
    // The rollback of an update is `COMPLETE` even if it cannot delete a new resource, which then remains in the account.
    const end = isNew && left.length > 0 ? "FAILED" : "COMPLETE";
    stack.status = `${isNew ? "ROLLBACK" : "UPDATE_ROLLBACK"}_${end}`;
    stack.reason = messageOf(error);
    return;
  }
  const before = stack.resources;
  const status = isNew ? "CREATE_COMPLETE" : "UPDATE_COMPLETE";
  Object.assign(stack, { resources: next, template, imports, status, reason: "" });
  cleanUp(cloud, stack, before, next);
}

function isDone(step: () => void): boolean {
  try {
    step();
    return true;
  } catch {
    return false;
  }
}

interface Place {
  readonly cloud: Cloud;
  readonly stack: Stack;
  readonly plan: Plan;
  readonly id: string;
  readonly resource: TemplateResource;
  readonly scope: Scope;
}

interface Placed {
  readonly deployed: Deployed;
  /** Undoes what `place` has done to the resource. Throws if AWS would refuse this. */
  readonly revert: () => void;
}

/** Creates, imports, replaces or changes one resource, or leaves it as it is. */
function place({ cloud, stack, plan, id, resource, scope }: Place): Placed {
  const resolved = evaluate(resource.Properties, scope);
  const properties: Fields = isFields(resolved) ? resolved : {};
  const log = (made: Made | undefined, status: string): void => void stack.events.push({ logicalId: id, made, status });
  const current = stack.resources.get(id);
  const existing = current === undefined ? importable(cloud, plan, resource) : undefined;
  if (existing !== undefined) {
    // An import does not change the resource's settings.
    existing.stackId = stack.id;
    log(existing, "IMPORT_COMPLETE");
    const revert = () => {
      existing.stackId = undefined;
    };
    return { deployed: { made: existing, properties, resource }, revert };
  }
  const changed = changedSettings(plan, current, properties);
  if (current !== undefined && changed.length === 0) {
    return { deployed: { ...current, properties, resource }, revert: () => undefined };
  }
  try {
    if (current !== undefined && account.replacing(resource.Type, changed).length === 0) {
      const { made } = current;
      const old = made.properties;
      account.change(made, properties);
      log(made, "UPDATE_COMPLETE");
      const revert = () => {
        made.properties = old;
      };
      return { deployed: { made, properties, resource }, revert };
    }
    if (current !== undefined) refuseNamedReplacement(current, properties);
    const made = account.create(cloud.account, { type: resource.Type, properties, stack, logicalId: id });
    log(made, "CREATE_COMPLETE");
    const revert = () => {
      // Unlike `RetainExceptOnCreate`, the policy `Retain` also keeps a resource that a failed deployment has created.
      if (!discard(cloud, stack, id, made, resource.DeletionPolicy === "Retain")) throw new Error(`${id} is left`);
    };
    return { deployed: { made, properties, resource }, revert };
  } catch (error) {
    log(current?.made, current === undefined ? "CREATE_FAILED" : "UPDATE_FAILED");
    throw new Error(`The following resource(s) failed: [${id}]: ${messageOf(error)}`, { cause: error });
  }
}

/** Returns the names of settings that differ from the last template or, with `revertsDrift`, from the actual settings of the resource. */
function changedSettings({ revertsDrift }: Plan, current: Deployed | undefined, properties: Fields): string[] {
  const drifted = account.differences(current?.made.properties ?? {}, properties).filter((name) => name in properties);
  const changed = account.differences(current?.properties ?? {}, properties);
  return [...new Set([...(revertsDrift === true ? drifted : []), ...changed])];
}

/** Throws if a replacement would have the name of the old resource, because CloudFormation deletes the old resource only afterwards. */
function refuseNamedReplacement({ made }: Deployed, properties: Fields): void {
  if (account.givenName(made.type, properties) !== made.id) return;
  throw new Error(
    `CloudFormation cannot update a stack when a custom-named resource requires replacing. Rename ${made.id} and update the stack again.`,
  );
}

/** Deletes or retains the old resources: those that the new template does not contain, and those that a new resource has replaced. */
function cleanUp(cloud: Cloud, stack: Stack, before: Stack["resources"], after: Stack["resources"]): void {
  const gone = [...before].filter(([id, { made }]) => after.get(id)?.made !== made);
  for (const [id, { made, resource }] of gone.toReversed()) {
    discard(cloud, stack, id, made, isRetained(after.has(id) ? resource.UpdateReplacePolicy : resource.DeletionPolicy));
  }
}

const isRetained = (policy: string | undefined): boolean => policy?.startsWith("Retain") === true;

/** Deletes or retains one resource. Returns false if the resource could not be deleted, so that it still belongs to the stack. */
function discard(cloud: Cloud, stack: Stack, logicalId: string, made: Made, retained: boolean): boolean {
  const log = (status: string): void => void stack.events.push({ logicalId, made, status });
  if (retained) {
    made.stackId = undefined;
    log("DELETE_SKIPPED");
    return true;
  }
  const isDeleted = isDone(() => account.remove(cloud.account, made));
  log(isDeleted ? "DELETE_COMPLETE" : "DELETE_FAILED");
  return isDeleted;
}

/** Deletes the stack. Throws if CloudFormation would refuse or fail to do so. */
export function destroy(cloud: Cloud, stack: Stack): void {
  if (stack.isProtected) throw new Error(`${stack.name} cannot be deleted while TerminationProtection is enabled`);
  for (const { exportName } of stack.outputs) {
    const use = userOf(cloud, stack, exportName);
    if (use !== undefined) throw new Error(`Cannot delete export ${use.name} as it is in use by ${use.by}`);
  }
  const order = stack.template === undefined ? [] : inOrder(stack.template.Resources).toReversed();
  const left = order.filter((id) => {
    const deployed = stack.resources.get(id);
    return (
      deployed !== undefined && !discard(cloud, stack, id, deployed.made, isRetained(deployed.resource.DeletionPolicy))
    );
  });
  if (left.length > 0) throw new Error(`The following resource(s) failed to delete: [${left.join(", ")}].`);
  Object.assign(stack, { resources: new Map(), outputs: [], imports: new Set(), status: "DELETE_COMPLETE" });
}

/** Returns what the references in a template can refer to. Adds the name of each imported export to `imports`. */
function scopeOf(cloud: Cloud, stack: Stack, next: ReadonlyMap<string, Deployed>, imports: Set<string>): Scope {
  return {
    parameters: {
      "AWS::AccountId": ACCOUNT,
      "AWS::Partition": "aws",
      "AWS::Region": REGION,
      "AWS::StackId": stack.id,
      "AWS::StackName": stack.name,
      "AWS::URLSuffix": "amazonaws.com",
    },
    resource: (id, attribute) => {
      const made = next.get(id)?.made;
      if (made === undefined) throw new Error(`${id} does not exist`);
      return attribute === undefined ? account.referenceTo(made) : account.attributeOf(made, attribute);
    },
    importValue: (name) => {
      const outputs = cloud.stacks.filter(isLive).flatMap((one) => one.outputs);
      const found = outputs.find(({ exportName }) => exportName === name);
      if (found === undefined) throw new Error(`No export named ${name} found.`);
      imports.add(name);
      return found.value;
    },
  };
}

const outputsOf = ({ Outputs }: CloudFormationTemplate, scope: Scope): Stack["outputs"] =>
  Object.entries(Outputs).map(([name, { Value, Export }]) => ({
    name,
    value: String(evaluate(Value, scope)),
    exportName: Export?.Name,
  }));

/** Returns the name of the export and the name of another stack that imports it. Undefined if no other stack imports it. */
function userOf({ stacks }: Cloud, stack: Stack, name: string | undefined): { name: string; by: string } | undefined {
  if (name === undefined) return undefined;
  const user = stacks.find((other) => other !== stack && isLive(other) && other.imports.has(name));
  return user && { name, by: user.name };
}

/** Throws if an export that another stack imports would be changed or removed. */
function checkExports(cloud: Cloud, stack: Stack, outputs: Stack["outputs"]): void {
  for (const { exportName, value } of stack.outputs) {
    const same = outputs.find((output) => output.exportName === exportName);
    const use = same?.value === value ? undefined : userOf(cloud, stack, exportName);
    if (use !== undefined) {
      const what = same === undefined ? "deleted" : "updated";
      throw new Error(`Export ${use.name} cannot be ${what} as it is in use by ${use.by}`);
    }
  }
}
