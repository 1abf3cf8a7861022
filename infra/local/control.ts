/** Serves the paths below `/local/`, which only the local service has. docs/local.md lists them. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { isIP } from "node:net";
import { text } from "node:stream/consumers";
import * as z from "zod/mini";
import { at } from "#shared/at.ts";
import { eventFunctions } from "../routes/routes.ts";
import { RECEIVER_PATH } from "./demo/webhooks.ts";
import type { Identity } from "./engines/identity.ts";
import type { SignIn } from "./engines/sign-in.ts";
import { nameOfArn, queueUrl } from "./template/names.ts";
import type { Stack } from "./template/stack.ts";

export interface Control {
  readonly identity: Identity;
  readonly signIn: SignIn;
  readonly outputs: object;
  readonly tokenOf: (email: string) => Promise<string | undefined>;
  readonly queues: () => Promise<object>;
  readonly invocations: () => object;
  readonly flushAuthorizers: () => void;
}

export const CONTROL_PREFIX = "/local/";
export const ISSUER_PATH = "/local/oidc";

/** The paths below `ISSUER_PATH` that `signIn` serves. `identity`, the token issuer, serves all other paths. */
const SIGN_IN_PATH = /^\/(?:authorize|token)(?:\?|$)/;

const TokenRequest = z.object({ email: z.string() });

export async function serveControl(
  control: Control,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const url = request.url ?? "/";
  const issuerPath = url.startsWith(`${ISSUER_PATH}/`) ? url.slice(ISSUER_PATH.length) : undefined;
  if (issuerPath !== undefined && !SIGN_IN_PATH.test(issuerPath)) {
    request.url = issuerPath;
    control.identity.service.requestHandler(request, response);
    return;
  }
  if (!isLocalHost(request.headers.host)) {
    plain(response, 403, "paths below /local/ need an IP address or localhost in the URL");
    return;
  }
  try {
    if (issuerPath === undefined) await answer(control, request, response);
    else await control.signIn(issuerPath, request, response);
  } catch {
    plain(response, 400, "the request cannot be read");
  }
}

/**
 * Accepts only IP addresses and localhost, because the DNS record of an attacker's domain can point to this machine. A web page of that
 * domain could then fetch tokens (DNS rebinding).
 */
function isLocalHost(host = ""): boolean {
  const url = `http://${host}`;
  if (!URL.canParse(url)) return false;
  const { hostname } = new URL(url);
  return isIP(hostname.replace(/^\[|\]$/g, "")) !== 0 || hostname === "localhost" || hostname.endsWith(".localhost");
}

async function answer(control: Control, request: IncomingMessage, response: ServerResponse): Promise<void> {
  switch (`${request.method} ${request.url}`) {
    case "GET /local/outputs":
      return json(response, control.outputs);
    case "GET /local/queues":
      return json(response, await control.queues());
    case "GET /local/invocations":
      return json(response, control.invocations());
    case "DELETE /local/authorizers-cache":
      control.flushAuthorizers();
      response.writeHead(204).end();
      return;
    case "POST /local/token": {
      const { email } = z.parse(TokenRequest, JSON.parse(await text(request)));
      const token = await control.tokenOf(email);
      return token === undefined
        ? plain(response, 404, "no user has this e-mail address")
        : plain(response, 200, token);
    }
    case `POST ${RECEIVER_PATH}204`:
      response.writeHead(204).end();
      return;
    case `POST ${RECEIVER_PATH}500`:
      return plain(response, 500, "this receiver always fails");
    default:
      return plain(response, 404, "nothing exists at this path");
  }
}

function json(response: ServerResponse, body: object): void {
  response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(body));
}

function plain(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, { "Content-Type": "text/plain; charset=utf-8" }).end(`${body}\n`);
}

export type Outputs = ReturnType<typeof describeStack>;

export function describeStack(
  stack: Stack,
  { queues: { endpoint }, dynamoDbEndpoint, kms }: Servers,
  service: Readonly<Record<"ApiUrl" | "Issuer" | "Audience", string>>,
) {
  const consumed = new Set(stack.eventSources.map(({ EventSourceArn }) => nameOfArn(EventSourceArn)));
  const unread = stack.queues.filter(({ name }) => !consumed.has(name));
  return {
    TableName: at(stack.tables, 0).name,
    BucketName: at(stack.buckets, 0).name,
    ...stack.outputs,
    ...service,
    DynamoDbEndpoint: dynamoDbEndpoint,
    SqsEndpoint: endpoint,
    S3Endpoint: endpoint,
    KmsEndpoint: kms.endpoint,
    DeliveryQueueUrl: queueUrl(endpoint, queueReadBy(eventFunctions.deliver.file, stack)),
    // A queue that no function reads is a dead-letter queue.
    DeadLetterQueueUrls: unread.map(({ name }) => queueUrl(endpoint, name)),
  };
}

interface Servers {
  readonly queues: { readonly endpoint: string };
  readonly kms: { readonly endpoint: string };
  readonly dynamoDbEndpoint: string;
}

function queueReadBy(file: string, { functions, eventSources }: Stack): string {
  const name = functions.find((spec) => spec.file === file)?.name;
  return nameOfArn(
    at(
      eventSources.filter(({ FunctionName }) => nameOfArn(FunctionName) === name),
      0,
    ).EventSourceArn,
  );
}
