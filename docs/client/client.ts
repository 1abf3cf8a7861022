/** A typed client of the service: it sends and gives what docs/openapi.json describes, and nothing else type-checks. */
import createClient, { type Client } from "openapi-fetch";
import type { paths } from "./api.ts";

export type ApiClient = Client<paths>;

export interface ApiClientOptions {
  /** Where the service is, without `/api`. */
  readonly baseUrl: string;
  /** Asked before each request, so that it can renew: an access token of the service's issuer. The console has a cookie instead. */
  readonly accessToken?: () => string | Promise<string>;
  /** Headers of every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Sends in place of the global `fetch`. */
  readonly fetch?: (request: Request) => Promise<Response>;
}

/** An HTTP error is no exception: `error` is its problem body. Only a request that got no answer rejects. */
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
