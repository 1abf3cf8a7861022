/**
 * Node's HTTP client for the bundles. An ES module that imports `node:http` evaluates each of its exports, including WebSocket, and
 * that loads the whole of fetch: 20 to 40 ms of a start. This module gets the exports in use without evaluating the others.
 */
const http = process.getBuiltinModule("node:http");

export const { Agent, request, STATUS_CODES } = http;
