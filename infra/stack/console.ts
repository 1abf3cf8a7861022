/** Serves the console with a bucket, a CloudFront distribution that also forwards requests to the API, and a user pool client. */
import { CfnStage, type SpecRestApi } from "aws-cdk-lib/aws-apigateway";
import { Certificate } from "aws-cdk-lib/aws-certificatemanager";
import {
  AllowedMethods,
  type BehaviorOptions,
  CachePolicy,
  Distribution,
  Function as EdgeFunction,
  FunctionCode,
  FunctionEventType,
  FunctionRuntime,
  HeadersFrameOption,
  HeadersReferrerPolicy,
  HttpVersion,
  OriginProtocolPolicy,
  OriginRequestPolicy,
  OriginSslPolicy,
  PriceClass,
  ResponseHeadersPolicy,
  S3OriginAccessControl,
  SecurityPolicyProtocol,
  ViewerProtocolPolicy,
} from "aws-cdk-lib/aws-cloudfront";
import { HttpOrigin, S3BucketOrigin } from "aws-cdk-lib/aws-cloudfront-origins";
import { Bucket, type IBucket } from "aws-cdk-lib/aws-s3";
import { Duration, Stack } from "aws-cdk-lib/core";
import { Construct } from "constructs";
import { API_PATHS, contentSecurityPolicy, edgeFunction, INDEX, pageHeaders } from "../edge/console-site.ts";
import type { Console, DeployConfig } from "../settings/config.ts";
import { STAGE } from "./api.ts";
import { createConsoleClient } from "./console-client.ts";
import { publishFiles } from "./console-files.ts";
import { privateBucket } from "./data-stack.ts";
import type { Platform } from "./function.ts";
import { accept } from "./rules.ts";
import { stackUuid } from "./stack-id.ts";
import { CONSOLE_PROOF } from "./web-acl.ts";

interface Served {
  readonly url: string;
  /** Copies the console's files. Call it last, because the copies depend on all other resources of the stack. */
  readonly publish: () => void;
}

/** Creates the console. A local start gets no bucket and no distribution, because the local service serves the console. */
export function createConsole(
  scope: Stack,
  api: SpecRestApi,
  platform: Platform,
  config: DeployConfig & { readonly console: Console },
): Served {
  const { console } = config;
  const home = new Construct(scope, "Console");
  const served =
    console.localUrl === undefined
      ? serve(home, api, platform, config)
      : { url: console.localUrl, publish: () => undefined };
  const { url } = served;
  const clientId = console.clientId ?? createConsoleClient(home, platform, url, config);
  const stage = api.deploymentStage.node.defaultChild;
  // Both values are stage variables, because the functions are created before CloudFront's host name is known: CloudFront refers to the
  // API, and the API to its functions.
  if (stage instanceof CfnStage) stage.variables = { consoleUrl: url, consoleClient: clientId };
  return served;
}

function serve(
  home: Construct,
  api: SpecRestApi,
  platform: Platform,
  config: DeployConfig & { readonly console: Console },
): Served {
  const { basemap, offline = true, domain } = config.console;
  const { logDays } = config.retention;
  const bucket = createBucket(home);
  const forApi = apiBehavior(home, api, config);
  const distribution = new Distribution(home, "Distribution", {
    comment: `The console of ${Stack.of(home).stackName}`,
    defaultRootObject: INDEX,
    defaultBehavior: {
      origin: S3BucketOrigin.withOriginAccessControl(bucket, {
        originAccessControl: new S3OriginAccessControl(home, "FilesAccess", {
          originAccessControlName: globalName(home, "files"),
        }),
      }),
      viewerProtocolPolicy: ViewerProtocolPolicy.REDIRECT_TO_HTTPS,
      cachePolicy: CachePolicy.CACHING_OPTIMIZED,
      compress: true,
      responseHeadersPolicy: headersPolicy(home, contentSecurityPolicy(originOf(platform.bucket), basemap)),
      functionAssociations: [onRequest(home, "page-request")],
    },
    additionalBehaviors: Object.fromEntries(API_PATHS.map((path) => [path, forApi])),
    errorResponses: uncachedErrors.map((httpStatus) => ({ httpStatus, ttl: Duration.seconds(0) })),
    ...(domain !== undefined && {
      domainNames: [domain.name],
      certificate: Certificate.fromCertificateArn(home, "Certificate", domain.certificate),
      minimumProtocolVersion: SecurityPolicyProtocol.TLS_V1_2_2021,
    }),
    httpVersion: HttpVersion.HTTP2_AND_3,
    priceClass: PriceClass.PRICE_CLASS_100,
  });
  accept(distribution, acceptedFindings);
  return {
    url: `https://${domain?.name ?? distribution.distributionDomainName}`,
    publish: () => publishFiles(home, bucket, { issuer: platform.issuer, basemap, offline }, logDays),
  };
}

/**
 * CloudFront must not cache these errors. By default, it caches an error for ten seconds, even with `no-store`, so users of all companies
 * would get the error of one request. https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/custom-error-pages-expiration.html
 */
