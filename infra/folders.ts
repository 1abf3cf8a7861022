/** Rights to folders of the bucket, and why the rule pack's findings about them are accepted. */
import { Effect, PolicyStatement } from "aws-cdk-lib/aws-iam";
import type { Bucket } from "aws-cdk-lib/aws-s3";
import * as z from "zod/mini";
import { type Access, type Folder, folderNames } from "./routes/access.ts";

const ExportedArn = z.object({ "Fn::ImportValue": z.string() });

/** The rule pack names the bucket as the role does, by what its stack exports. */
export function folderFindings(
  { stack, bucketArn }: Bucket,
  files: NonNullable<Access["files"]>,
): Record<string, string> {
  const { "Fn::ImportValue": name } = z.parse(ExportedArn, stack.resolve(stack.exportValue(bucketArn)));
  const reason = "The objects of this one folder, whose names are made at run time.";
  const folders = folderNames.filter((folder) => files[folder] !== undefined);
  return Object.fromEntries(folders.map((folder) => [`AwsSolutions-IAM5[Resource::${name}/${folder}/*]`, reason]));
}

export const fileStatements = (files: NonNullable<Access["files"]>, bucket: Bucket): PolicyStatement[] =>
  folderNames.flatMap((folder: Folder) =>
    files[folder] === undefined
      ? []
      : [
          new PolicyStatement({
            effect: Effect.ALLOW,
            actions: files[folder].map((action) => `s3:${action}`),
            resources: [bucket.arnForObjects(`${folder}/*`)],
          }),
        ],
  );
