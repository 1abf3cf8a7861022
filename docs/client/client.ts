/** A typed client of the service. The types of its requests and responses come from docs/openapi.json. */
import createClient, { type Client } from "openapi-fetch";
import type { paths } from "./api.ts";

export type ApiClient = Client<paths>;

export interface ApiClientOptions {
  /** The URL of the service, without `/api`. */
  readonly baseUrl: string;
  /**
   * Returns an access token for the user. The client calls this function before each request, so the function can renew an expired token.
   * The console omits this option, because the console sends a session cookie instead of a token.
   */
  readonly accessToken?: () => string | Promise<string>;
  /** Headers of every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Sends the requests instead of the global `fetch`. */
  readonly fetch?: (request: Request) => Promise<Response>;
}

/**
 * Returns the client. An HTTP error status is not an exception: the result then contains the problem body as `error`. If no response
 * arrives, the call rejects.
 */
export function apiClient({
  baseUrl,
  accessToken,
  headers = {},
  fetch = globalThis.fetch,
}: ApiClientOptions): ApiClient {
  const client = createClient<paths>({ baseUrl, headers, fetch });
  if (accessToken !== undefined) {
    client.use({
      onRequest: async ({ request }) => {
        request.headers.set("Authorization", `Bearer ${await accessToken()}`);
      },
    });
  }
  return client;
}
