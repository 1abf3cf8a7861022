/** Entity tags (ETags) and conditional requests (RFC 9110). Tags are weak, because gzip does not change the tag of a response. */
import { createHash } from "node:crypto";
import type { Request } from "#shared/http/request.ts";

/** Increase this number if a release changes the responses for unchanged records. A test fails if only the schemas of responses change. */
export const ANSWER_FORMAT = 1;

/**
 * Returns a tag that changes with `parts`: everything on which the response depends, except the time. The tag also depends on the table's
 * name, because versions may repeat after a restore into another table.
 */
export function fingerprint(...parts: readonly (string | number)[]): string {
  return createHash("sha256")
    .update(JSON.stringify([ANSWER_FORMAT, process.env.TABLE_NAME, ...parts]))
    .digest("base64url")
    .slice(0, 22);
}

/** An endpoint returns it instead of an answer if the client already has the current response. The status is then 304. */
export class NotModified {
  readonly etag: string;
  constructor(etag: string) {
    this.etag = etag;
  }
}

/** Checks and sets the ETag of a response. `check` returns a `Current` if the client already has the current response. */
export interface Validator<Current = NotModified> {
  /** True if the client has sent a tag. */
  readonly isAsked: boolean;
  /** Call it before the work that a 304 saves. `now` is in milliseconds since 1970. */
  check(current: string, now: number): Current | undefined;
  /** Sets the tag. If the response changes at a known time without a write, `validUntil` is the last millisecond before the change. */
  tag(current: string, validUntil?: number): void;
}

/** A validator for callers without an HTTP request. Its functions do nothing. */
export const unconditional: Validator<never> = { isAsked: false, check: () => undefined, tag: () => undefined };

/** @param set receives the ETag of the response */
export function validatorOf({ headers }: Pick<Request, "headers">, set: (etag: string) => void): Validator {
  // `*` would match any stored response, but the service cannot know what the client has stored.
  const sent = [...(headers.get("if-none-match") ?? []).join(",").matchAll(/"([^"]*)"/g)].map(([, tag = ""]) => tag);
  return {
    isAsked: sent.length > 0,
    check(current, now) {
      for (const tag of sent) {
        const [known, until] = tag.split(".");
        const isValid = until === undefined || now <= Number.parseInt(until, 36);
        if (known === current && isValid) return new NotModified(`W/"${tag}"`);
      }
      return undefined;
    },
    tag: (current, until) => set(`W/"${until === undefined ? current : `${current}.${until.toString(36)}`}"`),
  };
}
