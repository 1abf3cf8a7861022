/** Lists the routes of bulk jobs. */
import { currentDictionary, imports, indexReads, newIds } from "./access.ts";
import { LONG_WORK } from "./prospects.ts";
import type { Access, Route, TableAccess } from "./route.ts";

/** The rights to add a job to the list of the company's bulk jobs, and to the queue of its bulk jobs that have not ended. */
export const newJob: TableAccess = { bulkJobList: ["PutItem"], bulkQueues: ["GetItem", "PutItem"] };

/**
 * The rights to pause, resume or cancel a job. A paused or cancelled job lets the company's next job start, so the rights include starting
 * that job.
 */
const control: Access = {
  table: { ...currentDictionary, bulkJobs: ["GetItem", "UpdateItem"], bulkQueues: ["GetItem", "PutItem"] },
  bulkQueue: "send",
};

const results: Access = { table: { bulkJobs: ["GetItem"] }, files: { bulk: ["GetObject"] } };

export const jobRoutes: readonly Route[] = [
  {
    method: "POST",
    path: "/api/prospects/bulk",
    file: "prospects/bulk",
    access: {
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
    },
    rate: LONG_WORK,
  },
  {
    method: "GET",
    path: "/api/jobs",
    file: "jobs/list",
    access: { table: { ...currentDictionary, bulkJobs: ["BatchGetItem"], bulkJobList: ["Query"] } },
  },
  {
    method: "GET",
    path: "/api/jobs/{id}",
    file: "jobs/get",
    access: { table: { ...currentDictionary, bulkJobs: ["GetItem"] } },
  },
  {
    method: "GET",
    path: "/api/jobs/{id}/results",
    file: "jobs/results",
    access: results,
  },
  {
    method: "GET",
    path: "/api/jobs/{id}/results.ndjson",
    file: "jobs/results-ndjson",
    access: results,
    streamed: true,
  },
  { method: "GET", path: "/api/jobs/{id}/results.csv", file: "jobs/results-csv", access: results, streamed: true },
  {
    method: "POST",
    path: "/api/prospects/imports/{id}/undo",
    file: "imports/undo",
    access: {
      table: {
        ...currentDictionary,
        ...imports,
        ...newIds,
        ...newJob,
        importList: ["GetItem"],
        bulkJobs: ["BatchGetItem", "PutItem"],
      },
      bulkQueue: "send",
    },
  },
  { method: "POST", path: "/api/jobs/{id}/pause", file: "jobs/pause", access: control },
  { method: "POST", path: "/api/jobs/{id}/resume", file: "jobs/resume", access: control },
  {
    method: "POST",
    path: "/api/jobs/{id}/cancel",
    file: "jobs/cancel",
    access: { ...control, table: { ...control.table, bulkJobList: ["UpdateItem"] } },
  },
  {
    method: "POST",
    path: "/api/jobs/{id}/undo",
    file: "jobs/undo",
    access: {
      table: { ...currentDictionary, ...newIds, ...newJob, bulkJobs: ["GetItem", "PutItem", "UpdateItem"] },
      bulkQueue: "send",
    },
  },
];
