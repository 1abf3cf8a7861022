/** The name of the stack as it is deployed by default, apart from the CDK: an admin's command need not load that. */
export const STACK_NAME = "Canvassing";