const uncachedErrors = [400, 403, 404, 405, 414, 500, 501, 502, 503, 504] as const;

const acceptedFindings = {
  "AwsSolutions-CFR1": "Users may travel, so no country is refused.",
  "AwsSolutions-CFR2":
    "The files are public. Requests to the API pass its throttles, and its web ACL if the deployment has one (setting webAcl). A web ACL of CloudFront must be in us-east-1.",
  "AwsSolutions-CFR3": "API Gateway logs each request to the API, and the files are the same for everybody.",
  "AwsSolutions-CFR4":
    "CloudFront's own certificate also permits TLS 1.0. A deployment with the setting consoleDomain requires TLS 1.2.",
} as const;

/** Creates the bucket of the console. It outlives the stack, because CloudFormation cannot delete a bucket that contains files. */
function createBucket(home: Construct): IBucket {
  const bucket = new Bucket(home, "Pages", privateBucket());
  accept(bucket, { "AwsSolutions-S1": "The files are public by CloudFront, and nothing else reads the bucket." });
  if (!isBucket(bucket)) throw new Error("the CDK made no bucket");
  return bucket;
}

/** With `exactOptionalPropertyTypes`, TypeScript does not accept Bucket as an IBucket. */
const isBucket = (made: unknown): made is IBucket => made instanceof Bucket;

/** Lets CloudFront forward requests to the API. Uses no error pages, because they would also replace the API's error responses. */
function apiBehavior(home: Construct, api: SpecRestApi, { domain }: DeployConfig): BehaviorOptions {
  const { region, urlSuffix } = Stack.of(api);
  const common = {
    protocolPolicy: OriginProtocolPolicy.HTTPS_ONLY,
    originSslProtocols: [OriginSslPolicy.TLS_V1_2],
    readTimeout: Duration.seconds(60),
    // The console's own URLs contain neither a stage nor a base path.
    customHeaders: { "X-Forwarded-Prefix": "/", [CONSOLE_PROOF]: stackUuid(api) },
  };
  // If a domain is set, API Gateway's own URL may be switched off. So CloudFront then uses the domain.
  const origin =
    domain === undefined
      ? new HttpOrigin(`${api.restApiId}.execute-api.${region}.${urlSuffix}`, { ...common, originPath: `/${STAGE}` })
      : new HttpOrigin(domain.name, {
          ...common,
          ...(domain.basePath !== undefined && { originPath: `/${domain.basePath}` }),
        });
  return {
    origin,
    allowedMethods: AllowedMethods.ALLOW_ALL,
    viewerProtocolPolicy: ViewerProtocolPolicy.HTTPS_ONLY,
    cachePolicy: CachePolicy.CACHING_DISABLED,
    // API Gateway needs its own host name in the header Host. Because caching is disabled, this policy also forwards the header
    // Authorization, which the edge function sets.
    originRequestPolicy: OriginRequestPolicy.ALL_VIEWER_EXCEPT_HOST_HEADER,
    compress: false,
    functionAssociations: [onRequest(home, "api-request")],
  };
}

function onRequest(home: Construct, name: "api-request" | "page-request") {
  const made = new EdgeFunction(home, name === "api-request" ? "ApiRequest" : "PageRequest", {
    code: FunctionCode.fromInline(edgeFunction(name, true)),
    runtime: FunctionRuntime.JS_2_0,
  });
  return { function: made, eventType: FunctionEventType.VIEWER_REQUEST };
}

/** Returns the origin of presigned URLs. The Content-Security-Policy must allow it, so that the console can upload files. */
const originOf = (bucket: Platform["bucket"]): string => {
  const { region, urlSuffix } = Stack.of(bucket);
  return `https://${bucket.bucketName}.s3.${region}.${urlSuffix}`;
};

/** Returns a name that is unique in the account, over all regions. The CDK's own names do not contain the region. */
function globalName(home: Construct, suffix: string): string {
  const { stackName, region } = Stack.of(home);
  return `${stackName}-${region}-${suffix}`;
}

const HSTS_DAYS = 730;

function headersPolicy(home: Construct, policy: string): ResponseHeadersPolicy {
  const { "Cross-Origin-Opener-Policy": openerPolicy, "Permissions-Policy": permissionsPolicy } = pageHeaders;
  return new ResponseHeadersPolicy(home, "Headers", {
    responseHeadersPolicyName: globalName(home, "headers"),
    comment: "Headers of the pages of the console",
    securityHeadersBehavior: {
      contentSecurityPolicy: { contentSecurityPolicy: policy, override: true },
      contentTypeOptions: { override: true },
      frameOptions: { frameOption: HeadersFrameOption.DENY, override: true },
      referrerPolicy: { referrerPolicy: HeadersReferrerPolicy.SAME_ORIGIN, override: true },
      strictTransportSecurity: { accessControlMaxAge: Duration.days(HSTS_DAYS), override: true },
    },
    customHeadersBehavior: {
      customHeaders: [
        { header: "Cross-Origin-Opener-Policy", value: openerPolicy, override: true },
        { header: "Permissions-Policy", value: permissionsPolicy, override: true },
      ],
    },
  });
}
