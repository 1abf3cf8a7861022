/** Executes deployments and deletions of the stacks of the simulated CloudFormation. */
import { type Fields, isFields } from "../../infra/template.ts";
import { ACCOUNT, attributeOf, differences, find, givenName, type Made, REGION, referenceTo } from "./account.ts";
import { change, create, remove } from "./resource-handlers.ts";
import { replacing } from "./spec.ts";
import { type Cloud, type Deployed, now, type Plan, record, type Stack, setStatus } from "./stack-state.ts";
import { evaluate, inOrder, type Resource, type Scope, type Template, ValidationError } from "./template.ts";

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Returns the existing resource that the plan would import for this logical id, or undefined if there is none. */
export function importable({ account }: Cloud, plan: Plan, id: string): Made | undefined {
  const resource = plan.template.Resources[id];
  if (!plan.importsExisting || resource === undefined) return undefined;
  const { Type, Properties, DeletionPolicy = "Delete" } = resource;
  // CloudFormation can import a resource only if the template contains its name as a literal string.
  const name = givenName(Type, Properties);
  const found = name === undefined ? undefined : find(account, Type, name);
  if (found === undefined || found.owner !== undefined || !DeletionPolicy.startsWith("Retain")) return undefined;
  return found;
}

/**
 * Executes a plan. If the change of one resource fails, undoes the changes of all resources, as CloudFormation does. The stack's status
 * shows the result.
 */
export function deploy(cloud: Cloud, stack: Stack, plan: Plan): void {
  const isNew = stack.template === undefined;
  const verb = isNew ? "CREATE" : "UPDATE";
  setStatus(stack, `${verb}_IN_PROGRESS`, "User Initiated");
  const undo: (() => void)[] = [];
  const next = new Map<string, Deployed>();
  const imports = new Set<string>();
  const scope = scopeOf(cloud, stack, plan, { next, imports });
  try {
    for (const id of inOrder(plan.template)) {
      const resource = plan.template.Resources[id];
      if (resource === undefined) continue;
      const { deployed, revert } = place({ cloud, stack, plan, id, resource, scope });
      next.set(id, deployed);
      undo.push(revert);
    }
    const outputs = outputsOf(plan.template, scope);
    checkExports(cloud, stack, outputs);
    stack.outputs = outputs;
  } catch (error) {
    const failed = isNew ? "ROLLBACK" : "UPDATE_ROLLBACK";
    setStatus(stack, `${failed}_IN_PROGRESS`, messageOf(error));
    const left = undo.toReversed().filter((step) => !isDone(step));
    // If the rollback of an update cannot delete a new resource, the resource remains in the account. The status of the rollback is
    // `COMPLETE` even then.
    setStatus(stack, isNew && left.length > 0 ? `${failed}_FAILED` : `${failed}_COMPLETE`);
    if (isNew) stack.text = plan.text;
    return;
  }
  const before = stack.resources;
  Object.assign(stack, { resources: next, text: plan.text, template: plan.template, imports });
  if (!isNew) stack.updatedAt = now();
  cleanUp(cloud, stack, before, next);
  setStatus(stack, `${verb}_COMPLETE`);
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
  readonly resource: Resource;
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
  const log = logOf(stack, id, resource.Type);
  const current = stack.resources.get(id);
  const existing = current === undefined ? importable(cloud, plan, id) : undefined;
  if (existing !== undefined) {
    // An import does not change the resource's settings.
    existing.owner = { stackId: stack.id, logicalId: id };
    log(existing, "IMPORT_COMPLETE");
    const revert = () => {
      existing.owner = undefined;
    };
    return { deployed: { made: existing, properties, resource }, revert };
  }
  const changed = changedSettings(plan, current, properties);
  if (current !== undefined && changed.length === 0) {
    return { deployed: { ...current, properties, resource }, revert: () => undefined };
  }
  const replaced = current === undefined ? [] : replacing(resource.Type, changed);
  try {
    if (current !== undefined && replaced.length === 0) {
      const { made } = current;
      const old = made.properties;
      log(made, "UPDATE_IN_PROGRESS");
      change(made, properties);
      log(made, "UPDATE_COMPLETE");
      const revert = () => {
        made.properties = old;
      };
      return { deployed: { made, properties, resource }, revert };
    }
    if (current !== undefined) {
      refuseNamedReplacement(current, properties);
      log(current.made, "UPDATE_IN_PROGRESS", `Requested update requires a new resource (${replaced.join(", ")})`);
    }
    log(undefined, "CREATE_IN_PROGRESS");
    const owner = { stackId: stack.id, logicalId: id };
    const made = create(cloud.account, { type: resource.Type, properties, stackName: stack.name, ...owner });
    log(made, "CREATE_COMPLETE");
    const revert = () => {
      // Unlike `RetainExceptOnCreate`, the policy `Retain` also keeps a resource that a failed deployment has created.
      if (!discard(cloud, stack, id, made, resource.DeletionPolicy === "Retain")) throw new Error(`${id} is left`);
    };
    return { deployed: { made, properties, resource }, revert };
  } catch (error) {
    log(current?.made, current === undefined ? "CREATE_FAILED" : "UPDATE_FAILED", messageOf(error));
    throw new Error(`The following resource(s) failed: [${id}]: ${messageOf(error)}`, { cause: error });
  }
}

