/** Defines the rights at the table that several functions share. */
import type { Access, TableAccess } from "./route.ts";

/** Lets a function read a company, user, status or tag by its id. */
export const named: TableAccess = { reference: ["GetItem"] };
/** Lets a function read the names of the company's statuses, tags and users. */
export const dictionary: TableAccess = { reference: ["Query"] };
/** Lets a function check whether the names in the function's memory are current, and read them again if not. */
export const currentDictionary: TableAccess = { reference: ["GetItem", "Query"] };
export const newIds: TableAccess = { ids: ["UpdateItem"] };
/** Lets a function check whether the import that created a row is completed. Until then the row is invisible. */
export const imports: TableAccess = { imports: ["GetItem"] };
/** Lets a function find the next appointment of a prospect whose row does not contain it. */
export const upcoming: TableAccess = { agendas: ["GetItem"] };
/** Lets a function write the entry of a prospect or note in the company index. */
export const indexEntries: TableAccess = { index: ["PutItem"], indexTexts: ["PutItem"] };
/**
 * Lets a function mark a change of a status, tag or user in the company's row and in its index, so that other functions read the names
 * again.
 */
export const namesChange: TableAccess = { index: ["UpdateItem"] };

/** Lets a function find prospects in the company index by filters. */
export const indexRows: TableAccess = {
  ...dictionary,
  index: ["Query"],
  manifests: ["BatchGetItem", "Query"],
  segments: ["BatchGetItem"],
};
/** Lets a function find prospects in the company index by filters and by a text search. */
export const indexReads: TableAccess = { ...indexRows, indexTexts: ["BatchGetItem", "Query"] };

/** Lets an import find existing prospects and change them, as an update of a single prospect does. */
const matchedProspects: TableAccess = {
  agendas: ["GetItem", "PutItem", "DeleteItem"],
  indexTexts: ["PutItem"],
};

/** Lets a function write the rows of an import, reserve their ids, create their tags, and add them to the company index. */
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
  manifests: ["Query", "BatchWriteItem"],
  segments: ["Query", "BatchWriteItem"],
};

/** Lets a function import within one request, and remove what an earlier failed import left. */
export const importWrites: TableAccess = {
  imports: ["GetItem", "PutItem", "UpdateItem"],
  openImports: ["Query", "PutItem", "DeleteItem", "BatchWriteItem"],
  importList: ["PutItem"],
  ...rowsInBulk,
};

/** Lets a function import an uploaded file in a job, and write the report of errors. */
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

/** Lets a function write the file of an export, with the prospects that the user who began it may see. */
export const exportJob: Access = {
  table: {
    reference: ["GetItem", "Query"],
    exports: ["GetItem", "UpdateItem"],
    prospects: ["BatchGetItem", "Query"],
    index: ["Query"],
    indexTexts: ["BatchGetItem", "Query"],
    manifests: ["BatchGetItem", "Query"],
    segments: ["BatchGetItem"],
  },
  exportQueue: "send",
  files: { exports: ["PutObject", "GetObject", "DeleteObject", "AbortMultipartUpload"] },
  bucket: "list",
};
