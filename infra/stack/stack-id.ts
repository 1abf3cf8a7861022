/** Parts of the stack's id, `arn:aws:cloudformation:REGION:ACCOUNT:stack/NAME/UUID`, which make names unique. */
import { Fn, Stack } from "aws-cdk-lib/core";
import type { Construct } from "constructs";

export const stackUuid = (scope: Construct): string => Fn.select(2, Fn.split("/", Stack.of(scope).stackId));

/** The part of the UUID before its first hyphen. */
export const shortStackUuid = (scope: Construct): string => Fn.select(0, Fn.split("-", stackUuid(scope)));
