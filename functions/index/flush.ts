/** Reads the table's stream and moves delta entries of the company index into segments. */
import { flushStream } from "#shared/company-index/write/flush.ts";
import { apiContext } from "#shared/context.ts";

export const handler = flushStream(apiContext);
