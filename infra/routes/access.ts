/** Sets of table rights that several functions share. */
import type { Access, TableAccess } from "./route.ts";

/** A company, user, status or tag by its id. */
export const named: TableAccess = { reference: ["GetItem"] };
/** The names of the company's statuses, tags and users. */
export const dictionary: TableAccess = { reference: ["Query"] };
/** The same names from the function's memory, if their version is still current. */
export const currentDictionary: TableAccess = { reference: ["GetItem", "Query"] };
export const newIds: TableAccess = { ids: ["UpdateItem"] };
/** Whether the import that created a row is completed: before that, the row is invisible. */
export const imports: TableAccess = { imports: ["GetItem"] };
/** The next appointment of a prospect, if its row holds only some of them or only past ones. */
export const upcoming: TableAccess = { agendas: ["GetItem"] };
/** A write of a prospect or note also writes its entry in the company index. */
export const indexEntries: TableAccess = { index: ["PutItem"], indexTexts: ["PutItem"] };
/** A write of a status, tag or user marks the change of names in the company's row and in its index. */
export const namesChange: TableAccess = { index: ["UpdateItem"] };

/** Finds prospects in the company index. */
export const indexRows: TableAccess = {
  ...dictionary,
  index: ["Query"],
  manifests: ["BatchGetItem", "Query"],
  segments: ["BatchGetItem"],
};
/** Finds prospects in the company index, also by a search of their texts. */
export const indexReads: TableAccess = { ...indexRows, indexTexts: ["BatchGetItem", "Query"] };

/** The rows of an import with their ids and tags, and the run of the index that makes them visible. */
const rowsInBulk: TableAccess = {
  ...newIds,
  reference: ["Query", "PutItem", "UpdateItem"],
  prospectRanges: ["PutItem", "UpdateItem", "BatchWriteItem"],
  prospects: ["Query", "BatchWriteItem"],
  addressRanges: ["PutItem", "UpdateItem", "BatchWriteItem"],
  addresses: ["BatchWriteItem"],
  places: ["BatchWriteItem"],
  index: ["Query", "UpdateItem"],
  manifests: ["Query", "BatchWriteItem"],
  segments: ["Query", "BatchWriteItem"],
};

/** An import within one request, including the removal of rows that an earlier failed import has left. */
export const importWrites: TableAccess = {
  imports: ["GetItem", "PutItem", "UpdateItem"],
  openImports: ["Query", "PutItem", "DeleteItem", "BatchWriteItem"],
  importList: ["PutItem"],
  ...rowsInBulk,
};

/** An import job: its rows, its upload, and the report of its errors. */
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

/** An export job: it reads prospects as a streamed export does, for the user who started it, and writes a file. */
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
