/** The contract of an endpoint: `endpoint()` validates by it, and the OpenAPI generator documents it. */
import type { MiddlewareObj } from "@middy/core";
import type * as z from "zod/mini";
import type { Permission } from "#shared/auth/user-schema.ts";
import type { ApiEvent } from "#shared/http/request.ts";

/** The users who may call: all signed-in users, admins and owners, or holders of a permission. `public` needs no token. */
export type Allow = "public" | "everyone" | "admin" | Permission;

export interface Contract<
  Path extends z.ZodMiniType = z.ZodMiniType,
  Query extends z.ZodMiniType = z.ZodMiniType,
  Body extends z.ZodMiniType = z.ZodMiniType,
  Response extends z.ZodMiniType = z.ZodMiniType,
> {
  /** One line for the reference page. */
  readonly summary: string;
  /** More for the reference page: rules, limits, side effects. Markdown. */
  readonly description?: string;
  /** Section of the reference page, e.g. `Prospects`. */
  readonly tag: string;
  readonly allow: Allow;
  readonly path?: Path;
  /** Every query parameter is a string in the input of this schema. */
  readonly query?: Query;
  /** JSON body. An empty request body counts as `{}`. */
  readonly body?: Body;
  /** Reads a form with one file instead of JSON. `body` is then UploadedFile. */
  readonly upload?: MiddlewareObj<ApiEvent>;
  /** Status of success: 200, 201 (with `Location`) or 202. */
  readonly status: 200 | 201 | 202;
  readonly response: Response;
  /** The answer holds a secret. The company's data key encrypts the copy for a repeated request. */
  readonly holdsSecret?: boolean;
  /** The answer is a text file in UTF-8 for download, not JSON. */
  readonly file?: { readonly mediaType: string; readonly name: string };
  /** The collection of a created record, e.g. `/api/notes`, if it differs from the route's own path. */
  readonly collection?: string;
}
