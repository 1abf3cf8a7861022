/**
 * Checks that the resources in the settings are in the region and account of the deployment. CloudFormation would refuse a wrong one only
 * after it has created other resources.
 */

/** The region and account of the deployment. Undefined if they are not known. */
export interface Place {
  readonly region?: string | undefined;
  readonly account?: string | undefined;
}

const ARN = /^arn:[^:]+:[^:]+:([^:]+):(\d{12}):/;
const POOL_ID = /^([\w-]+)_/;

/**
 * For each setting: whether AWS requires the resource to be in the deployment's region and account. `sesIdentity` is not in the list,
 * because Cognito can also use an SES identity of another region.
 */
const rules = {
  // API Gateway uses only certificates of its own region and account.
  certificate: { region: true, account: true },
  // The schema of the setting requires us-east-1, because CloudFront uses no other certificates.
  consoleCertificate: { region: false, account: true },
  // KMS does not decrypt with a key of another region. The policy of a key may allow its use by another account.
  secretsKey: { region: true, account: false },
  // The functions find the table by its name in their own region and account.
  activeTableStream: { region: true, account: true },
  // The functions find the user pool by its id in their own region.
  userPool: { region: true, account: false },
} as const;

/** Returns a fault for each resource in a wrong region or account. A region or account that is not known is not checked. */
export function placeFaults(
  settings: { readonly [key in keyof typeof rules]?: string | undefined },
  { region, account }: Place,
): string[] {
  return Object.entries(rules).flatMap(([key, rule]) => {
    const value = Object.entries(settings).find(([name]) => name === key)?.[1] ?? "";
    const [, foundRegion, foundAccount] = ARN.exec(value) ?? POOL_ID.exec(value) ?? [];
    if (rule.region && differ(foundRegion, region)) {
      const remedy = `name a resource in ${region}, or set AWS_REGION=${foundRegion} to deploy there`;
      return [`${key}: its region is ${foundRegion}, and the deployment's region is ${region}; ${remedy}`];
    }
    if (rule.account && differ(foundAccount, account)) {
      const known = `its account is ${foundAccount}, and the deployment's account is ${account}`;
      return [`${key}: ${known}; name a resource of this account`];
    }
    return [];
  });
}

const differ = (found: string | undefined, expected: string | undefined): boolean =>
  found !== undefined && expected !== undefined && found !== expected;
