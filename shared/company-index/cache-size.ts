/** How much of a function's memory its company index may keep. */

const MB = 2 ** 20;
/** Node.js with the code of a function, and what a read of a company with a million prospects needs while it is under way. */
const RESERVED_MB = 460;
/** The rest is lost between allocations, or not collected yet. */
const SHARE = 0.85;
/** A company of 100 000 with its texts, even where memory is short: with less, each search would read all of them anew. */
const LEAST_BYTES = 20 * MB;

/** `memoryMb`: of the function, as Lambda says in `AWS_LAMBDA_FUNCTION_MEMORY_SIZE`. */
export const cacheBytesOf = (memoryMb: number): number =>
  Math.max(LEAST_BYTES, Math.floor((memoryMb - RESERVED_MB) * MB * SHARE));
