/** The expensive test files of which each run of CI executes only a fifth. `npm run test:deep` executes all of them. */

/**
 * The groups of these files. Each group needs about two minutes of processor time. The files are expensive because they start whole
 * processes, use data of the maximum size, or repeat work under load or with many simulated crashes.
 */
const GROUPS: readonly (readonly string[])[] = [
  [
    "test/infra/cli/csv-import.api.deep.test.ts",
    "test/load/load.deep.test.ts",
    "test/infra/build/docs-page.api.deep.test.ts",
    "test/company-index/verify.deep.test.ts",
    "test/company-index/rebuild.deep.test.ts",
    "test/infra/stack/app.deep.test.ts",
  ],
  [
    "test/http/answer-limits.api.deep.test.ts",
    "test/security/people.deep.test.ts",
    "test/db/throttling.deep.test.ts",
    "test/prospects/export.deep.test.ts",
    "test/jobs/matched-import.deep.test.ts",
    "test/offline/browser.api.deep.test.ts",
  ],
  [
    "test/infra/stack/deploy.deep.test.ts",
    "test/console/every-page.api.deep.test.ts",
    "test/webhooks/isolation.deep.test.ts",
    "test/jobs/import-jobs.deep.test.ts",
    "test/webhooks/reconcile.deep.test.ts",
    "test/infra/cli/restore-company.deep.test.ts",
  ],
  [
    "test/releases/two-releases.deep.test.ts",
    "test/infra/cli/restore-drill.deep.test.ts",
    "test/infra/cli/company-end.deep.test.ts",
    "test/webhooks/receiver-commands.deep.test.ts",
    "test/jobs/restart.deep.test.ts",
    "test/clients/typescript-clients.api.deep.test.ts",
  ],
  [
    "test/infra/cli/csv-export.api.deep.test.ts",
    "test/webhooks/fan-out.deep.test.ts",
    "test/infra/local/process.deep.test.ts",
    "test/infra/cli/usage.deep.test.ts",
    "test/webhooks/restart.deep.test.ts",
    "test/webhooks/deleting.deep.test.ts",
  ],
];

/** Returns the paths of the files that a run of CI does not execute. `draw` is the number in `TEST_DRAW`. */
export const leftOut = (draw: number): string[] => GROUPS.filter((_, i) => i !== draw % GROUPS.length).flat();
