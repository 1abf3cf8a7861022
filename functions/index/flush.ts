/** The table's stream -> the company index: unflushed entries become segments. */
import { flushStream } from "#shared/company-index/write/flush.ts";
import { apiContext } from "#shared/context.ts";

export const handler = flushStream(apiContext);