const logOf =
  (stack: Stack, id: string, type: string) =>
  (made: Made | undefined, status: string, reason?: string): void =>
    record(stack, { id, type, physicalId: made?.id ?? "", status, reason });

/**
 * Returns the settings that the deployment must change: those that differ from the last template, and with `revertsDrift` also those whose
 * actual value differs from the new template.
 */
function changedSettings({ revertsDrift }: Plan, current: Deployed | undefined, properties: Fields): string[] {
  const actual = current?.made.properties ?? {};
  const drifted = differences(actual, properties).filter((name) => revertsDrift && name in properties);
  return [...new Set([...drifted, ...differences(current?.properties ?? {}, properties)])];
}

/**
 * Throws if a resource must be replaced and its name stays the same. CloudFormation creates the new resource first, while the old one still
 * has this name.
 */
function refuseNamedReplacement({ made }: Deployed, properties: Fields): void {
  if (givenName(made.type, properties) !== made.id) return;
  throw new Error(
    `CloudFormation cannot update a stack when a custom-named resource requires replacing. Rename ${made.id} and update the stack again.`,
  );
}

/** Deletes or retains the old resources: those that the new template does not contain, and those that a new resource has replaced. */
function cleanUp(cloud: Cloud, stack: Stack, before: Stack["resources"], after: Stack["resources"]): void {
  const gone = [...before].filter(([id, { made }]) => after.get(id)?.made !== made);
  if (gone.length > 0) setStatus(stack, "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS");
  for (const [id, { made, resource }] of gone.toReversed()) {
    discard(cloud, stack, id, made, isRetained(after.has(id) ? resource.UpdateReplacePolicy : resource.DeletionPolicy));
  }
}

const isRetained = (policy: string | undefined): boolean => policy?.startsWith("Retain") === true;

/** Deletes or retains one resource. Returns true if it no longer belongs to the stack. */
function discard({ account }: Cloud, stack: Stack, id: string, made: Made, retained: boolean): boolean {
  const log = logOf(stack, id, made.type);
  if (retained) {
    made.owner = undefined;
    log(made, "DELETE_SKIPPED");
    return true;
  }
  try {
    remove(account, made);
    log(made, "DELETE_COMPLETE");
    return true;
  } catch (error) {
    log(made, "DELETE_FAILED", messageOf(error));
    return false;
  }
}

