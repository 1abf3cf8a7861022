/**
 * Defines the names of a deployment's stacks and of its SSM parameter. They are in a separate file, because admin commands need the names
 * but must not load the CDK.
 */

const STACK_NAME = "Canvassing";

/**
 * The pattern of the name of a stage (one of several deployments in an account). The name has at most 20 characters, because the generated
 * names of functions and roles contain it and have at most 64 characters. It must not be `data` or end with `-data`, because the service
 * stack `Canvassing-data` could be confused with the data stack `Canvassing-Data`.
 */
export const STAGE_NAME = /^(?!(?:.*-)?data$)[a-z][a-z0-9-]{0,18}[a-z0-9]$/;

/** Describes the names that `STAGE_NAME` matches, for error messages. */
export const STAGE = "2 to 20 lower-case letters, digits and hyphens, such as test";

/**
 * Returns the name of the service stack. Without a stage, the stack has the name that every deployment had before stages were introduced.
 */
export const stackNameOf = (stage: string | undefined): string =>
  stage === undefined ? STACK_NAME : `${STACK_NAME}-${stage}`;

export const dataStackName = (stackName: string): string => `${stackName}-Data`;

export const canaryParameter = (stackName: string): string => `/${stackName}/canary`;
