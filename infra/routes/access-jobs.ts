/** What imports and exports may touch, within a request and as jobs. */
import { type Access, dictionary, newIds, type TableAccess } from "./access.ts";

/** Finds prospects in the company index. */
export const indexRows: TableAccess = {
  ...dictionary,
  index: ["Query"],
  manifests: ["BatchGetItem", "Query"],
  segments: ["BatchGetItem"],
};
/** And searches their texts. */
export const indexReads: TableAccess = { ...indexRows, indexTexts: ["BatchGetItem", "Query"] };

/** Rows with ids and tags of their own, and the run of the index that makes them visible. */
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

/** An import within one request, and whatever one that came to nothing has left. */
export const importWrites: TableAccess = {
  imports: ["GetItem", "PutItem", "UpdateItem"],
  openImports: ["Query", "PutItem", "DeleteItem", "BatchWriteItem"],
  importList: ["PutItem"],
  ...rowsInBulk,
};

/** All that an import does, and its files. */
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

/** Finds and reads prospects as a streamed export does, for the user who began it, into a file. */
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
