/**
 * The arguments with which Lambda calls a function of the API: an event of API Gateway, and a context. Also contains a request with an
 * idempotency key.
 */
import type { APIGatewayProxyEvent, Context } from "aws-lambda";
import * as z from "zod/mini";
import { type Request, readRequest } from "#shared/http/request.ts";

export const lambdaContext: Context = {
  callbackWaitsForEmptyEventLoop: true,
  functionName: "me",
  functionVersion: "$LATEST",
  invokedFunctionArn: "arn",
  memoryLimitInMB: "128",
  awsRequestId: "r",
  logGroupName: "",
  logStreamName: "",
  done: () => undefined,
  fail: () => undefined,
  succeed: () => undefined,
  getRemainingTimeInMillis: () => 25_000,
};

/** Returns an event of API Gateway. A test may pass any `authorizer`, as a caller that bypasses the gateway could. */
export function proxyEvent(authorizer: unknown): APIGatewayProxyEvent {
  const requestContext: APIGatewayProxyEvent["requestContext"] = {
    accountId: "",
    apiId: "",
    authorizer: z.parse(z.nullish(z.record(z.string(), z.unknown())), authorizer),
    httpMethod: "GET",
    identity: {
      accessKey: null,
      accountId: null,
      apiKey: null,
      apiKeyId: null,
      caller: null,
      clientCert: null,
      cognitoAuthenticationProvider: null,
      cognitoAuthenticationType: null,
      cognitoIdentityId: null,
      cognitoIdentityPoolId: null,
      principalOrgId: null,
      sourceIp: "",
      user: null,
      userAgent: null,
      userArn: null,
    },
    path: "/api/me",
    protocol: "HTTP/1.1",
    requestId: "r",
    requestTimeEpoch: 0,
    resourceId: "",
    resourcePath: "/api/me",
    stage: "live",
  };
  return {
    httpMethod: "GET",
    path: "/api/me",
    resource: "/api/me",
    headers: {},
    multiValueHeaders: { Authorization: ["Bearer a.b.c"] },
    queryStringParameters: null,
    multiValueQueryStringParameters: null,
    pathParameters: null,
    stageVariables: null,
    requestContext,
    body: null,
    isBase64Encoded: false,
  };
}

export const keyedPost = (key: string, body = ""): Request => ({
  ...readRequest(proxyEvent({})),
  method: "POST",
  headers: new Map([["idempotency-key", [key]]]),
  body,
});
