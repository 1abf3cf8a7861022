/** The parameter with the credentials of the scheduled smoke test. The stack reads its name, and `npm run canary` writes its value. */
export const canaryParameter = (stackName: string): string => `/${stackName}/canary`;
