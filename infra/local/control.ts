/** Paths below `/local/`, which no deployed service has: the issuer, tokens, outputs, what is in the queues, what was called, what the gateway keeps. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import * as z from "zod/mini";
import type { Identity } from "./identity.ts";

export interface Control {
  readonly identity: Identity;
  readonly outputs: () => object;
  /** Undefined: nobody of the directory has this address. */
  readonly tokenOf: (email: string) => Promise<string | undefined>;
  readonly queues: () => Promise<object>;
  /** How often each function was called so far, by its file. */
  readonly invocations: () => object;
  /** Forgets what the API's authorizer has said, as `aws apigateway flush-stage-authorizers-cache` does. */
  readonly flushAuthorizers: () => void;
}

export const CONTROL_PREFIX = "/local/";
export const ISSUER_PATH = "/local/oidc";

const TokenRequest = z.object({ email: z.string() });

/** Never rejects. */
export async function serveControl(
  control: Control,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const url = request.url ?? "/";
  if (url.startsWith(`${ISSUER_PATH}/`)) {
    request.url = url.slice(ISSUER_PATH.length);
    control.identity.handle(request, response);
    return;
  }
  try {
    await answer(control, `${request.method} ${url}`, request, response);
  } catch {
    plain(response, 400, "the request cannot be read");
  }
}

async function answer(
  control: Control,
  call: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  switch (call) {
    case "GET /local/outputs":
      return json(response, control.outputs());
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
    default:
      return plain(response, 404, "there is nothing at this path");
  }
}

function json(response: ServerResponse, body: object): void {
  response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(body));
}

function plain(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, { "Content-Type": "text/plain; charset=utf-8" }).end(`${body}\n`);
}
