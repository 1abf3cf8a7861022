/**
 * Returns the name of the SSM parameter with the credentials of the scheduled smoke test. The stack passes the name to the test's function,
 * and `npm run canary` writes the value.
 */
export const canaryParameter = (stackName: string): string => `/${stackName}/canary`;
