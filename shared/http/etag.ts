/**
 * Entity tags of answers and conditional requests (RFC 9110). A client sends the tag of its copy in `If-None-Match`, and gets 304 without a
 * body if the copy is current.
 *
 * All tags are weak, because an answer is the same with and without gzip.
 */
import { createHash } from "node:crypto";
import type { Request } from "#shared/http/request.ts";

/**
 * Part of every tag. Increase it if a release changes the answers of the same records, such as by a new field. Otherwise a client would keep
 * an answer of the former release. A test compares it with the schemas of the answers.
 */
export const ANSWER_FORMAT = 1;

/** A fingerprint of everything that the answer depends on, except the time. */
export function fingerprint(...parts: readonly (string | number)[]): string {
  return createHash("sha256")
    .update(JSON.stringify([ANSWER_FORMAT, ...parts]))
    .digest("base64url")
    .slice(0, 22);
}

/** Ends a request whose client has the current answer. */
export class NotModified extends Error {
  readonly etag: string;
  constructor(etag: string) {
    super("the client has the current answer");
    this.etag = etag;
  }
}

/** Compares the client's tags with the state of the records, and sets the tag of the answer. */
export interface Validator {
  /** Whether the client has sent a tag. */
  readonly isAsked: boolean;
  /**
   * Throws NotModified if the client's copy has this fingerprint and has not expired. Call it before the work that a 304 saves, and with the
   * current time in milliseconds since the epoch.
   */
  check(current: string, now: number): void;
  /**
   * Sets the tag of the answer. An answer that changes at a known time, without a write, expires then. The last millisecond at which it is
   * valid is part of its tag.
   */
  tag(current: string, validUntil?: number): void;
}

/** For callers outside an HTTP request. */
export const unconditional: Validator = { isAsked: false, check: () => undefined, tag: () => undefined };

/** @param set receives the ETag of the answer */
export function validatorOf({ headers }: Pick<Request, "headers">, set: (etag: string) => void): Validator {
  // `*` would mean that any copy is current, which this service cannot know. It is therefore ignored.
  const sent = [...(headers.get("if-none-match") ?? []).join(",").matchAll(/"([^"]*)"/g)].map(([, tag = ""]) => tag);
  return {
    isAsked: sent.length > 0,
    check(current, now) {
      for (const tag of sent) {
        const [known, until] = tag.split(".");
        const isValid = until === undefined || now <= Number.parseInt(until, 36);
        if (known === current && isValid) throw new NotModified(`W/"${tag}"`);
      }
    },
    tag: (current, until) => set(`W/"${until === undefined ? current : `${current}.${until.toString(36)}`}"`),
  };
}
