/** What imports and exports may touch, within a request and as jobs. */
import { type Access, dictionary, newIds, type TableAccess } from "./access.ts";

/** Finds prospects in the company index. */
export const indexReads: TableAccess = {
  ...dictionary,
  index: ["Query"],
  manifests: ["BatchGetItem", "Query"],
  segments: ["BatchGetItem"],
};

/** Rows in bulk, the run of the index that makes them visible, and whatever an import that came to nothing has left. */
export const importWrites: TableAccess = {
  ...newIds,
  identity: ["GetItem"],
  reference: ["GetItem", "Query", "PutItem", "UpdateItem"],
  imports: ["GetItem", "PutItem", "UpdateItem"],
  openImports: ["Query", "PutItem", "DeleteItem", "BatchWriteItem"],
  importList: ["PutItem"],
  prospectRanges: ["PutItem", "UpdateItem", "BatchWriteItem"],
  prospects: ["Query", "BatchWriteItem"],
  addressRanges: ["PutItem", "UpdateItem", "BatchWriteItem"],
  addresses: ["BatchWriteItem"],
  places: ["BatchWriteItem"],
  index: ["Query", "UpdateItem"],
  manifests: ["Query", "BatchWriteItem"],
  segments: ["Query", "BatchWriteItem"],
};

/** All that an import does, and its files. */
export const importJob: Access = {
  table: {
    ...newIds,
    reference: ["GetItem", "Query", "PutItem", "UpdateItem"],
    imports: ["GetItem", "UpdateItem"],
    openImports: ["DeleteItem", "BatchWriteItem"],
    prospectRanges: ["PutItem", "UpdateItem", "BatchWriteItem"],
    prospects: ["Query", "BatchWriteItem"],
    addressRanges: ["PutItem", "UpdateItem", "BatchWriteItem"],
    addresses: ["BatchWriteItem"],
    places: ["BatchWriteItem"],
    index: ["Query", "UpdateItem"],
    manifests: ["Query", "BatchWriteItem"],
    segments: ["Query", "BatchWriteItem"],
  },
  importQueue: "send",
  files: {
    uploads: ["GetObject", "DeleteObject"],
    imports: ["PutObject", "GetObject", "DeleteObject", "AbortMultipartUpload"],
  },
};

/** Finds and reads prospects as a streamed export does, for the user who began it, into a file. */
export const exportJob: Access = {
  table: {
    reference: ["GetItem", "Query"],
    exports: ["GetItem", "UpdateItem"],
    prospects: ["Query"],
    index: ["Query"],
    manifests: ["BatchGetItem", "Query"],
    segments: ["BatchGetItem"],
  },
  exportQueue: "send",
  files: { exports: ["PutObject", "GetObject", "DeleteObject", "AbortMultipartUpload"] },
};
