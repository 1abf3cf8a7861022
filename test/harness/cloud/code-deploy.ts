/**
 * Simulates how CodeDeploy moves an alias to a new version of its function. For five minutes, the old version gets nine tenths of the
 * invocations, with the new rights of the function's role. If an alarm of the deployment group is on, CodeDeploy moves the alias back.
 */
import { lostRights, type Right, rightsOf } from "../../../infra/release/rights.ts";
import { at, type Fields, listed } from "../../infra/template.ts";
import { type Account, type Made, nameOfArn, ServiceError } from "./account.ts";
import type { Resource } from "./template.ts";

/**
 * A move of an alias from an old version of a function to a new one. `lost` contains the rights that the deployment has removed from the
 * function's role, although the old version still gets invocations.
 */
export interface Move {
  readonly alias: string;
  readonly lost: readonly Right[];
}

interface Moving {
  readonly account: Account;
  readonly moves: Move[];
}

interface Placed {
  readonly made: Made;
  readonly properties: Fields;
}

interface Change {
  /** The logical id and the definition of the alias in the template. */
  readonly id: string;
  readonly resource: Resource;
  /** The names of the settings that change. */
  readonly changed: readonly string[];
  readonly before: ReadonlyMap<string, Placed>;
  readonly after: ReadonlyMap<string, Placed>;
}

/** Moves the alias if its function has a new version and its definition names a deployment group. Throws if an alarm stops the move. */
export function moveAlias(
  { account, moves }: Moving,
  alias: Made,
  { id, resource, changed, before, after }: Change,
): void {
  const group = at(resource.UpdatePolicy, "CodeDeployLambdaAliasUpdate", "DeploymentGroupName", "Ref");
  if (group === undefined || !changed.includes("FunctionVersion")) return;
  const roles = [before, after].map((placed) => roleOf(placed, alias.properties.FunctionName));
  const [old, current] = roles.map((role) => rightsOf(role?.Policies));
  moves.push({ alias: id, lost: lostRights(old ?? [], current ?? []) });
  const alarms = listed(at(after.get(String(group))?.properties, "AlarmConfiguration", "Alarms"));
  const on = alarms.map((alarm) => String(at(alarm, "Name"))).find((name) => account.alarmsOn.has(name));
  if (on !== undefined) throw new ServiceError(`The deployment was stopped because the alarm ${on} was activated`);
}

function roleOf(placed: ReadonlyMap<string, Placed>, functionName: unknown): Fields | undefined {
  const all = [...placed.values()];
  const behind = all.find(({ made }) => made.type === "AWS::Lambda::Function" && made.id === functionName);
  const role = nameOfArn(behind?.properties.Role);
  return all.find(({ made }) => made.type === "AWS::IAM::Role" && made.id === role)?.properties;
}
