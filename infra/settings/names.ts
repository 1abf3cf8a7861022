/** The names of the stacks. Admin commands need them too, and must not load the CDK. */
export const STACK_NAME = "Canvassing";

export const dataStackName = (stackName: string): string => `${stackName}-Data`;
