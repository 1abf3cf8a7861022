/**
 * Node's HTTP client for the bundles. An import of `node:http` as an ES module looks at every name that it exports, WebSocket
 * among them, and so loads the whole of fetch: 20 ms of a start. This is the module without that look.
 */
const http = process.getBuiltinModule("node:http");

export const { Agent, request, STATUS_CODES } = http;
