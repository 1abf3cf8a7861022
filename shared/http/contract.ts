/** The contract of an endpoint. `endpoint()` validates requests and answers against it, and the OpenAPI generator describes it. */
import type { MiddlewareObj } from "@middy/core";
import type * as z from "zod/mini";
import type { Permission } from "#shared/auth/user-schema.ts";
import type { ApiEvent } from "#shared/http/request.ts";

/** Who may call the endpoint: every signed-in user, admins and owners, or users with a permission. A `public` endpoint needs no token. */
export type Allow = "public" | "everyone" | "admin" | Permission;

export interface Contract<
  Path extends z.ZodMiniType = z.ZodMiniType,
  Query extends z.ZodMiniType = z.ZodMiniType,
  Body extends z.ZodMiniType = z.ZodMiniType,
  Response extends z.ZodMiniType = z.ZodMiniType,
> {
  readonly summary: string;
  /** Markdown for the API reference: rules, limits and side effects. */
  readonly description?: string;
  /** The section of the API reference, for example `Prospects`. */
  readonly tag: string;
  readonly allow: Allow;
  readonly path?: Path;
  /** The schema of the query parameters, which are all strings before validation. */
  readonly query?: Query;
  /** The schema of the JSON body. An empty request body counts as `{}`. */
  readonly body?: Body;
  /** Middleware that reads a form with one file instead of JSON. The schema in `body` must then be UploadedFile. */
  readonly upload?: MiddlewareObj<ApiEvent>;
  /** The HTTP status of a successful answer. An answer with 201 has a `Location` header. */
  readonly status: 200 | 201 | 202;
  readonly response: Response;
  /** True if the answer contains a secret. The copy that is stored for repeated requests is then encrypted with the company's data key. */
  readonly holdsSecret?: boolean;
  /**
   * True if the answer has an ETag. Clients may then keep the answer and ask with `If-None-Match` whether it is current. If it is, the
   * service answers 304 without a body.
   */
  readonly revalidated?: true;
  /** Present if the answer is a text file (UTF-8) for download and not JSON. */
  readonly file?: { readonly mediaType: string; readonly name: string };
  /** The detail of the problem if the request takes too long and its outcome is unknown. */
  readonly unknownOutcome?: string;
  /**
   * The path of the collection to which a created record belongs, for example `/api/notes`. The header `Location` is this path with the
   * record's id at its end. The default is the path of the request.
   */
  readonly collection?: string;
}
