/** An endpoint for `AWS_ENDPOINT_URL`: it forwards to DynamoDB, S3 and SQS of a local service, and simulates the other AWS services. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import * as z from "zod/mini";
import { serveOnLoopback } from "../../infra/local/servers/listener.ts";
import { xml } from "./cloud/xml.ts";
import { forwarded } from "./forwarded.ts";
import { iamActions, serviceOf } from "./iam-actions.ts";
import { answerPool, type PoolAnswer, type PoolUsers } from "./user-pool.ts";

export const STACK = "Canvassing";

export type AccountEndpoint = Awaited<ReturnType<typeof startAccountEndpoint>>;

const Parameter = z.object({ Name: z.string(), Value: z.string() });

/** Starts the endpoint. `outputs` is the answer of the local service to `GET /local/outputs`. */
export async function startAccountEndpoint(
  outputs: Readonly<Record<"DynamoDbEndpoint" | "S3Endpoint" | "SqsEndpoint", string> & { OwnTableName?: string }>,
) {
  const users: PoolUsers = new Map();
  /** The IAM actions that the requests so far need, for example `dynamodb:GetItem`. */
  const actions = new Set<string>();
  const servers: Readonly<Record<string, string>> = {
    dynamodb: outputs.DynamoDbEndpoint,
    s3: outputs.S3Endpoint,
    sqs: outputs.SqsEndpoint,
  };
  const stackOutputs = (endpoint: string) =>
    Object.entries({ ...outputs, UserPoolId: "us-east-1_pool" })
      .filter(([name]) => !name.endsWith("Endpoint"))
      .map(([OutputKey, value]) => ({
        OutputKey,
        // A command sends requests to the host in the queue's URL, so the URL must name this endpoint.
        OutputValue: String(value).replace(outputs.SqsEndpoint, endpoint),
      }));

  function answerSsm(operation: string | undefined, body: string): PoolAnswer {
    const isParameter = operation === "PutParameter" && Parameter.safeParse(JSON.parse(body)).success;
    if (!isParameter) return { status: 400, body: { __type: "UnknownOperation" } };
    return { status: 200, body: { Version: 1 } };
  }

  function answerCloudFormation(body: string, endpoint: string): { status: number; text: string } {
    const query = new URLSearchParams(body);
    const stack = query.get("StackName");
    if (query.get("Action") !== "DescribeStacks" || stack !== STACK) {
      const Message = `Stack with id ${stack} does not exist`;
      return {
        status: 400,
        text: `<ErrorResponse>${xml({ Error: { Code: "ValidationError", Message } })}</ErrorResponse>`,
      };
    }
    const described = {
      StackName: STACK,
      CreationTime: "2026-11-22T00:00:00Z",
      StackStatus: "UPDATE_COMPLETE",
      Outputs: stackOutputs(endpoint),
    };
    const result = xml({ DescribeStacksResult: { Stacks: [described] } });
    return { status: 200, text: `<DescribeStacksResponse>${result}</DescribeStacksResponse>` };
  }

  const server = await serveOnLoopback(async (request, response) => {
    const service = serviceOf(request.headers);
    const content = await buffer(request);
    const body = content.toString();
    const { method = "GET", url = "/", headers: given } = request;
    for (const action of iamActions({ service, method, url, headers: given, body })) actions.add(action);
    const behind = servers[service];
    if (behind !== undefined) return relay(behind, request, content, response);
    if (service === "cloudformation") {
      const { status, text } = answerCloudFormation(body, `http://${request.headers.host}`);
      return response.writeHead(status, { "Content-Type": "text/xml" }).end(text);
    }
    const operation = String(request.headers["x-amz-target"]).split(".")[1];
    const answer = service === "ssm" ? answerSsm(operation, body) : answerPool(users, operation, body);
    const headers = { "Content-Type": "application/x-amz-json-1.1" };
    return response.writeHead(answer.status, headers).end(JSON.stringify(answer.body));
  });
  const environment = {
    AWS_ENDPOINT_URL: server.endpoint,
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "local",
    AWS_SECRET_ACCESS_KEY: "local",
  };
  return { environment, users, actions, stop: server.stop };
}

async function relay(to: string, request: IncomingMessage, content: Buffer, response: ServerResponse): Promise<void> {
  const answer = await forwarded(to, request, content);
  response.writeHead(answer.statusCode ?? 502, answer.headers);
  await pipeline(answer, response);
}
