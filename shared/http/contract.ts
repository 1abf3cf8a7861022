/** The contract of an endpoint, for validation and for the OpenAPI document. */
import type { MiddlewareObj } from "@middy/core";
import type * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import type { NeededScope } from "#shared/auth/scopes.ts";
import type { Permission } from "#shared/auth/user-schema.ts";
import type { ApiEvent } from "#shared/http/request.ts";

/** Who may call an endpoint: `everyone` with a valid token, `admin` (admins and owners), or users with the permission. */
export type Allow = "everyone" | "admin" | Permission;

export interface Contract {
  readonly summary: string;
  /** Markdown for the API reference: rules, limits and side effects. */
  readonly description?: string;
  readonly allow: Allow;
  /** The scope that an API key needs in addition to the rights of `allow`. */
  readonly scope: NeededScope;
  readonly path?: z.ZodMiniType;
  /** The schema of the query parameters, which are all strings before validation. */
  readonly query?: z.ZodMiniType;
  /** Names of query parameters that are accepted without effect. All other names must be in `query`. */
  readonly ignoredQuery?: readonly string[];
  /** The schema of the JSON body. An empty request body is read as `{}`. */
  readonly body?: z.ZodMiniType;
  /** A media type that the body may have instead of `application/json`. */
  readonly bodyMediaType?: "application/geo+json";
  /** Middleware that reads a form with one file instead of JSON. The schema in `body` must then be UploadedFile. */
  readonly upload?: MiddlewareObj<ApiEvent>;
  /** The default is 200. A response with 201, or with 202 and `collection`, has a `Location` header. */
  readonly status?: 200 | 201 | 202;
  readonly response: z.ZodMiniType;
  /** Answers for which `applies` returns true have the status 200: those to dry runs, and those with a record that existed already. */
  readonly ok?: { readonly response: z.ZodMiniType; readonly applies: (answer: unknown) => boolean };
  /** True if the response contains a secret. The stored copy is then encrypted with the company's data key. */
  readonly holdsSecret?: boolean;
  /** True if the response has an ETag, and may be 304. */
  readonly revalidated?: true;
  /** True if the response may be 410: the client must then synchronize from the beginning. */
  readonly mayReset?: true;
  /** The media type of the response, if it is not `application/json`. */
  readonly mediaType?: "application/geo+json" | "application/vnd.mapbox-vector-tile";
  /** True if the response may be 204. */
  readonly mayBeEmpty?: true;
  /** Set if the response is a text file (UTF-8) for download. */
  readonly file?: { readonly mediaType: string; readonly name: string };
  /** The detail of the error after the deadline. Set it if the request may have taken effect nevertheless. */
  readonly unknownOutcome?: string;
  /** The `Location` header is this path and the record's id. The default is the path of the request. */
  readonly collection?: string;
}

/** Rejects a contract with fields that `Contract` does not have. */
export type Known<C> = C & { readonly [Field in Exclude<keyof C, keyof Contract>]: never };

export type Parsed<Schema> = Schema extends z.ZodMiniType ? z.output<Schema> : unknown;

export interface Call<C extends Contract, Context> {
  readonly context: Context;
  readonly caller: Caller;
  readonly requestId: string;
  readonly path: Parsed<C["path"]>;
  readonly query: Parsed<C["query"]>;
  readonly body: Parsed<C["body"]>;
}

export type Answer<C extends Contract> =
  | z.input<C["response"]>
  | (C extends { readonly ok: { readonly response: infer Schema extends z.ZodMiniType } } ? z.input<Schema> : never);
