/**
 * Refuses requests that CloudFormation would send at the same time although the service accepts only one of them. CloudFormation creates
 * two resources at the same time, unless one of them depends on the other.
 */
import { ServiceError } from "./account.ts";
import { neededBy, type Resource } from "./template.ts";

type Resources = Readonly<Record<string, Resource>>;

/**
 * The types of which only one resource may be created at a time in a region. API Gateway refuses a second `CreateUsagePlanKey` while the
 * first one runs (https://github.com/serverless/serverless/issues/12065). It accepts five `CreateApiKey` in a second
 * (https://docs.aws.amazon.com/apigateway/latest/developerguide/limits.html). A template can stay below this rate only by dependencies.
 */
const oneAtATime: ReadonlySet<string> = new Set(["AWS::ApiGateway::ApiKey", "AWS::ApiGateway::UsagePlanKey"]);

/** For each template and each id of a resource in it, the ids of all resources that CloudFormation must create before this resource. */
const known = new WeakMap<Resources, Map<string, ReadonlySet<string>>>();

function earlier(resources: Resources, id: string): ReadonlySet<string> {
  const ofTemplate = known.get(resources) ?? new Map<string, ReadonlySet<string>>();
  known.set(resources, ofTemplate);
  const found = ofTemplate.get(id);
  if (found !== undefined) return found;
  const direct = neededBy(resources, id);
  const all = new Set([...direct, ...[...direct].flatMap((other) => [...earlier(resources, other)])]);
  ofTemplate.set(id, all);
  return all;
}

/**
 * Throws if the resource would be created at the same time as another one of its type.
 * @param created the ids of the resources that this deployment has created so far
 */
export function refuseParallel(resources: Resources, id: string, created: readonly string[]): void {
  const type = resources[id]?.Type ?? "";
  if (!oneAtATime.has(type)) return;
  const before = earlier(resources, id);
  const other = created.find((one) => resources[one]?.Type === type && !before.has(one));
  if (other === undefined) return;
  throw new ServiceError(
    `Unable to complete operation due to concurrent modification. Please try again later. (${type} ${other} and ${id})`,
  );
}
