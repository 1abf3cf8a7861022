/** Copies the console's files to its bucket at the end of a deployment, because CloudFormation cannot delete a bucket with files. */
import { LogGroup } from "aws-cdk-lib/aws-logs";
import type { IBucket } from "aws-cdk-lib/aws-s3";
import { BucketDeployment, CacheControl, Source } from "aws-cdk-lib/aws-s3-deployment";
import { Annotations, CfnResource, CustomResource, Duration, RemovalPolicy, Stack } from "aws-cdk-lib/core";
import type { Construct, IConstruct } from "constructs";
import * as z from "zod/mini";
import { consoleDirectory } from "../build/console.ts";
import { ASSETS, CONFIG, type ConsoleSettings, consoleConfig, consoleFiles } from "../edge/console-site.ts";
import { accept } from "./rules.ts";

const ASSET_DAYS = 365;

/** `DependsOn` of the copies omits these types to save 30 KB. Listed resources depend on them, so the copies wait for them, too. */
const IMPLIED = /^AWS::(?:IAM::Role|Lambda::(?:Function|Alias|Version))$/;

/** Copies the files. Call it last, because the copies depend on all other resources of the stack. */
export function publishFiles(home: Construct, bucket: IBucket, settings: ConsoleSettings, logDays: number): void {
  const logGroup = new LogGroup(home, "PublishLogs", { retention: logDays, removalPolicy: RemovalPolicy.DESTROY });
  const common = { destinationBucket: bucket, prune: false, logGroup, memoryLimit: 256 };
  const directory = consoleFiles();
  if (directory !== consoleDirectory) {
    Annotations.of(home).addWarningV2(
      "canvassing:console",
      "The console is not built, so a page says that it is missing: run npm run console before the deployment.",
    );
  }
  const files = Source.asset(directory);
  const assets = new BucketDeployment(home, "Assets", {
    ...common,
    sources: [files],
    exclude: ["*"],
    include: [`${ASSETS}*`],
    cacheControl: [CacheControl.setPublic(), CacheControl.maxAge(Duration.days(ASSET_DAYS)), CacheControl.immutable()],
  });
  const pages = new BucketDeployment(home, "Documents", {
    ...common,
    sources: [files, Source.data(CONFIG, consoleConfig(settings))],
    exclude: [`${ASSETS}*`],
    cacheControl: [CacheControl.noCache()],
  });
  const copies = [assets, pages].flatMap(({ node }) =>
    node.children.filter((child) => child instanceof CustomResource),
  );
  const [copyOfAssets, copyOfPages] = copies;
  const isCopy = (made: IConstruct): boolean => copies.some((copy) => made.node.scopes.includes(copy));
  const others = Stack.of(home)
    .node.findAll()
    .filter((made) => CfnResource.isCfnResource(made) && !IMPLIED.test(made.cfnResourceType) && !isCopy(made));
  copyOfAssets?.node.addDependency(...others);
  // Copy the pages after the assets, so that a browser with a new page finds its assets. Older assets stay for browsers with an older page.
  if (copyOfAssets !== undefined) copyOfPages?.node.addDependency(copyOfAssets);
  const findings = findingsOf(home, bucket);
  for (const made of Stack.of(home).node.children) {
    if (made.node.id.startsWith("Custom::CDKBucketDeployment")) accept(made, findings);
  }
}

/** Returns the findings of cdk-nag that are accepted for the CDK's copying function. The function runs only during a deployment. */
function findingsOf(home: Construct, bucket: IBucket): Record<string, string> {
  const stack = Stack.of(home);
  const qualifier = stack.synthesizer.bootstrapQualifier ?? "hnb659fds";
  const [pages] = z.parse(Arn, stack.resolve(bucket.bucketArn))["Fn::GetAtt"];
  const ids = [
    "AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole]",
    ...["s3:GetBucket*", "s3:GetObject*", "s3:List*", "s3:Abort*", "s3:DeleteObject*"].map(
      (action) => `AwsSolutions-IAM5[Action::${action}]`,
    ),
    `AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:s3:::cdk-${qualifier}-assets-<AWS::AccountId>-<AWS::Region>/*]`,
    `AwsSolutions-IAM5[Resource::<${pages}.Arn>/*]`,
    ...["AwsSolutions-L1", "Serverless-LambdaDLQ", "Serverless-LambdaTracing", "Serverless-LambdaLatestVersion"],
  ];
  return Object.fromEntries(ids.map((id) => [id, CDK_OWN]));
}

const CDK_OWN = "The CDK makes this function. It runs only during a deployment and copies the files of the console.";
const Arn = z.object({ "Fn::GetAtt": z.tuple([z.string(), z.string()]) });
