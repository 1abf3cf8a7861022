/** Tests the setting in the definition that switches API Gateway's own URL off. The local service has no other URL. */
import { once } from "node:events";
import { createServer } from "node:http";
import { expect, test } from "vitest";
import { readDefinition } from "../../../infra/local/api-definition.ts";
import { createGateway } from "../../../infra/local/gateway.ts";

const extension = "x-amazon-apigateway-endpoint-configuration";

const definition = (configuration: object) => ({
  openapi: "3.0.1",
  info: { title: "Api", version: "1" },
  servers: [{ url: "/", [extension]: configuration }],
  paths: {
    "/": {
      get: {
        responses: { 200: { description: "" } },
        "x-amazon-apigateway-integration": {
          type: "mock",
          requestTemplates: { "application/json": '{"statusCode": 200}' },
          responses: { default: { statusCode: "200" } },
        },
      },
    },
  },
});

test.each([
  [true, 403],
  [false, 200],
])("a definition with disableExecuteApiEndpoint %s answers %d", async (disableExecuteApiEndpoint, status) => {
  const api = readDefinition("Api", definition({ disableExecuteApiEndpoint }));
  const none = { tables: [], queues: [], buckets: [], keys: [], functions: [], eventSources: [], invokeConfigs: [] };
  const stack = { ...none, rules: [], stages: [], usagePlans: [], outputs: {}, api };
  const gateway = createGateway(stack, new Map());
  const server = createServer((request, response) => void gateway.handle(request, response)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" ? address?.port : 0;
  expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(status);
  server.close();
});

test("another setting of the endpoint is refused", () => {
  expect(() => readDefinition("Api", definition({ vpcEndpointIds: ["vpce-1"] }))).toThrow("vpcEndpointIds");
});
