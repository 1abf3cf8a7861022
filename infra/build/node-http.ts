/**
 * Replaces `node:http` in the bundles. An import of `node:http` evaluates all exports of that module. One of them loads fetch, which makes
 * a cold start 20 to 40 ms slower.
 */
const http = process.getBuiltinModule("node:http");

export const { Agent, request, STATUS_CODES } = http;
