/** Limits each company's requests with a fixed number of API keys in a usage plan, so a new company needs no new AWS resource. */
import { ApiKey, CfnUsagePlan, CfnUsagePlanKey, type SpecRestApi } from "aws-cdk-lib/aws-apigateway";
import { Fn } from "aws-cdk-lib/core";
import { Construct } from "constructs";
import { THROTTLE_KEYS, throttleKey } from "#shared/auth/throttle-key.ts";
import type { Throttle } from "../routes/route.ts";
import type { PathMethod } from "./gateway.ts";
import { shortStackUuid } from "./stack-id.ts";

export interface LimitedMethod extends Throttle {
  readonly path: string;
  readonly method: PathMethod;
}

/** Returns the common prefix of all API keys. Keys must be unique in the account and region, and contain only letters and digits. */
export const keyPrefix = (scope: Construct): string => Fn.join("", ["canvassing", shortStackUuid(scope), "throttle"]);

export function throttleCompanies(
  home: Construct,
  api: SpecRestApi,
  company: Throttle,
  methods: readonly LimitedMethod[],
): void {
  const scope = new Construct(home, "CompanyThrottle");
  // The CDK's class UsagePlan can throttle only methods that are CDK constructs, not those of an OpenAPI document.
  const plan = new CfnUsagePlan(scope, "Plan", {
    description: "Limits the requests of each company",
    throttle: { rateLimit: company.perSecond, burstLimit: company.burst },
    apiStages: [{ apiId: api.restApiId, stage: api.deploymentStage.stageName, throttle: methodThrottles(methods) }],
  });
  const prefix = keyPrefix(scope);
  let last: CfnUsagePlanKey | undefined;
  // Slot 0 has the key of requests with refused tokens (`REFUSED`), so there is one key more than `THROTTLE_KEYS`.
  for (let slot = 0; slot <= THROTTLE_KEYS; slot++) {
    const key = new ApiKey(scope, `Key${slot}`, { value: throttleKey(prefix, slot) });
    // In a region, API Gateway adds only one key at a time to usage plans (https://github.com/serverless/serverless/issues/12065), and
    // creates at most five a second. This dependency makes CloudFormation wait.
    if (last !== undefined) key.node.addDependency(last);
    last = new CfnUsagePlanKey(scope, `InPlan${slot}`, { keyId: key.keyId, keyType: "API_KEY", usagePlanId: plan.ref });
  }
}

const methodThrottles = (methods: readonly LimitedMethod[]) =>
  Object.fromEntries(
    methods.map(({ path, method, perSecond, burst }) => [
      `${path}/${method}`,
      { rateLimit: perSecond, burstLimit: burst },
    ]),
  );
