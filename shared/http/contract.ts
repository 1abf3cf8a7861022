/**
 * The contract of an endpoint. `endpoint()` validates requests and responses against the contract, and the OpenAPI generator describes it.
 */
import type { MiddlewareObj } from "@middy/core";
import type * as z from "zod/mini";
import type { Permission } from "#shared/auth/user-schema.ts";
import type { ApiEvent } from "#shared/http/request.ts";

/**
 * Who may call the endpoint: `everyone` who is signed in, every `admin` and owner, or users with the named permission. A `public` endpoint
 * needs no token.
 */
export type Allow = "public" | "everyone" | "admin" | Permission;

export interface Contract<
  Path extends z.ZodMiniType = z.ZodMiniType,
  Query extends z.ZodMiniType = z.ZodMiniType,
  Body extends z.ZodMiniType = z.ZodMiniType,
  Response extends z.ZodMiniType = z.ZodMiniType,
  DryRun extends z.ZodMiniType = z.ZodMiniType,
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
  /** The schema of the JSON body. An empty request body is read as `{}`. */
  readonly body?: Body;
  /** A media type that the body may have instead of `application/json`. */
  readonly bodyMediaType?: "application/geo+json";
  /** Middleware that reads a form with one file instead of JSON. The schema in `body` must then be UploadedFile. */
  readonly upload?: MiddlewareObj<ApiEvent>;
  /** The HTTP status of a successful response. A response with 201, or with 202 and `collection`, has a `Location` header. */
  readonly status: 200 | 201 | 202;
  readonly response: Response;
  /** The response to a dry run, which has the status 200. `applies` returns true if the result of the endpoint is that of a dry run. */
  readonly dryRun?: { readonly response: DryRun; readonly applies: (answer: unknown) => boolean };
  /**
   * True if the response contains a secret. The copy that is stored for repeated requests is then encrypted with the company's data key.
   */
  readonly holdsSecret?: boolean;
  /**
   * True if the response has an ETag. A client may then store the response, and send the ETag in `If-None-Match` with its next request. If
   * the stored response is current, the service answers 304 without a body.
   */
  readonly revalidated?: true;
  /** True if a POST only reads. It may then be repeated without an `Idempotency-Key`. */
  readonly isRead?: true;
  /** True if the response may be 410 (Gone). The client must then discard its copies of the data and synchronize from the beginning. */
  readonly mayReset?: true;
  /** The media type of the response, if it is not `application/json`. */
  readonly mediaType?: "application/geo+json" | "application/vnd.mapbox-vector-tile";
  /** True if the response may be 204 (No Content). */
  readonly mayBeEmpty?: true;
  /** Present if the response is a text file (UTF-8) for download and not JSON. */
  readonly file?: { readonly mediaType: string; readonly name: string };
  /**
   * The detail of the problem body if the request reaches its deadline. Set it if the request may have taken effect before the deadline, so
   * that the default text would be wrong.
   */
  readonly unknownOutcome?: string;
  /**
   * The path of the collection to which a created record belongs, for example `/api/notes`. The `Location` header is this path and the
   * record's id. The default is the path of the request.
   */
  readonly collection?: string;
}
