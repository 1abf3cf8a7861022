/** What an endpoint promises: parsed at run time by `endpoint()`, described to the world by the OpenAPI generator. */
import type { MiddlewareObj } from "@middy/core";
import type * as z from "zod/mini";
import type { Permission } from "#shared/auth/user-schema.ts";
import type { ApiEvent } from "#shared/http/event.ts";

/** Who may call: any signed-in user, admins and owners, or holders of a permission. `public` needs no token. */
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
  /** JSON body. An empty request body is read as `{}`. */
  readonly body?: Body;
  /** Reads a body that is one file in a form, and no JSON; `body` is then UploadedFile. */
  readonly upload?: MiddlewareObj<ApiEvent>;
  /** Status of success: 200, 201 (with `Location`) or 202. */
  readonly status: 200 | 201 | 202;
  readonly response: Response;
  /** The answer holds a secret: kept for a repeated request, it is encrypted by the company's data key. */
  readonly holdsSecret?: boolean;
  /** The answer is a file to keep, as text in UTF-8, and no JSON. */
  readonly file?: { readonly mediaType: string; readonly name: string };
  /** Collection in which a created record stands, e.g. `/api/notes`, where it is not the route's own path. */
  readonly collection?: string;
}
