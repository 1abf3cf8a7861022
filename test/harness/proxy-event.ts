/** Makes an API Gateway event and Lambda's context for a function. */
import type { APIGatewayProxyEvent, Context } from "aws-lambda";
import * as z from "zod/mini";

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

/** `authorizer` may be anything, as if a caller bypassed the gateway. */
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
