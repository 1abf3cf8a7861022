/** Sets of table rights that several functions share. */
import type { Access, TableAccess } from "./route.ts";

/** The right to read a company, user, status or tag by its id. */
export const named: TableAccess = { reference: ["GetItem"] };
/** The right to read the names of the company's statuses, tags and users. */
export const dictionary: TableAccess = { reference: ["Query"] };
/** The right to read the dictionary, and to check first whether the copy in the function's memory is still current. */
export const currentDictionary: TableAccess = { reference: ["GetItem", "Query"] };
export const newIds: TableAccess = { ids: ["UpdateItem"] };
/** The right to check whether the import that created a row is completed, because the row is invisible until then. */
export const imports: TableAccess = { imports: ["GetItem"] };
/** The right to read the next appointment of a prospect, if the prospect's row holds only some of its appointments or only past ones. */
export const upcoming: TableAccess = { agendas: ["GetItem"] };
/** The right to write the entry in the company index that belongs to a write of a prospect or note. */
export const indexEntries: TableAccess = { index: ["PutItem"], indexTexts: ["PutItem"] };
/** The right to mark a change of names in the company's row and in its index, after a write of a status, tag or user. */
export const namesChange: TableAccess = { index: ["UpdateItem"] };

/** The right to find prospects in the company index by filters. */
export const indexRows: TableAccess = {
  ...dictionary,
  index: ["Query"],
  manifests: ["BatchGetItem", "Query"],
  segments: ["BatchGetItem"],
};
/** The right to find prospects in the company index by filters and by a search of their texts. */
export const indexReads: TableAccess = { ...indexRows, indexTexts: ["BatchGetItem", "Query"] };

/** The right to write the rows of an import, lease their ids, create their tags, and store the run of the index that makes them visible. */
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

/** The right to run an import within one request, including the removal of rows that an earlier failed import has left. */
export const importWrites: TableAccess = {
  imports: ["GetItem", "PutItem", "UpdateItem"],
  openImports: ["Query", "PutItem", "DeleteItem", "BatchWriteItem"],
  importList: ["PutItem"],
  ...rowsInBulk,
};

/** The right to run an import job, which writes rows, reads the uploaded file, and writes the report of errors. */
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

/** The rights of an export job. It reads the prospects that the user may see who began the export, and writes a file. */
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
