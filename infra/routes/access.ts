/** Defines sets of IAM permissions for the table, the queues and the bucket. The route table gives these sets to its Lambda functions. */
import type { Access, TableAccess } from "./route.ts";

/** The right to read a company, user, status or tag by its id. */
export const named: TableAccess = { reference: ["GetItem"] };
/** The right to read the names of all statuses, tags and users of the company. */
export const dictionary: TableAccess = { reference: ["Query"] };
/** The rights to check whether the cached names of statuses, tags and users are current, and to read these names again. */
export const currentDictionary: TableAccess = { reference: ["GetItem", "Query"] };
export const newIds: TableAccess = { ids: ["UpdateItem"] };
/**
 * The right to read an import. The rows that an import creates become visible only when the import has completed. So a function that reads
 * rows also reads the imports that created them.
 */
export const imports: TableAccess = { imports: ["GetItem"] };
/**
 * The right to find the next appointment of a prospect. A function needs it if the prospect's row does not contain the next appointment.
 */
export const upcoming: TableAccess = { agendas: ["GetItem"] };
/** The rights to write a prospect's or a note's entry to the company's search index. */
export const indexEntries: TableAccess = { index: ["PutItem"], indexTexts: ["PutItem"] };
/** The rights to record that the name of a status, tag or user has changed. Functions with cached names then read the names again. */
export const namesChange: TableAccess = { index: ["UpdateItem", "PutItem"] };
/** The rights to record that territories have changed, and which ones. Functions with cached territories then read them again. */
export const territoriesChange: TableAccess = { index: ["UpdateItem", "PutItem"] };

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

/** The rights of a job that imports an uploaded file and writes the error report. */
export const importJob: Access = {
  table: {
    imports: ["GetItem", "UpdateItem"],
    openImports: ["DeleteItem", "BatchWriteItem"],
    ...rowsInBulk,
    reference: ["GetItem", "Query", "PutItem", "UpdateItem"],
  },
  importQueue: "send",
  files: {
    uploads: ["GetObject", "DeleteObject"],
    imports: ["PutObject", "GetObject", "DeleteObject", "AbortMultipartUpload"],
  },
  bucket: "list",
};

/** The rights of a job that changes, deletes or restores many prospects. */
export const bulkJob: Access = {
  table: {
    ...newIds,
    ...imports,
    ...currentDictionary,
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
};

/** The rights of a job that writes the file of an export. The file contains only prospects that the user who started the export may see. */
export const exportJob: Access = {
  table: {
    ...indexReads,
    reference: ["GetItem", "Query"],
    exports: ["GetItem", "UpdateItem"],
    prospects: ["BatchGetItem", "Query"],
  },
  exportQueue: "send",
  files: { exports: ["PutObject", "GetObject", "DeleteObject", "AbortMultipartUpload"] },
  bucket: "list",
};
