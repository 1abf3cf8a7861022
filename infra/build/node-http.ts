/**
 * Replaces `node:http` in the bundles. An import of `node:http` from an ES module evaluates all its exports. One of them loads fetch,
 * which makes a cold start 20 to 40 ms slower. This module evaluates only the exports that are used.
 */
const http = process.getBuiltinModule("node:http");

export const { Agent, request, STATUS_CODES } = http;
