/** Sets of IAM permissions for the route table. */
import type { Access, TableAccess } from "./route.ts";

export const named: TableAccess = { reference: ["GetItem"] };
export const dictionary: TableAccess = { reference: ["Query"] };
/** The rights to check whether the cached names of statuses, tags and users are current, and to read these names again. */
export const currentDictionary: TableAccess = { reference: ["GetItem", "Query"] };
export const newIds: TableAccess = { ids: ["UpdateItem"] };
/** The rows of an import become visible when the import has completed, so a function that reads such rows also reads the import. */
export const imports: TableAccess = { imports: ["GetItem"] };
/** The rights to write a prospect's or a note's entry to the company's search index. */
export const indexEntries: TableAccess = { index: ["PutItem"], indexTexts: ["PutItem"] };
/** The rights to record that the name of a status, tag or user has changed. Functions with cached names then read the names again. */
export const namesChange: TableAccess = { index: ["UpdateItem", "PutItem"] };
/** The rights to record that territories have changed, and which ones. Functions with cached territories then read them again. */
export const territoriesChange: TableAccess = { index: ["UpdateItem", "PutItem"] };

/** For a request that changes a user's or service account's rights: it waits until this user's running bulk job has read the new rights. */
export const runningJob: TableAccess = { bulkQueues: ["GetItem"], bulkJobs: ["GetItem"] };

/** The rights to find prospects through the company's search index by all filters except the text search and the territory. */
export const indexRows: TableAccess = {
  ...dictionary,
  index: ["Query"],
  manifests: ["BatchGetItem", "Query"],
  segments: ["BatchGetItem"],
};
/** The rights to find prospects through the company's search index by all filters, including the text search and the territory. */
export const indexReads: TableAccess = {
  ...indexRows,
  indexTexts: ["BatchGetItem", "Query"],
  places: ["GetItem"],
  territories: ["GetItem"],
};

/** The additional rights of an import that changes existing prospects. */
const matchedProspects: TableAccess = {
  agendas: ["GetItem", "PutItem", "DeleteItem"],
  indexTexts: ["PutItem"],
};

/** The rights of an import to write its rows, reserve their ids, create their tags, and add the rows to the company's search index. */
const rowsInBulk: TableAccess = {
  ...newIds,
  reference: ["Query", "PutItem", "UpdateItem"],
  ...matchedProspects,
  prospectRanges: ["PutItem", "UpdateItem", "BatchWriteItem", "Query"],
  prospects: ["Query", "BatchWriteItem", "BatchGetItem", "GetItem", "PutItem", "UpdateItem"],
  addressRanges: ["PutItem", "UpdateItem", "BatchWriteItem"],
  addresses: ["BatchWriteItem", "BatchGetItem", "PutItem", "UpdateItem"],
  places: ["BatchWriteItem", "PutItem"],
  index: ["Query", "UpdateItem", "PutItem"],
  changeLog: ["PutItem"],
  factLog: ["PutItem"],
  manifests: ["Query", "BatchWriteItem"],
  segments: ["Query", "BatchWriteItem"],
};

/** The rights to import a file within one request, and to delete the rows that an earlier failed import has left. */
export const importWrites: TableAccess = {
  imports: ["GetItem", "PutItem", "UpdateItem"],
  openImports: ["Query", "PutItem", "DeleteItem", "BatchWriteItem"],
  importList: ["PutItem"],
  ...rowsInBulk,
};

/** The rights to read the API key with which a job was begun, because the job may do only what this key may do. */
const startingKey: TableAccess = { keyRings: ["GetItem"] };

export const importJob: Access = {
  table: {
    imports: ["GetItem", "UpdateItem"],
    openImports: ["DeleteItem", "BatchWriteItem"],
    ...rowsInBulk,
    reference: ["GetItem", "Query", "PutItem", "UpdateItem"],
    ...startingKey,
  },
  importQueue: "send",
  files: {
    uploads: ["GetObject", "DeleteObject"],
    imports: ["PutObject", "GetObject", "DeleteObject", "AbortMultipartUpload"],
  },
  bucket: "list",
  settings: ["CHANGES_AT_ONCE"],
};

export const bulkJob: Access = {
  table: {
    ...newIds,
    ...imports,
    ...currentDictionary,
    ...startingKey,
    ...indexEntries,
    prospects: ["GetItem", "BatchGetItem", "Query", "PutItem"],
    agendas: ["GetItem", "PutItem", "DeleteItem"],
    bulkJobs: ["GetItem", "UpdateItem"],
    bulkJobList: ["UpdateItem"],
    bulkQueues: ["GetItem", "PutItem"],
  },
  bulkQueue: "send",
  files: { bulk: ["PutObject", "GetObject"] },
  bucket: "list",
  settings: ["CHANGES_AT_ONCE"],
};

/** The rights of an export job. It reads the user who began it, because the file contains only prospects that this user may see. */
export const exportJob: Access = {
  table: {
    ...indexReads,
    reference: ["GetItem", "Query"],
    ...startingKey,
    exports: ["GetItem", "UpdateItem"],
    prospects: ["BatchGetItem", "Query"],
  },
  exportQueue: "send",
  files: { exports: ["PutObject", "GetObject", "DeleteObject", "AbortMultipartUpload"] },
  bucket: "list",
};
