/** What the route table says of a route, and of a function that no route leads to. */
import type { Access } from "./access.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

export interface Route {
  readonly method: Method;
  /** Resource path with `{id}` placeholders. */
  readonly path: string;
  /** File below `functions/` without its ending; also the function's name. */
  readonly file: string;
  readonly access: Access;
  /** The answer may pass the 6 MB of a buffered one: the function is made by one of the ways of `stream-endpoint.ts`. */
  readonly streamed?: true;
  /** Needs no access token. */
  readonly public?: true;
}

/** A function that no route leads to. The queue's and stream's own rights come with their event source. */
export interface EventFunction {
  readonly file: string;
  readonly access: Access;
  /** Seconds. The delivery queue's visibility time-out is derived from it. */
  readonly timeoutSeconds: number;
}
