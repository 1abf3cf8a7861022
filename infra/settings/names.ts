/** The names of a deployment's stacks. They are in a separate file, because admin commands need them but must not load the CDK. */

const STACK_NAME = "Canvassing";

/**
 * The pattern of a stage's name. The name is part of the names of stacks, which CloudFormation limits to 128 letters, digits and hyphens.
 * It is also part of the generated names of functions and roles, which have at most 64 characters. A stage named `data` could be confused
 * with a data stack.
 */
export const STAGE_NAME = /^(?!(?:.*-)?data$)[a-z][a-z0-9-]{0,18}[a-z0-9]$/;

/** Returns the name of the service stack. Without a stage, it is the name that all deployments had before stages were introduced. */
export const stackNameOf = (stage: string | undefined): string =>
  stage === undefined ? STACK_NAME : `${STACK_NAME}-${stage}`;

export const dataStackName = (stackName: string): string => `${stackName}-Data`;
