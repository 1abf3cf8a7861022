/** The names of the stacks as they are deployed by default, apart from the CDK: an admin's command need not load that. */
export const STACK_NAME = "Canvassing";

/** The stack that keeps the data of the service's stack of this name. */
export const dataStackName = (stackName: string): string => `${stackName}-Data`;
