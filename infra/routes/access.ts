/** Sets of IAM permissions for the route table. */
import type { Access, TableAccess } from "./route.ts";

export const named: TableAccess = { reference: ["GetItem"] };
export const dictionary: TableAccess = { reference: ["Query"] };
/** To check whether a cached dictionary is current, and to read it again. */
export const currentDictionary: TableAccess = { reference: ["GetItem", "Query"] };
export const newIds: TableAccess = { ids: ["UpdateItem"] };
/** Rows of an import become visible when it has completed, so a function that reads rows also reads the imports. */
export const imports: TableAccess = { imports: ["GetItem"] };
/** If the prospect's row does not contain the next appointment. */
export const upcoming: TableAccess = { agendas: ["GetItem"] };
/** For entries of a prospect or a note in the company index. */
export const indexEntries: TableAccess = { index: ["PutItem"], indexTexts: ["PutItem"] };
/** For changes of the dictionary. */
export const namesChange: TableAccess = { index: ["UpdateItem", "PutItem"] };
/** For changes of territories, which functions cache. */
export const territoriesChange: TableAccess = { index: ["UpdateItem", "PutItem"] };

/** All filters except the text search and the territory. */
export const indexRows: TableAccess = {
  ...dictionary,
  index: ["Query"],
  manifests: ["BatchGetItem", "Query"],
  segments: ["BatchGetItem"],
};
/** All filters. */
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

/** To write rows, reserve their ids, create tags, and add the rows to the company index. */
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

/** To import within one request, and to delete the rows of an earlier failed import. */
export const importWrites: TableAccess = {
  imports: ["GetItem", "PutItem", "UpdateItem"],
  openImports: ["Query", "PutItem", "DeleteItem", "BatchWriteItem"],
  importList: ["PutItem"],
  ...rowsInBulk,
};

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

/** The file contains only prospects that the user who started the export may see. */
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
