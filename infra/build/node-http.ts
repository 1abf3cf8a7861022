/**
 * Replaces `node:http` in the bundles. Importing `node:http` from an ES module evaluates all its exports, and one of them loads fetch,
 * which costs 20 to 40 ms of a cold start. This module evaluates only the exports in use.
 */
const http = process.getBuiltinModule("node:http");

export const { Agent, request, STATUS_CODES } = http;
