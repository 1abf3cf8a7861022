/**
 * The name of the parameter with the credentials of the scheduled smoke test. The stack reads the name, and `npm run canary` writes the
 * parameter's value.
 */
export const canaryParameter = (stackName: string): string => `/${stackName}/canary`;
