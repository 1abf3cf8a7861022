/** A typed client of the service. The types of its requests and responses come from docs/openapi.json. */
import createClient, { type Client } from "openapi-fetch";
import type { paths } from "./api.ts";

export type ApiClient = Client<paths>;

export interface ApiClientOptions {
  /** The URL of the service, without `/api`. */
  readonly baseUrl: string;
  /**
   * Returns an access token of the service's issuer. It is called before each request, so that it can renew an expired token. The console
   * leaves it out, because it uses a cookie.
   */
  readonly accessToken?: () => string | Promise<string>;
  /** Headers of every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Sends the requests instead of the global `fetch`. */
  readonly fetch?: (request: Request) => Promise<Response>;
}

/**
 * Returns the client. An HTTP error status is not an exception: the result then contains the problem body as `error`. A call rejects only
 * if there is no response.
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
