/** Executes deployments and deletions of the stacks of the simulated CloudFormation. */
import { type Fields, listed } from "../../infra/template.ts";
import { ACCOUNT, attributeOf, differences, find, givenName, type Made, REGION, referenceTo } from "./account.ts";
import { moveAlias } from "./code-deploy.ts";
import { checkExports, exportsOf, userOf } from "./exports.ts";
import { refuseParallel } from "./parallel.ts";
import { change, create, remove } from "./resource-handlers.ts";
import { replacing } from "./spec.ts";
import { type Cloud, type Deployed, now, type Plan, record, type Stack, setStatus } from "./stack-state.ts";
import { condition, evaluate, inOrder, type Resource, type Scope, type Template, ValidationError } from "./template.ts";

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

/** Executes a plan. If a step fails, it undoes all steps, as CloudFormation does. The stack's status shows the result. */
export function deploy(cloud: Cloud, stack: Stack, plan: Plan): void {
  const isNew = stack.template === undefined;
  const verb = isNew ? "CREATE" : "UPDATE";
  setStatus(stack, `${verb}_IN_PROGRESS`, "User Initiated");
  const undo: (() => void)[] = [];
  const created: string[] = [];
  const next = new Map<string, Deployed>();
  const scope = scopeOf(cloud, stack, plan, next);
  try {
    checkRules(plan.template, scope);
    for (const id of inOrder(plan.template)) {
      const resource = plan.template.Resources[id];
      if (resource === undefined) continue;
      if (resource.Condition !== undefined && !condition(resource.Condition, scope)) continue;
      next.set(id, place(cloud, stack, plan, { id, resource, scope, undo, created, next }));
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
  Object.assign(stack, { resources: next, text: plan.text, template: plan.template, imports: importsOf(plan, scope) });
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
  readonly id: string;
  readonly resource: Resource;
  readonly scope: Scope;
  readonly undo: (() => void)[];
  /** The ids of the resources that this deployment has created so far. */
  readonly created: string[];
  /** The resources that this deployment has created or changed so far, and those that it leaves as they are. */
  readonly next: ReadonlyMap<string, Deployed>;
}

/** Creates, imports, replaces or changes one resource, or leaves it as it is. */
function place(cloud: Cloud, stack: Stack, plan: Plan, { id, resource, scope, undo, created, next }: Place): Deployed {
  const { Type } = resource;
  const resolved = evaluate(resource.Properties, scope);
  const properties: Fields = typeof resolved === "object" && resolved !== null ? { ...resolved } : {};
  const log = (made: Made | undefined, status: string, reason?: string) =>
    record(stack, id, Type, made?.id ?? "", status, reason);
  const current = stack.resources.get(id);
  const existing = current === undefined ? importable(cloud, plan, id) : undefined;
  if (existing !== undefined) {
    // An import does not change the resource's settings.
    existing.owner = { stackId: stack.id, logicalId: id };
    undo.push(() => {
      existing.owner = undefined;
    });
    log(existing, "IMPORT_COMPLETE");
    return { made: existing, properties, resource };
  }
  const changed = changedSettings(plan, current, properties);
  if (current !== undefined && current.resource.Type === Type && changed.length === 0) {
    return { ...current, properties, resource };
  }
  const replaced = current === undefined ? [] : replacing(Type, changed);
  try {
    if (current !== undefined && current.resource.Type === Type && replaced.length === 0) {
      const { made } = current;
      const old = made.properties;
      log(made, "UPDATE_IN_PROGRESS");
      change(cloud.account, made, properties);
      undo.push(() => {
        made.properties = old;
      });
      if (Type === "AWS::Lambda::Alias") {
        moveAlias(cloud, made, { id, resource, changed, before: stack.resources, after: next });
      }
      log(made, "UPDATE_COMPLETE");
      return { made, properties, resource };
    }
    refuseNamedReplacement(current, Type, properties);
    if (current !== undefined) {
      log(
        current.made,
        "UPDATE_IN_PROGRESS",
        `Requested update requires the creation of a new physical resource (${replaced.join(", ")})`,
      );
    }
    log(undefined, "CREATE_IN_PROGRESS");
    const owner = { stackId: stack.id, logicalId: id };
    refuseParallel(plan.template.Resources, id, created);
    const made = create(cloud.account, { type: Type, properties, stackName: stack.name, ...owner });
    created.push(id);
    undo.push(() => undoCreation(cloud, stack, made, resource));
    log(made, "CREATE_COMPLETE");
    return { made, properties, resource };
  } catch (error) {
    log(current?.made, current === undefined ? "CREATE_FAILED" : "UPDATE_FAILED", messageOf(error));
    throw new Error(`The following resource(s) failed: [${id}]: ${messageOf(error)}`, { cause: error });
  }
}

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
function refuseNamedReplacement(current: Deployed | undefined, type: string, properties: Fields): void {
  const name = givenName(type, properties);
  if (current === undefined || name === undefined || current.resource.Type !== type || current.made.id !== name) return;
  throw new Error(
    `CloudFormation cannot update a stack when a custom-named resource requires replacing. Rename ${name} and update the stack again.`,
  );
}

/**
 * Deletes a resource that a failed deployment has created. If its deletion policy is `Retain`, the resource remains without a stack. Throws
 * if AWS refuses the deletion.
 */
function undoCreation({ account }: Cloud, stack: Stack, made: Made, { DeletionPolicy }: Resource): void {
  const log = (status: string, reason?: string) =>
    record(stack, made.owner?.logicalId ?? "", made.type, made.id, status, reason);
  if (DeletionPolicy === "Retain") {
    log("DELETE_SKIPPED");
    made.owner = undefined;
    return;
  }
  try {
    remove(account, made);
    log("DELETE_COMPLETE");
  } catch (error) {
    log("DELETE_FAILED", messageOf(error));
    throw error;
  }
}

/** Deletes or retains the old resources: those that the new template does not contain, and those that a new resource has replaced. */
function cleanUp(cloud: Cloud, stack: Stack, before: Stack["resources"], after: Stack["resources"]): void {
  const gone = [...before].filter(([id, { made }]) => after.get(id)?.made !== made);
  if (gone.length > 0) setStatus(stack, "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS");
  for (const [id, deployed] of gone.toReversed()) {
    const { UpdateReplacePolicy, DeletionPolicy } = deployed.resource;
    discard(cloud, stack, id, deployed, after.has(id) ? UpdateReplacePolicy : DeletionPolicy);
  }
}

/**
 * Deletes one resource, or retains it if `policy` says so.
 *
 * @returns true if the resource no longer belongs to the stack
 */
function discard(cloud: Cloud, stack: Stack, id: string, { made }: Deployed, policy: string | undefined): boolean {
  const log = (status: string, reason?: string) => record(stack, id, made.type, made.id, status, reason);
  if (policy?.startsWith("Retain")) {
    made.owner = undefined;
    log("DELETE_SKIPPED");
    return true;
  }
  try {
    remove(cloud.account, made);
    log("DELETE_COMPLETE");
    return true;
  } catch (error) {
    log("DELETE_FAILED", messageOf(error));
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
    return deployed !== undefined && !discard(cloud, stack, id, deployed, deployed.resource.DeletionPolicy);
  });
  if (left.length > 0) {
    setStatus(stack, "DELETE_FAILED", `The following resource(s) failed to delete: [${left.join(", ")}].`);
    return;
  }
  stack.resources = new Map();
  stack.outputs = [];
  stack.imports = new Set();
  setStatus(stack, "DELETE_COMPLETE");
}

function importsOf(plan: Plan, scope: Scope): Set<string> {
  const names = new Set<string>();
  const importValue = (name: string) => {
    names.add(name);
    return scope.importValue(name);
  };
  for (const { Properties } of Object.values(plan.template.Resources)) evaluate(Properties, { ...scope, importValue });
  evaluate(plan.template.Outputs, { ...scope, importValue });
  return names;
}

function scopeOf(cloud: Cloud, stack: Stack, plan: Plan, next: ReadonlyMap<string, Deployed>): Scope {
  const pseudo = {
    "AWS::AccountId": ACCOUNT,
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::StackId": stack.id,
    "AWS::StackName": stack.name,
    "AWS::URLSuffix": "amazonaws.com",
  };
  return {
    template: plan.template,
    parameters: { ...plan.parameters, ...pseudo },
    resource: (id, attribute) => {
      const made = next.get(id)?.made;
      if (made === undefined) throw new ValidationError(`${id} does not exist, because its condition is false`);
      return attribute === undefined ? referenceTo(made) : attributeOf(made, attribute);
    },
    importValue: (name) => {
      const value = exportsOf(cloud).get(name);
      if (value === undefined) throw new ValidationError(`No export named ${name} found.`);
      return value;
    },
  };
}

function outputsOf({ Outputs }: Template, scope: Scope): Stack["outputs"] {
  return Object.entries(Outputs).flatMap(([OutputKey, output]) => {
    if (output.Condition !== undefined && !condition(output.Condition, scope)) return [];
    const ExportName = output.Export === undefined ? undefined : String(evaluate(output.Export.Name, scope));
    return [{ OutputKey, OutputValue: String(evaluate(output.Value, scope)), ExportName }];
  });
}

function checkRules({ Rules }: Template, scope: Scope): void {
  for (const { Assertions } of Object.values(Rules)) {
    const broken =
      listed(Assertions).length === 0 ? undefined : Assertions.find(({ Assert }) => evaluate(Assert, scope) !== true);
    if (broken !== undefined) throw new ValidationError(`Template validation error: ${broken.AssertDescription}`);
  }
}
