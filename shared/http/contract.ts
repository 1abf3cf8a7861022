/** The contract of an endpoint. `endpoint()` validates requests by it, and the OpenAPI generator documents it. */
import type { MiddlewareObj } from "@middy/core";
import type * as z from "zod/mini";
import type { Permission } from "#shared/auth/user-schema.ts";
import type { ApiEvent } from "#shared/http/request.ts";

/**
 * The users who may call the endpoint: all signed-in users, admins and owners, or holders of a permission. A `public` endpoint needs no
 * token.
 */
export type Allow = "public" | "everyone" | "admin" | Permission;

export interface Contract<
  Path extends z.ZodMiniType = z.ZodMiniType,
  Query extends z.ZodMiniType = z.ZodMiniType,
  Body extends z.ZodMiniType = z.ZodMiniType,
  Response extends z.ZodMiniType = z.ZodMiniType,
> {
  /** One line for the reference page. */
  readonly summary: string;
  /** More text for the reference page, in Markdown: rules, limits, side effects. */
  readonly description?: string;
  /** The section of the reference page, for example `Prospects`. */
  readonly tag: string;
  readonly allow: Allow;
  readonly path?: Path;
  /** The schema of the query. Every query parameter reaches this schema as a string. */
  readonly query?: Query;
  /** The schema of the JSON body. An empty request body counts as `{}`. */
  readonly body?: Body;
  /** Reads a form with one file instead of JSON. The schema `body` is then UploadedFile. */
  readonly upload?: MiddlewareObj<ApiEvent>;
  /** The status of a successful answer: 200, 201 (with `Location`) or 202. */
  readonly status: 200 | 201 | 202;
  readonly response: Response;
  /** Whether the answer holds a secret. If so, the company's data key encrypts the stored copy that answers a repeated request. */
  readonly holdsSecret?: boolean;
  /** Set if the answer is not JSON but a text file in UTF-8 for download. */
  readonly file?: { readonly mediaType: string; readonly name: string };
  /** The path of the created record's collection, for example `/api/notes`, if it differs from the route's path. */
  readonly collection?: string;
}
