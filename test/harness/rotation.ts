/** The expensive test files of which each run of CI executes only a third. `npm run test:deep` executes all of them. */

/** The groups need about the same processor time: 90 to 100 s. Each file starts whole processes, or works with data of the largest size. */
const GROUPS: readonly (readonly string[])[] = [
  ["test/http/answer-limits.api.deep.test.ts", "test/load/load.deep.test.ts", "test/infra/deploy.deep.test.ts"],
  [
    "test/releases/two-releases.deep.test.ts",
    "test/infra/restore-drill.deep.test.ts",
    "test/infra/company-end.deep.test.ts",
    "test/infra/receiver-commands.deep.test.ts",
  ],
  [
    "test/webhooks/fan-out.deep.test.ts",
    "test/infra/local-process.deep.test.ts",
    "test/infra/app.deep.test.ts",
    "test/infra/usage.deep.test.ts",
  ],
];

/** Returns the paths of the files that a run of CI does not execute. `draw` is the number in `TEST_DRAW`. */
export const leftOut = (draw: number): string[] => GROUPS.filter((_, i) => i !== draw % GROUPS.length).flat();
