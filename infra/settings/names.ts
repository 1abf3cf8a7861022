/** The names of a deployment's stacks and SSM parameter. Admin commands need them but must not load the CDK. */

const STACK_NAME = "Canvassing";

/**
 * Generated names of functions and roles contain the stage and have at most 64 characters. A stage must not end with `data`, because
 * `Canvassing-data` could be confused with the data stack `Canvassing-Data`.
 */
export const STAGE_NAME = /^(?!(?:.*-)?data$)[a-z][a-z0-9-]{0,18}[a-z0-9]$/;

export const STAGE = "2 to 20 lower-case letters, digits and hyphens, such as test";

/** Returns the name of the service stack. Without a stage, the name has no suffix. */
export const stackNameOf = (stage: string | undefined): string =>
  stage === undefined ? STACK_NAME : `${STACK_NAME}-${stage}`;

export const dataStackName = (stackName: string): string => `${stackName}-Data`;

export const canaryParameter = (stackName: string): string => `/${stackName}/canary`;
