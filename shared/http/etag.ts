/**
 * Entity tags (ETags) of responses, and conditional requests (RFC 9110). A client sends the tag of its stored response in `If-None-Match`,
 * and gets 304 without a body if the stored response is current.
 *
 * All tags are weak, because a response has the same tag with and without gzip.
 */
import { createHash } from "node:crypto";
import type { Request } from "#shared/http/request.ts";

/**
 * A value that is part of every tag. Increase it if a release changes the responses for unchanged records, for example by a new field.
 * Otherwise clients would keep the responses of the earlier release. A test fails if the schemas of responses change and this value does
 * not.
 */
export const ANSWER_FORMAT = 4;

/**
 * Returns a hash of `parts`, which must be everything that determines the response except the time. The hash also includes the name of the
 * table. After a restore from a backup, version numbers may repeat, but the restored table always has another name.
 */
export function fingerprint(...parts: readonly (string | number)[]): string {
  return createHash("sha256")
    .update(JSON.stringify([ANSWER_FORMAT, process.env.TABLE_NAME ?? "", ...parts]))
    .digest("base64url")
    .slice(0, 22);
}

/** The result of a request whose client already has the current response. The service then answers 304. */
export class NotModified {
  readonly etag: string;
  constructor(etag: string) {
    this.etag = etag;
  }
}

/**
 * Compares the tags that the client has sent with the state of the records, and sets the tag of the response. `Current` is the type that
 * `check` returns if the client has the current response. It is `never` if `check` always returns undefined.
 */
export interface Validator<Current = NotModified> {
  /** True if the client has sent a tag. */
  readonly isAsked: boolean;
  /**
   * Returns NotModified if one of the client's tags has this fingerprint and has not expired, and undefined otherwise. Call it before the
   * work that a 304 saves. `now` is the current time in milliseconds since 1970.
   */
  check(current: string, now: number): Current | undefined;
  /**
   * Sets the tag of the response. Some responses change at a known time without a write. For such a response, `validUntil` is the last
   * millisecond at which it is valid. The tag then includes `validUntil`.
   */
  tag(current: string, validUntil?: number): void;
}

/** A validator for callers without an HTTP request. Its functions do nothing. */
export const unconditional: Validator<never> = { isAsked: false, check: () => undefined, tag: () => undefined };

/** @param set receives the ETag of the response */
export function validatorOf({ headers }: Pick<Request, "headers">, set: (etag: string) => void): Validator {
  // `*` in `If-None-Match` would match any stored response, but the service cannot know what the client has stored. It therefore ignores
  // `*`.
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
