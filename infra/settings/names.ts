/** The names of the stacks of a deployment. Admin commands need them too, and must not load the CDK. */

const STACK_NAME = "Canvassing";

/**
 * A stage is part of the names of stacks, which CloudFormation limits to 128 letters, digits and hyphens, and of generated names, of which
 * the shortest, those of functions and roles, have 64 characters. The name `data` would resemble the name of a data stack.
 */
export const STAGE_NAME = /^(?!(?:.*-)?data$)[a-z][a-z0-9-]{0,18}[a-z0-9]$/;

/** Without a stage, the stack has the name that all deployments had before there were stages. */
export const stackNameOf = (stage: string | undefined): string =>
  stage === undefined ? STACK_NAME : `${STACK_NAME}-${stage}`;

export const dataStackName = (stackName: string): string => `${stackName}-Data`;
