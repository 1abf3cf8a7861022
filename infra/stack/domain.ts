/** The API's own domain name. It outlives the data stack, because a new domain name would have another DNS target. */
import { CfnBasePathMapping, CfnDomainName, type SpecRestApi } from "aws-cdk-lib/aws-apigateway";
import { CfnOutput, RemovalPolicy } from "aws-cdk-lib/core";
import type { Construct } from "constructs";
import type { Domain } from "../settings/config.ts";

export function createDomain(scope: Construct, { name, certificate }: Domain): void {
  const domain = new CfnDomainName(scope, "Domain", {
    domainName: name,
    regionalCertificateArn: certificate,
    endpointConfiguration: { types: ["REGIONAL"] },
    securityPolicy: "TLS_1_2",
  });
  domain.applyRemovalPolicy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE);
  new CfnOutput(scope, "DomainTarget", {
    value: domain.attrRegionalDomainName,
    description: "the name to which the DNS record of the domain must point",
  });
  new CfnOutput(scope, "DomainTargetZone", {
    value: domain.attrRegionalHostedZoneId,
    description: "the hosted zone of an alias record in Route 53",
  });
}

/** Maps the domain to the API. The name is a literal, because CloudFormation refuses to change an export that another stack imports. */
export function mapDomain(scope: Construct, api: SpecRestApi, { name, basePath }: Domain): void {
  new CfnBasePathMapping(scope, "DomainMapping", {
    domainName: name,
    ...(basePath !== undefined && { basePath }),
    restApiId: api.restApiId,
    stage: api.deploymentStage.stageName,
  });
}

export const urlOf = ({ name, basePath }: Domain): string =>
  `https://${name}${basePath === undefined ? "" : `/${basePath}`}`;
