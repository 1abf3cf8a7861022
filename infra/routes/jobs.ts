/** Lists the routes of bulk jobs. */
import { currentDictionary, imports, indexReads, newIds } from "./access.ts";
import { type Access, get, LONG_WORK, post, type Route, type TableAccess } from "./route.ts";

/** The rights to add a job to the list of the company's bulk jobs, and to the queue of its bulk jobs that have not ended. */
export const newJob: TableAccess = { bulkJobList: ["PutItem"], bulkQueues: ["GetItem", "PutItem"] };

/** A paused or cancelled job lets the company's next job start, so the rights include starting that job. */
const control: Access = {
  table: { ...currentDictionary, bulkJobs: ["GetItem", "UpdateItem"], bulkQueues: ["GetItem", "PutItem"] },
  bulkQueue: "send",
};

const results: Access = { table: { bulkJobs: ["GetItem"] }, files: { bulk: ["GetObject"] } };

export const jobRoutes: readonly Route[] = [
  post("/api/prospects/bulk", "prospects/bulk", {
    table: {
      ...indexReads,
      ...currentDictionary,
      ...imports,
      ...newIds,
      ...newJob,
      prospects: ["BatchGetItem", "Query"],
      bulkJobs: ["PutItem"],
    },
    files: { bulk: ["PutObject"] },
    bulkQueue: "send",
    rate: LONG_WORK,
  }),
  get("/api/jobs", "jobs/list", {
    table: { ...currentDictionary, bulkJobs: ["BatchGetItem"], bulkJobList: ["Query"] },
  }),
  get("/api/jobs/{id}", "jobs/get", { table: { ...currentDictionary, bulkJobs: ["GetItem"] } }),
  get("/api/jobs/{id}/results", "jobs/results", results),
  get("/api/jobs/{id}/results.ndjson", "jobs/results-ndjson", { ...results, streamed: true }),
  get("/api/jobs/{id}/results.csv", "jobs/results-csv", { ...results, streamed: true }),
  post("/api/prospects/imports/{id}/undo", "imports/undo", {
    table: {
      ...currentDictionary,
      ...imports,
      ...newIds,
      ...newJob,
      importList: ["GetItem"],
      bulkJobs: ["BatchGetItem", "PutItem"],
    },
    bulkQueue: "send",
  }),
  post("/api/jobs/{id}/pause", "jobs/pause", control),
  post("/api/jobs/{id}/resume", "jobs/resume", control),
  post("/api/jobs/{id}/cancel", "jobs/cancel", {
    ...control,
    table: { ...control.table, bulkJobList: ["UpdateItem"] },
  }),
  post("/api/jobs/{id}/undo", "jobs/undo", {
    table: { ...currentDictionary, ...newIds, ...newJob, bulkJobs: ["GetItem", "PutItem", "UpdateItem"] },
    bulkQueue: "send",
  }),
];