export function destroy(cloud: Cloud, stack: Stack): void {
  setStatus(stack, "DELETE_IN_PROGRESS", "User Initiated");
  const used = stack.outputs.map(({ ExportName }) => userOf(cloud, stack, ExportName)).find((use) => use !== undefined);
  if (used !== undefined) {
    setStatus(stack, "DELETE_FAILED", `Cannot delete export ${used.name} as it is in use by ${used.by}`);
    return;
  }
  const order = stack.template === undefined ? [] : inOrder(stack.template).toReversed();
  const left = order.filter((id) => {
    const deployed = stack.resources.get(id);
    return (
      deployed !== undefined && !discard(cloud, stack, id, deployed.made, isRetained(deployed.resource.DeletionPolicy))
    );
  });
  if (left.length > 0) {
    setStatus(stack, "DELETE_FAILED", `The following resource(s) failed to delete: [${left.join(", ")}].`);
    return;
  }
  Object.assign(stack, { resources: new Map(), outputs: [], imports: new Set() });
  setStatus(stack, "DELETE_COMPLETE");
}

interface Evaluated {
  readonly next: ReadonlyMap<string, Deployed>;
  /** `scopeOf` adds the name of each export that the template imports to this set. */
  readonly imports: Set<string>;
}

function scopeOf(cloud: Cloud, stack: Stack, plan: Plan, { next, imports }: Evaluated): Scope {
  const pseudo = {
    "AWS::AccountId": ACCOUNT,
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::StackId": stack.id,
    "AWS::StackName": stack.name,
    "AWS::URLSuffix": "amazonaws.com",
  };
  return {
    parameters: { ...plan.parameters, ...pseudo },
    resource: (id, attribute) => {
      const made = next.get(id)?.made;
      if (made === undefined) throw new ValidationError(`${id} does not exist`);
      return attribute === undefined ? referenceTo(made) : attributeOf(made, attribute);
    },
    importValue: (name) => {
      const value = exportsOf(cloud).get(name);
      if (value === undefined) throw new ValidationError(`No export named ${name} found.`);
      imports.add(name);
      return value;
    },
  };
}

const outputsOf = ({ Outputs }: Template, scope: Scope): Stack["outputs"] =>
  Object.entries(Outputs).map(([OutputKey, { Value, Export }]) => ({
    OutputKey,
    OutputValue: String(evaluate(Value, scope)),
    ExportName: Export === undefined ? undefined : String(evaluate(Export.Name, scope)),
  }));

const isLive = ({ status }: Stack): boolean => status !== "DELETE_COMPLETE";

/** Returns the export and the other stack that imports it, if there is one. */
function userOf({ stacks }: Cloud, stack: Stack, name: string | undefined): { name: string; by: string } | undefined {
  if (name === undefined) return undefined;
  const user = stacks.find((other) => other !== stack && isLive(other) && other.imports.has(name));
  return user && { name, by: user.name };
}

/** Throws if an export that another stack imports would be changed or removed, or if another stack has an export with the same name. */
function checkExports(cloud: Cloud, stack: Stack, outputs: Stack["outputs"]): void {
  for (const { ExportName, OutputValue } of stack.outputs) {
    const same = outputs.find((output) => output.ExportName === ExportName);
    const use = same?.OutputValue === OutputValue ? undefined : userOf(cloud, stack, ExportName);
    if (use !== undefined) {
      const what = same === undefined ? "deleted" : "updated";
      throw new ValidationError(`Export ${use.name} cannot be ${what} as it is in use by ${use.by}`);
    }
  }
  const taken = exportsOf(cloud, (other) => other !== stack);
  const twice = outputs.find(({ ExportName }) => ExportName !== undefined && taken.has(ExportName));
  if (twice !== undefined) {
    throw new ValidationError(`Export with name ${twice.ExportName} is already exported by another stack`);
  }
}

function exportsOf({ stacks }: Cloud, test: (stack: Stack) => boolean = () => true): Map<string, string> {
  const outputs = stacks.filter((stack) => isLive(stack) && test(stack)).flatMap((stack) => stack.outputs);
  return new Map(
    outputs.flatMap(({ ExportName, OutputValue }) => (ExportName === undefined ? [] : [[ExportName, OutputValue]])),
  );
}
